/**
 * What a decision costs through WebAssembly, as JavaScript calls it: `npm run bench:wasm`. The same tables as
 * `npm run bench:engine`, which is the same engine natively. Read the ratios.
 */
import { Engine, IDLE, WAIT } from 'autothrottle/engine'

function best(rounds, measure) {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) least = Math.min(least, measure())
  return least
}

function simpleCycle() {
  const cycles = 300_000
  const engine = new Engine({ defaults: { delay: 0, slotDelay: 0, jitter: false } })
  const scopes = [engine.scope('example.com')]
  const outcome = { status: 200, latencyMs: 1 }
  const start = performance.now()
  for (let now = 0; now < cycles; now++) {
    const ticket = engine.submit(now, scopes)
    if (engine.poll(now) !== ticket) throw new Error('not sent')
    engine.poll(now)
    engine.settle(now, ticket, outcome)
  }
  const nanos = ((performance.now() - start) * 1e6) / cycles
  engine[Symbol.dispose]()
  return nanos
}

function crowd(waiting, isShared) {
  const engine = new Engine({
    concurrency: 1_000_000,
    defaults: { delay: 1000, slotDelay: 0, concurrency: 2, jitter: false },
    scopes: { shared: { delay: 0, concurrency: 64 } },
  })
  const shared = engine.scope('shared')
  const hosts = Array.from({ length: waiting / 10 }, (_, host) => engine.scope(`host-${host}.example`))
  for (let index = 0; index < waiting; index++) {
    const host = hosts[index % hosts.length]
    engine.submit(0, isShared ? [shared, host] : [host])
  }
  const outcome = { status: 200, latencyMs: 0.1 }
  const flying = []
  const dispatches = Math.min(waiting, 200_000)
  let [now, sent, landed] = [0, 0, 0]
  const start = performance.now()
  while (sent < dispatches) {
    let ticket = engine.poll(now)
    for (; ticket >= 0; ticket = engine.poll(now)) flying[sent++] = { at: now + 0.1, ticket }
    const wake = ticket === WAIT ? engine.wakeAt : Number.POSITIVE_INFINITY
    if (ticket === IDLE && landed === sent) throw new Error('nothing is going on')
    now = Math.min(wake, flying[landed]?.at ?? Number.POSITIVE_INFINITY)
    for (; landed < sent && flying[landed].at <= now; landed++) {
      engine.settle(now, flying[landed].ticket, outcome)
      flying[landed] = undefined
    }
  }
  const nanos = ((performance.now() - start) * 1e6) / sent
  engine[Symbol.dispose]()
  return nanos
}

console.log(`simple cycle: ${best(5, simpleCycle).toFixed(0)} ns\n`)
console.log('  waiting   own hosts  ratio   shared scope  ratio')
let base
for (const waiting of [1_000, 10_000, 100_000, 1_000_000]) {
  const rounds = waiting < 1_000_000 ? 5 : 2
  const [own, shared] = [false, true].map((isShared) => best(rounds, () => crowd(waiting, isShared)))
  base ??= [own, shared]
  const cells = [own, own / base[0], shared, shared / base[1]]
  const [a, b, c, d] = cells.map((cell, index) => cell.toFixed(index % 2 ? 2 : 0))
  console.log(
    `${String(waiting).padStart(9)} ${a.padStart(8)} ns ${b.padStart(6)} ${c.padStart(11)} ns ${d.padStart(6)}`,
  )
}
