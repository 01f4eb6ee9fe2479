/**
 * The engine itself, for people with a loop of their own: no timers, no promises, no clock.
 *
 * Every mutation (`submit`, `settle`, `cancel`, `configure`, the passing of time) is followed by `poll`
 * until it stops giving tickets. `wakeAt` is a hint: polling early, late or twice is harmless.
 *
 * ```ts
 * const engine = new Engine({ defaults: { delay: 1000, jitter: false } })
 * const scope = engine.scope('example.com')
 * const ticket = engine.submit(0, [scope])
 * engine.poll(0) === ticket
 * engine.settle(80, ticket, { status: 200, latencyMs: 80 })
 * ```
 */

export * from './wasm/engine.js'
