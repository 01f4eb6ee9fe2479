/** The tarball that users get, installed in a scratch project: it imports, types, and sends one request. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { packed } from './install.mjs'
import { ENTRIES } from './sizes.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { scratch, run, addCommand, remove } = packed()
after(remove)

const PROGRAM = `
import { createServer } from 'node:http'
import { createThrottle, ConfigError } from 'autothrottle'
import { Engine } from 'autothrottle/engine'
import { FakeClock } from 'autothrottle/testing'
const server = createServer((request, response) => response.end(request.url)).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const throttle = createThrottle({ defaults: { delay: 1 } })
const response = await throttle.fetch('http://127.0.0.1:' + server.address().port + '/hello')
server.close()
let error
try { createThrottle({ concurency: 1 }) } catch (thrown) { error = thrown }
const text = await response.text()
console.log(JSON.stringify([text, error instanceof ConfigError, new Engine().poll(0), new FakeClock().now()]))
`

test('it imports and sends one request', () => {
  writeFileSync(join(scratch, 'program.mjs'), PROGRAM)
  assert.deepEqual(JSON.parse(run(process.execPath, ['program.mjs'])), ['/hello', true, -2, 0])
})

test('nothing happens at import: no timer, no randomness, no module compiled, no fetch', () => {
  const program = `
    const used = []
    for (const [where, name] of [
      [globalThis, 'setTimeout'], [globalThis, 'setInterval'], [globalThis, 'fetch'],
      [crypto, 'getRandomValues'], [Math, 'random'],
      [WebAssembly, 'Module'], [WebAssembly, 'Instance'], [Date, 'now'], [performance, 'now'],
    ]) {
      const real = where[name]
      const note = () => used.push(name)
      where[name] = new Proxy(real, {
        apply: (target, self, args) => (note(), Reflect.apply(target, self, args)),
        construct: (target, args) => (note(), Reflect.construct(target, args)),
      })
    }
    const { createThrottle } = await import('autothrottle')
    await import('autothrottle/engine')
    await import('autothrottle/testing')
    const atImport = [...used]
    createThrottle()
    console.log(JSON.stringify([atImport, used]))`
  writeFileSync(join(scratch, 'quiet.mjs'), program)
  const [atImport, atCreation] = JSON.parse(run(process.execPath, ['quiet.mjs']))
  assert.deepEqual(atImport, [])
  assert.deepEqual(atCreation, ['Module', 'Instance'], 'a throttle compiles the module and nothing else')
})

test('Node reads two files of code up to the first permit, and loads no streams', () => {
  const program = `
    import { register } from 'node:module'
    const hooks = \`
      import { writeSync } from 'node:fs'
      export const load = (url, context, next) => {
        writeSync(1, (/node_modules.autothrottle.(.*)/.exec(url)?.[1] ?? '') + ' ')
        return next(url, context)
      }\`
    register('data:text/javascript,' + encodeURIComponent(hooks))
    const { createThrottle } = await import('autothrottle')
    const permit = await createThrottle().acquire('https://api.example')
    permit.settle()`
  writeFileSync(join(scratch, 'files.mjs'), program)
  const files = run(process.execPath, ['files.mjs']).trim().split(/ +/)
  assert.equal(files.length, 2, files.join())
  assert.ok(files.includes('dist/node/index.js'))
  const loaded = `
    const { createThrottle } = await import('autothrottle')
    const permit = await createThrottle().acquire('https://api.example')
    permit.settle()
    console.log(process.moduleLoadList.filter((each) => / (?:stream|zlib|net)$/.test(each)).join())`
  assert.equal(run(process.execPath, ['--input-type=module', '-e', loaded]).trim(), '')
})

test('the entries for clients need none of them', () => {
  const needing = ['domains', 'robots', 'opentelemetry', 'undici', 'durable-object', 'index']
  const entries = ENTRIES.filter((name) => !needing.includes(name))
  assert.ok(entries.includes('axios'))
  const program = `
    const entries = ${JSON.stringify(entries)}
    for (const entry of entries) {
      const { ...exported } = await import('autothrottle/' + entry)
      if (Object.keys(exported).length === 0) throw new Error(entry)
    }`
  writeFileSync(join(scratch, 'clients.mjs'), program)
  run(process.execPath, ['clients.mjs'])
})

test('without the command a sentence says what to type, and with its package both start it', () => {
  const read = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const main = join(scratch, 'node_modules/autothrottle')
  const { bin, version } = read(main)
  const without = spawnSync(process.execPath, [join(main, bin.autothrottle), 'crawl'], { encoding: 'utf8' })
  assert.equal(without.status, 2)
  assert.equal(without.stdout, '')
  assert.equal(
    without.stderr,
    'The command is a package of its own: type npx autothrottle-cli for npx autothrottle.\n',
  )
  const { installed } = addCommand()
  const command = read(installed)
  assert.deepEqual([command.version, command.dependencies], [version, { autothrottle: version }])
  const file = join(installed, command.bin['autothrottle-cli'])
  for (const each of [file, join(main, bin.autothrottle)])
    assert.equal(run(process.execPath, [each, '--version']), `${version}\n`)
  const links = [...readFileSync(join(installed, 'README.md'), 'utf8').matchAll(/\]\(([^)#\s]+)/g)]
  assert.deepEqual(
    links.filter(([, target]) => !target.startsWith('https://')),
    [],
    'no link of its page leads into a folder that it does not have',
  )
  const options = { server: { model: 'nginx', rate: 10 }, throttle: { rate: 5 }, duration: 10_000 }
  writeFileSync(join(scratch, 'simulate.json'), JSON.stringify(options))
  const { served } = JSON.parse(run(process.execPath, [file, 'simulate', 'simulate.json', '--json']))
  assert.ok(served > 40, `${served}`)
})

test('its types are complete', () => {
  const program = `
import { build, createThrottle, throttledFetch, type Permit, type ThrottleOptions } from 'autothrottle'
import { simulate } from 'autothrottle/simulate'
import { Engine, parseHints, parseRobots, WAIT, type Reason } from 'autothrottle/engine'
import { FakeClock } from 'autothrottle/testing'
const defaults: ThrottleOptions['defaults'] = { jitter: [-0.1, 0.3], quota: [5, { limit: 9 }] }
const options: ThrottleOptions = { clock: new FakeClock(), defaults }
const throttle = createThrottle(options)
const fetching: typeof fetch = throttledFetch(throttle)
const result: Promise<number> = throttle.run('https://a.example/', async (permit: Permit) => permit.sentAt)
throttle.addEventListener('warning', (event) => event.code satisfies string)
throttle.addEventListener('stall', (event) => event.forMs satisfies number)
// @ts-expect-error: no event has this name
throttle.addEventListener('stal', () => {})
// @ts-expect-error: unknown options are an error to the compiler too
createThrottle({ concurency: 1 })
// @ts-expect-error: a delay is a number
createThrottle({ defaults: { delay: '1s' } })
const engine = new Engine()
const isWaiting: boolean = engine.poll(0) === WAIT
const reason: Reason | undefined = engine.reason
const delay: number | null = parseHints({ 'Retry-After': '1' }, { status: 429 }).delayMs
const asked: { crawlDelayMs: number } | null = parseRobots('', 'bot')
const hooks: ThrottleOptions = {
  getResponseBackoff: (response, { url }) => (response.ok ? undefined : { [url]: { delay: 5, cost: 2 } }),
  getErrorBackoff: async (error) => (error instanceof Error ? ['a', 'b'] : null),
  getResponseDelay: (response) => Number(response.headers.get('x')),
  redirects: 'throttle',
  release: 'body',
  defaults: {
    manager: (scope) => ({
      delay: scope.length,
      onBad: ({ status }) => void (status satisfies number | undefined),
    }),
  },
}
// @ts-expect-error: "sometimes" is no way to follow them
createThrottle({ redirects: 'sometimes' })
// @ts-expect-error: a hook names scopes or says what it means for each
createThrottle({ getResponseBackoff: () => 7 })
const server = { model: 'gcra', rate: 5 } as const
const { summary, trace } = simulate({ server, throttle: { defaults: { rampup: true } } })
const share: number = summary.shareRefused + trace.sent.length
// @ts-expect-error: no model has this name
simulate({ server: { model: 'abacus' } })
const from: string = build.revision
const rampup = { backoffTarget: [1, 3] } as const
createThrottle({ retry: { limit: 3 }, robots: { userAgent: 'bot' }, defaults: { rampup } })
console.log(hooks, share, from, delay, asked, fetching, result, isWaiting, reason)
`
  writeFileSync(join(scratch, 'program.ts'), program)
  const compilerOptions = {
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2022', 'dom', 'esnext.disposable'],
    types: [],
  }
  writeFileSync(join(scratch, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }))
  const tsc = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc')], {
    cwd: scratch,
    encoding: 'utf8',
  })
  assert.equal(tsc.stdout, '')
  assert.equal(tsc.status, 0)
})
