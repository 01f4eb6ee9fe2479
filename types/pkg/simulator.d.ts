/* tslint:disable */
/* eslint-disable */

/**
 * A simulation under way. What throws, throws a list of `{ path, want, got }`.
 */
export class LiveSimulation {
    free(): void;
    [Symbol.dispose](): void;
    advance(ms: number): void;
    answered(): Float64Array;
    client(): Uint32Array;
    configure(scope: string, partial: any): void;
    configure_network(partial: any): void;
    configure_server(scope: string, partial: any): void;
    is_done(): boolean;
    constructor(options: any);
    now(): number;
    sent(): Float64Array;
    server(): Uint32Array;
    state(client: number): any;
    status(): Uint16Array;
    summary(): any;
    take_events(): any;
}

/**
 * A server alone.
 */
export class Played {
    free(): void;
    [Symbol.dispose](): void;
    answer(now: number): any;
    limit(now: number): number;
    constructor(description: any, seed: number);
}

/**
 * What came of a simulation. The trace leaves as columns, one number a request.
 */
export class Simulated {
    private constructor();
    free(): void;
    [Symbol.dispose](): void;
    answered(): Float64Array;
    client(): Uint32Array;
    sent(): Float64Array;
    server(): Uint32Array;
    status(): Uint16Array;
    summary(): any;
}

/**
 * Runs a simulation. Throws a list of `{ path, want, got }`.
 */
export function simulate(options: any): Simulated;

export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;

export interface InitOutput {
    readonly memory: WebAssembly.Memory;
    readonly __wbg_livesimulation_free: (a: number, b: number) => void;
    readonly __wbg_played_free: (a: number, b: number) => void;
    readonly __wbg_simulated_free: (a: number, b: number) => void;
    readonly livesimulation_advance: (a: number, b: number) => [number, number];
    readonly livesimulation_answered: (a: number) => [number, number];
    readonly livesimulation_client: (a: number) => [number, number];
    readonly livesimulation_configure: (a: number, b: number, c: number, d: any) => [number, number];
    readonly livesimulation_configure_network: (a: number, b: any) => [number, number];
    readonly livesimulation_configure_server: (a: number, b: number, c: number, d: any) => [number, number];
    readonly livesimulation_is_done: (a: number) => number;
    readonly livesimulation_new: (a: any) => [number, number, number];
    readonly livesimulation_now: (a: number) => number;
    readonly livesimulation_sent: (a: number) => [number, number];
    readonly livesimulation_server: (a: number) => [number, number];
    readonly livesimulation_state: (a: number, b: number) => any;
    readonly livesimulation_status: (a: number) => [number, number];
    readonly livesimulation_summary: (a: number) => any;
    readonly livesimulation_take_events: (a: number) => any;
    readonly played_answer: (a: number, b: number) => any;
    readonly played_limit: (a: number, b: number) => number;
    readonly played_new: (a: any, b: number) => [number, number, number];
    readonly simulate: (a: any) => [number, number, number];
    readonly simulated_answered: (a: number) => [number, number];
    readonly simulated_client: (a: number) => [number, number];
    readonly simulated_sent: (a: number) => [number, number];
    readonly simulated_server: (a: number) => [number, number];
    readonly simulated_status: (a: number) => [number, number];
    readonly simulated_summary: (a: number) => any;
    readonly __wbindgen_malloc: (a: number, b: number) => number;
    readonly __wbindgen_realloc: (a: number, b: number, c: number, d: number) => number;
    readonly __wbindgen_free: (a: number, b: number, c: number) => void;
    readonly __wbindgen_exn_store: (a: number) => void;
    readonly __externref_table_alloc: () => number;
    readonly __wbindgen_externrefs: WebAssembly.Table;
    readonly __externref_table_dealloc: (a: number) => void;
    readonly __wbindgen_start: () => void;
}

export type SyncInitInput = BufferSource | WebAssembly.Module;

/**
 * Instantiates the given `module`, which can either be bytes or
 * a precompiled `WebAssembly.Module`.
 *
 * @param {{ module: SyncInitInput }} module - Passing `SyncInitInput` directly is deprecated.
 *
 * @returns {InitOutput}
 */
export function initSync(module: { module: SyncInitInput } | SyncInitInput): InitOutput;

/**
 * If `module_or_path` is {RequestInfo} or {URL}, makes a request and
 * for everything else, calls `WebAssembly.instantiate` directly.
 *
 * @param {{ module_or_path: InitInput | Promise<InitInput> }} module_or_path - Passing `InitInput` directly is deprecated.
 *
 * @returns {Promise<InitOutput>}
 */
export default function __wbg_init (module_or_path: { module_or_path: InitInput | Promise<InitInput> } | InitInput | Promise<InitInput>): Promise<InitOutput>;
