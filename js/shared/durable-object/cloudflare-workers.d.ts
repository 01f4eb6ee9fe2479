/** The part of `cloudflare:workers` that is used; programs have the whole from their own types. */
declare module 'cloudflare:workers' {
  export abstract class DurableObject<Env = unknown> {
    protected ctx: import('./room.js').ObjectState
    protected env: Env
    constructor(ctx: import('./room.js').ObjectState, env: Env)
  }
  export abstract class RpcTarget {}
  export function waitUntil(promise: Promise<unknown>): void
}
