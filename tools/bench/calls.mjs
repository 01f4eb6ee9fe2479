/**
 * The cost of a call beside p-limit, in one run: `npm run bench:calls`. Rounds take turns, and the least of
 * each counts, so that a busy machine slows all alike. `--quick` makes it shorter.
 *
 * A call of ours decides by host, delay, quota and backoff, and hears what came back; one of p-limit's counts
 * to ten. The last column has the aim, on a quiet machine.
 *
 * `-- --node PATH` runs all once more in another Node, as often as it stands there (`npm install node@24`
 * brings one). The last table has a column for each.
 */
import { spawn, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createThrottle } from 'autothrottle'
import { Engine } from 'autothrottle/engine'
import { instrument } from 'autothrottle/opentelemetry'
import pLimit from 'p-limit'
import PQueue from 'p-queue'

const isQuick = process.argv.includes('--quick')
/** The other Node that this is, for a column: then the last line is all rows as JSON. */
const isColumn = process.argv.includes('--column')
const nodes = process.argv.filter((_, place) => process.argv[place - 1] === '--node')
/** Rows that have an aim, as `[title: name, figure, aim]`. */
const rows = []
const CALLS = isQuick ? 20_000 : 50_000
const ROUNDS = isQuick ? 5 : 15
const free = { maxInFlight: 1000, defaults: { delay: 0, slotDelay: 0, jitter: false, concurrency: 1000 } }
const url = 'https://quotes.example/page/1'
const scopes = { scopes: 'quotes.example' }
const work = async () => 1

/** Nanoseconds of CPU of each, by name: the least of all rounds. */
async function race(contenders, count) {
  const least = Object.fromEntries(Object.keys(contenders).map((name) => [name, Number.POSITIVE_INFINITY]))
  const all = Object.entries(contenders)
  for (let round = 0; round < ROUNDS; round++) {
    // The first clears away what the others left, so they take turns.
    all.push(all.shift())
    for (const [name, run] of all) {
      const before = process.cpuUsage()
      await run()
      const { user, system } = process.cpuUsage(before)
      least[name] = Math.min(least[name], ((user + system) * 1000) / count)
    }
  }
  return least
}

/** One after another. */
const each = (call) => async () => {
  for (let index = 0; index < CALLS; index++) await call()
}

/** The aim of a row, which is noted for the last table. */
function aimed(title, name, figure, aim, sign = '≤') {
  if (aim === undefined) return ''
  rows.push([`${title}: ${name}`, figure, `${sign} ${aim}`])
  return `   aim ${sign} ${aim}`
}

function table(title, least, base, { aims = {}, isDifference = false, isAbsolute = false } = {}) {
  console.log(`\n${title}`)
  for (const [name, nanos] of Object.entries(least)) {
    const beside = isDifference
      ? `${((nanos - least[base]) / 1000).toFixed(2)} µs over`
      : `${(nanos / least[base]).toFixed(2)} ×`
    const cells = [name.padEnd(34), nanos.toFixed(0).padStart(7), 'ns', beside.padStart(14)]
    const figure = isAbsolute ? `${nanos.toFixed(0)} ns` : beside
    console.log(`  ${cells.join(' ')}${aimed(title, name, figure, aims[name])}`)
  }
}

{
  const limit = pLimit(1000)
  const throttle = createThrottle(free)
  const calls = {
    'p-limit': each(() => limit(work)),
    'run({ scopes })': each(() => throttle.run(scopes, work)),
    'run(url)': each(() => throttle.run(url, work)),
  }
  const aims = { 'run({ scopes })': 1.05, 'run(url)': 1.15 }
  table(`one after another, ${CALLS} calls`, await race(calls, CALLS), 'p-limit', { aims })
}
{
  const BATCH = 1000
  const limit = pLimit(BATCH)
  const throttle = createThrottle(free)
  const batches = (call) => async () => {
    for (let round = 0; round < CALLS / BATCH; round++) await Promise.all(Array.from({ length: BATCH }, call))
  }
  const calls = {
    'p-limit': batches(() => limit(work)),
    'run({ scopes })': batches(() => throttle.run(scopes, work)),
  }
  const aims = { 'run({ scopes })': 0.95 }
  table(`${BATCH} in a batch, ${CALLS} calls`, await race(calls, CALLS), 'p-limit', { aims })
}
{
  // Without an exporter: what the SDK adds to a measurement is its own, and it is the same for all.
  const plain = createThrottle(free)
  const off = createThrottle(free)
  instrument(off)()
  const on = createThrottle(free)
  instrument(on)
  const calls = {
    'run(url)': each(() => plain.run(url, work)),
    'OpenTelemetry was on': each(() => off.run(url, work)),
    'OpenTelemetry is on': each(() => on.run(url, work)),
  }
  const least = await race(calls, CALLS)
  table(`with OpenTelemetry, ${CALLS} calls`, least, 'run(url)', { isDifference: true })
}
{
  const MANY = 10_000
  const limit = pLimit(10)
  const ten = { maxInFlight: 10, warnThreshold: 1e6 }
  const throttle = createThrottle({ ...free, ...ten })
  const all = (call) => () => Promise.all(Array.from({ length: MANY }, call))
  const calls = {
    'p-limit': all(() => limit(work)),
    'run(url)': all(() => throttle.run(url, work)),
  }
  const aims = { 'run(url)': 1.1 }
  table('10,000 at once over ten slots', await race(calls, MANY), 'p-limit', { aims })
}
{
  // A permit and its end in WebAssembly, where no limit keeps it: a millisecond after the one before.
  const rates = {
    'slots alone': [{ delay: 0, slotDelay: 0, jitter: false }, 60],
    'a rate': [{ rate: { limit: 10_000, window: 1000 } }, 100],
    'a delay': [{ delay: 1, slotDelay: 0, jitter: false }, 100],
  }
  const [calls, aims] = [{}, {}]
  for (const [name, [pace, aim]] of Object.entries(rates)) {
    const engine = new Engine({ defaults: pace })
    const scope = [engine.scope('quotes.example')]
    let now = 0
    calls[name] = () => {
      for (let index = 0; index < CALLS; index++) engine.settle(++now, engine.sendAtOnce(now, scope))
    }
    aims[name] = `${aim} ns`
  }
  const least = await race(calls, CALLS)
  table('the engine alone, a permit and its end', least, 'slots alone', { aims, isAbsolute: true })
}
{
  const fields = Array.from({ length: 20 }, (_, index) => [`x-field-${index}`, `value ${index}`])
  const limited = [
    ...fields,
    ['ratelimit', '"default";r=50;t=30'],
    ['ratelimit-policy', '"default";q=100;w=60'],
  ]
  const stubs = {
    bare: new Response('ok'),
    'twenty headers': new Response('ok', { headers: fields }),
    'RateLimit headers': new Response('ok', { headers: limited }),
  }
  const most = { bare: 0.2, 'twenty headers': 0.7, 'RateLimit headers': 2.5 }
  for (const [name, response] of Object.entries(stubs)) {
    const fetch = async () => response
    const limit = pLimit(1000)
    const throttle = createThrottle({ ...free, fetch })
    const calls = { 'p-limit': each(() => limit(() => fetch(url))), fetch: each(() => throttle.fetch(url)) }
    const how = { aims: { fetch: most[name] }, isDifference: true }
    table(`fetch over a stub, ${name}`, await race(calls, CALLS), 'p-limit', how)
  }
}
{
  // A process of its own, so that its work is not counted as ours.
  const program = `import('node:http').then(({ createServer }) => {
    const server = createServer((_, response) => response.end('ok'))
    server.listen(0, '127.0.0.1', () => console.log(server.address().port))
  })`
  const server = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = String(await new Promise((resolve) => server.stdout.once('data', resolve))).trim()
  const page = `http://127.0.0.1:${port}/`
  const AT_ONCE = 64
  const MANY = isQuick ? 2_000 : 10_000
  const limit = pLimit(AT_ONCE)
  const bounded = { maxInFlight: AT_ONCE, warnThreshold: 1e6 }
  const throttle = createThrottle({ ...free, ...bounded })
  const read = async (response) => (await response).text()
  const all = (call) => () => Promise.all(Array.from({ length: MANY }, () => read(call())))
  const calls = {
    'p-limit': all(() => limit(() => fetch(page))),
    'throttle.fetch': all(() => throttle.fetch(page)),
  }
  const seconds = Object.fromEntries(Object.keys(calls).map((name) => [name, Number.POSITIVE_INFINITY]))
  for (const run of Object.values(calls)) await run()
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, run] of Object.entries(calls)) {
      const before = performance.now()
      await run()
      seconds[name] = Math.min(seconds[name], (performance.now() - before) / 1000)
    }
  }
  console.log(`\nend to end over loopback, ${MANY} requests, ${AT_ONCE} at a time: requests per second`)
  for (const [name, least] of Object.entries(seconds)) {
    const beside = (seconds['p-limit'] / least).toFixed(2)
    const aim = aimed('end to end', name, `${beside} ×`, name === 'p-limit' ? undefined : 0.97, '≥')
    console.log(
      `  ${name.padEnd(34)} ${(MANY / least).toFixed(0).padStart(7)}     ${beside.padStart(11)} ×${aim}`,
    )
  }
  server.kill()
}
{
  console.log('\nbytes of JavaScript heap that a waiting call takes')
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  const MANY = 50_000
  const size = async (call) => {
    for (let turn = 0; turn < 3; turn++) collect()
    const before = process.memoryUsage().heapUsed
    const kept = Array.from({ length: MANY }, call)
    await new Promise((resolve) => setImmediate(resolve))
    for (let turn = 0; turn < 3; turn++) collect()
    return [(process.memoryUsage().heapUsed - before) / MANY, kept]
  }
  const never = () => new Promise(() => {})
  const limit = pLimit(1)
  const queue = new PQueue({ concurrency: 1 })
  const throttle = createThrottle({ ...free, maxInFlight: 1, warnThreshold: 1e6 })
  // A permit holds the slot: behind functions that hold it, a fetch of their URL would be called nested.
  await throttle.acquire(url)
  const calls = {
    'p-limit': () => limit(never),
    'p-queue': () => queue.add(never),
    'run(url)': () => throttle.run(url, never),
    'acquire(url)': () => throttle.acquire(url),
    'fetch(url)': () => throttle.fetch(url),
  }
  for (const [name, call] of Object.entries(calls)) {
    call()
    const [bytes, kept] = await size(call)
    console.log(`  ${name.padEnd(34)} ${bytes.toFixed(0).padStart(7)} bytes`)
    if (kept.length !== MANY) throw new Error('kept alive until here')
  }
  throttle.close()
}
{
  console.log('\nCPU from import to the first permit, least of several processes')
  const programs = {
    'p-limit': "const { default: limit } = await import('p-limit'); await limit(1)(() => 1)",
    'p-queue': "const { default: Queue } = await import('p-queue'); await new Queue().add(() => 1)",
    autothrottle: `const { createThrottle } = await import('autothrottle')
      await createThrottle().acquire('${url}')`,
  }
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const cpu = (body) => {
    const program = `const before = process.cpuUsage(); ${body}
      const { user, system } = process.cpuUsage(before); console.log((user + system) / 1000)`
    return Number(spawnSync(process.execPath, ['--input-type=module', '-e', program], { cwd }).stdout)
  }
  const least = {}
  for (let round = 0; round < (isQuick ? 3 : 9); round++)
    for (const [name, body] of Object.entries(programs)) least[name] = Math.min(least[name] ?? 1e9, cpu(body))
  for (const [name, ms] of Object.entries(least)) {
    const beside = `${(ms / least['p-queue']).toFixed(2)} × p-queue`
    const aim = aimed('first permit', name, beside, name === 'autothrottle' ? 2.2 : undefined)
    console.log(`  ${name.padEnd(34)} ${ms.toFixed(1).padStart(7)} ms  ${beside.padStart(14)}${aim}`)
  }
}
if (isColumn) console.log(`\n${JSON.stringify(rows)}`)
if (nodes.length > 0) {
  const columns = [[process.version, rows]]
  for (const node of nodes) {
    const words = [fileURLToPath(import.meta.url), '--column', ...(isQuick ? ['--quick'] : [])]
    const run = spawnSync(node, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    if (run.status !== 0) throw new Error(`${node}: exit code ${run.status}`)
    const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' })
    columns.push([stdout.trim(), JSON.parse(run.stdout.trimEnd().split('\n').at(-1))])
  }
  const wide = (cells, aim) => console.log(`  ${cells.map((cell) => cell.padStart(16)).join('')}   ${aim}`)
  console.log('\nrows with an aim, by version of Node')
  wide(
    columns.map(([version]) => version),
    'aim',
  )
  for (const [place, [name, , aim]] of rows.entries())
    wide(
      columns.map(([, figures]) => figures[place][1]),
      `${aim}   ${name}`,
    )
}
process.exit(0)
