/* tslint:disable */
/* eslint-disable */

/**
 * The engine as JavaScript sees it. See [`Boundary`] for each method.
 */
export class WasmEngine {
    free(): void;
    [Symbol.dispose](): void;
    adopt(now: number, scopes: Float64Array | number[], costs: Float64Array | number[], priority: number, waited_ms: number, sent_ago_ms: number): number;
    cancel(now: number, ticket: number): void;
    /**
     * Throws a list of `[path, want, got]`.
     */
    configure(now: number, scope: number, partial: any): void;
    crawl_delay(now: number, scope: number, ms: number): number;
    /**
     * See [`Boundary::digest`].
     */
    digest(answer: number, latency_ms: number, cost: number, flags: number, lines: string, more: Float64Array | number[]): Float64Array;
    find(name: string): number;
    hold(now: number, scope: number, ms: number): void;
    in_flight(): number;
    intern(name: string): number;
    keep_alive(scope: number): boolean;
    left(now: number, ticket: number): void;
    name(scope: number): string | undefined;
    /**
     * Throws a list of `[path, want, got]`.
     */
    constructor(options: any);
    pause(now: number, scope: number): void;
    pause_all(paused: boolean): void;
    peek(now: number, scopes: Float64Array | number[], costs: Float64Array | number[]): number;
    poll(now: number): number;
    prioritize(now: number, ticket: number, priority: number): void;
    static reasons(): string[];
    release(scope: number): void;
    reset(now: number, scope: number): void;
    /**
     * Throws a list of `[path, want, got]`.
     */
    restore(snapshot: any, now: number, wall_ms: number): void;
    resume(now: number, scope: number): void;
    scope(name: string): number;
    scope_stats(now: number, scope: number): any;
    scopes(): number;
    send_at_once(now: number, scope: number, cost: number, priority: number): number;
    send_many_at_once(now: number, scopes: Float64Array | number[], costs: Float64Array | number[], priority: number): number;
    /**
     * The place of the outcome in [`boundary::Settled`].
     */
    settle(now: number, ticket: number, answer: number, latency_ms: number, cost: number, flags: number): number;
    /**
     * The same with header lines, and with all that [`Outcome::with`] takes.
     */
    settle_with(now: number, ticket: number, answer: number, latency_ms: number, cost: number, flags: number, lines: string, more: Float64Array | number[]): number;
    snapshot(now: number, wall_ms: number): any;
    stats(now: number): any;
    submit(now: number, scope: number, cost: number, priority: number, delay_ms: number): number;
    submit_again(now: number, scopes: Float64Array | number[], costs: Float64Array | number[], priority: number, delay_ms: number, waited_ms: number): number;
    submit_many(now: number, scopes: Float64Array | number[], costs: Float64Array | number[], priority: number, delay_ms: number): number;
    take_notices(): any;
    waiting(): number;
    warn_threshold(): number;
    watch(level: number): void;
    readonly asked_ms: number;
    readonly has_notices: boolean;
    readonly reason: number;
    readonly reason_scope: number;
    readonly refused_path: string | undefined;
    readonly refused_scope: string | undefined;
    readonly wake_at: number;
}

/**
 * Checks the options that only a driver reads. Throws a list of `[path, want, got]`.
 */
export function check_driver_options(options: any): void;

/**
 * The name that was meant, if one of `known` (one a line) is near enough; else an empty text.
 */
export function nearest(typed: string, known: string): string;

export function parse_crawl_delay(bytes: Uint8Array | number[], user_agent: string): number;

export function parse_hints(lines: string, status: number, wall_ms: number, flags: number): any;

export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;

export interface InitOutput {
    readonly memory: WebAssembly.Memory;
    readonly __wbg_wasmengine_free: (a: number, b: number) => void;
    readonly check_driver_options: (a: any) => [number, number];
    readonly nearest: (a: number, b: number, c: number, d: number) => [number, number];
    readonly parse_crawl_delay: (a: number, b: number, c: number, d: number) => number;
    readonly parse_hints: (a: number, b: number, c: number, d: number, e: number) => any;
    readonly wasmengine_adopt: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number, i: number) => number;
    readonly wasmengine_asked_ms: (a: number) => number;
    readonly wasmengine_cancel: (a: number, b: number, c: number) => void;
    readonly wasmengine_configure: (a: number, b: number, c: number, d: any) => [number, number];
    readonly wasmengine_crawl_delay: (a: number, b: number, c: number, d: number) => number;
    readonly wasmengine_digest: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number, i: number) => [number, number];
    readonly wasmengine_find: (a: number, b: number, c: number) => number;
    readonly wasmengine_has_notices: (a: number) => number;
    readonly wasmengine_hold: (a: number, b: number, c: number, d: number) => void;
    readonly wasmengine_in_flight: (a: number) => number;
    readonly wasmengine_intern: (a: number, b: number, c: number) => number;
    readonly wasmengine_keep_alive: (a: number, b: number) => number;
    readonly wasmengine_left: (a: number, b: number, c: number) => void;
    readonly wasmengine_name: (a: number, b: number) => [number, number];
    readonly wasmengine_new: (a: any) => [number, number, number];
    readonly wasmengine_pause: (a: number, b: number, c: number) => void;
    readonly wasmengine_pause_all: (a: number, b: number) => void;
    readonly wasmengine_peek: (a: number, b: number, c: number, d: number, e: number, f: number) => number;
    readonly wasmengine_poll: (a: number, b: number) => number;
    readonly wasmengine_prioritize: (a: number, b: number, c: number, d: number) => void;
    readonly wasmengine_reason: (a: number) => number;
    readonly wasmengine_reason_scope: (a: number) => number;
    readonly wasmengine_reasons: () => [number, number];
    readonly wasmengine_refused_path: (a: number) => [number, number];
    readonly wasmengine_refused_scope: (a: number) => [number, number];
    readonly wasmengine_release: (a: number, b: number) => void;
    readonly wasmengine_reset: (a: number, b: number, c: number) => void;
    readonly wasmengine_restore: (a: number, b: any, c: number, d: number) => [number, number];
    readonly wasmengine_resume: (a: number, b: number, c: number) => void;
    readonly wasmengine_scope: (a: number, b: number, c: number) => number;
    readonly wasmengine_scope_stats: (a: number, b: number, c: number) => any;
    readonly wasmengine_scopes: (a: number) => number;
    readonly wasmengine_send_at_once: (a: number, b: number, c: number, d: number, e: number) => number;
    readonly wasmengine_send_many_at_once: (a: number, b: number, c: number, d: number, e: number, f: number, g: number) => number;
    readonly wasmengine_settle: (a: number, b: number, c: number, d: number, e: number, f: number, g: number) => number;
    readonly wasmengine_settle_with: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number, i: number, j: number, k: number) => number;
    readonly wasmengine_snapshot: (a: number, b: number, c: number) => any;
    readonly wasmengine_stats: (a: number, b: number) => any;
    readonly wasmengine_submit: (a: number, b: number, c: number, d: number, e: number, f: number) => number;
    readonly wasmengine_submit_again: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number, i: number) => number;
    readonly wasmengine_submit_many: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number) => number;
    readonly wasmengine_take_notices: (a: number) => any;
    readonly wasmengine_waiting: (a: number) => number;
    readonly wasmengine_wake_at: (a: number) => number;
    readonly wasmengine_warn_threshold: (a: number) => number;
    readonly wasmengine_watch: (a: number, b: number) => void;
    readonly __wbindgen_malloc: (a: number, b: number) => number;
    readonly __wbindgen_realloc: (a: number, b: number, c: number, d: number) => number;
    readonly __wbindgen_free: (a: number, b: number, c: number) => void;
    readonly __wbindgen_exn_store: (a: number) => void;
    readonly __externref_table_alloc: () => number;
    readonly __wbindgen_externrefs: WebAssembly.Table;
    readonly __externref_table_dealloc: (a: number) => void;
    readonly __externref_drop_slice: (a: number, b: number) => void;
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
