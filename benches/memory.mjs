/**
 * What waiting and idling cost in the module's memory: `npm run bench:memory`.
 *
 * WebAssembly memory only grows, in pages of 64 KiB, so each figure is the growth by many alike divided by
 * how many they are.
 */
const Instance = WebAssembly.Instance
let memory
WebAssembly.Instance = class extends Instance {
  constructor(...args) {
    super(...args)
    memory = this.exports.memory
  }
}
const { Engine } = await import('autothrottle/engine')

const N = 200_000
const bytes = () => memory.buffer.byteLength
const name = (index) => `host-${String(index).padStart(7, '0')}.example`.slice(0, 20)

function report(what, before, count) {
  console.log(`${what.padEnd(58)} ${((bytes() - before) / count).toFixed(0).padStart(5)} bytes`)
}

{
  const engine = new Engine({ defaults: { delay: 1000 } })
  const scope = engine.scope('example.com')
  engine.submit(0, [scope])
  const before = bytes()
  for (let index = 0; index < N; index++) engine.submit(0, [scope])
  report('a waiting request of one scope', before, N)
  engine[Symbol.dispose]()
}
{
  const engine = new Engine({ maxScopes: 1_000_000, defaults: { delay: 100, autothrottle: true } })
  const before = bytes()
  for (let index = 0; index < N; index++) {
    const scope = engine.intern(name(index))
    const ticket = engine.submit(index * 10, [scope])
    engine.poll(index * 10)
    engine.settle(index * 10 + 5, ticket, { status: 200, latencyMs: 5 })
    engine.poll(index * 10 + 5)
  }
  if (engine.scopes !== N) throw new Error(`${engine.scopes} scopes were kept`)
  report('an idle scope with learned state and a name of 20 bytes', before, N)
  engine[Symbol.dispose]()
}
{
  const engine = new Engine({ defaults: { delay: 100, autothrottle: true } })
  const sizes = []
  for (let index = 0; index < 1_000_000; index++) {
    const now = index * 10
    const ticket = engine.submit(now, [engine.intern(name(index))])
    engine.poll(now)
    engine.settle(now + 5, ticket, { status: 200, latencyMs: 5 })
    engine.poll(now + 5)
    if ((index + 1) % 250_000 === 0) sizes.push((bytes() / 1e6).toFixed(1))
  }
  console.log(
    `a million hosts seen once, maxScopes 100,000: ${sizes.join(', ')} MB after each quarter; ${engine.scopes} scopes`,
  )
}
