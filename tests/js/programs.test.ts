/** Programs of their own: what a newcomer types first, a stack overflow, an end while requests wait. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { bundled } from './serve.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'autothrottle-programs-'))
after(() => rmSync(scratch, { recursive: true }))
const exported = "export * from 'autothrottle'; export { local } from 'autothrottle/local'"
const library = pathToFileURL(await bundled(scratch, exported))

/** Runs a module that imports the library, to its end. */
const play = (text: string, ...flags: string[]) =>
  spawnSync(process.execPath, [...flags, '--input-type=module', '-e', text], {
    encoding: 'utf8',
    timeout: 60_000,
  })

/** Runs a program with a throttle whose server answers at once; gives its exit code and what it printed. */
function program(text: string, answer = 'new Response("x")') {
  const head = `
    import { createThrottle } from '${library}'
    let sent = 0
    const fetch = async () => (sent++, ${answer})
    const urls = Array.from({ length: 40 }, (_, n) => 'https://quotes.example/' + n)
    const throttle = createThrottle({ rate: 1000, fetch })
  `
  const { status, stdout, stderr } = play(head + text)
  return { status, printed: stdout.trim(), warned: stderr.split('\n').filter((line) => /^auto/.test(line)) }
}

const MAP = `
  let pages = 0
  for await (const page of throttle.map(urls, async (url) => (await throttle.fetch(url)).text())) pages++
  console.log(pages, sent)`

test('throttle.fetch in map ends, at the top and in main, with all pages and exit 0', () => {
  const all = { status: 0, printed: '40 40', warned: [] }
  assert.deepEqual(program(MAP), all)
  assert.deepEqual(program(`async function main() {${MAP}}\nmain()`), all)
})

test('throttle.fetch after an await in run ends, too', () => {
  const text = `
    const late = async (url) => {
      await new Promise((resolve) => setImmediate(resolve))
      return (await throttle.fetch(url)).status
    }
    console.log(new Set(await Promise.all(urls.map((url) => throttle.run(url, () => late(url))))), sent)`
  assert.deepEqual(program(text), { status: 0, printed: 'Set(1) { 200 } 40', warned: [] })
})

test('a function that keeps its answers to itself is told of, on the console', () => {
  const text = `
    for await (const _ of throttle.map(urls, async (url) => (await fetch(url)).text()));
    console.log(sent)`
  const { status, printed, warned } = program(text)
  assert.deepEqual([status, printed, warned.length], [0, '40', 1])
  assert.match(warned[0]!, /^autothrottle: the last requests of .* ended without a status, .*\(no-status\)$/)
})

test('with the fetch of the permit a 429 stops it', () => {
  const text = `
    throttle.addEventListener('hold', () => setImmediate(() => (console.log(sent), process.exit())))
    for await (const _ of throttle.map(urls, async (url, { fetch }) => (await fetch(url)).text()));`
  const { printed } = program(text, `new Response('', { status: 429, headers: { 'retry-after': '600' } })`)
  assert(Number(printed) <= 16, printed)
})

describe('a stack overflow that a program caught', () => {
  /** Recursion until a call into the engine is where the stack ends; `then` is what happens next. */
  function run(then: string, shared = 'undefined') {
    const script = `
      import { createThrottle, EngineBrokenError, local } from '${library}'
      const free = { delay: 0, slotDelay: 0, maxInFlight: 2, defaults: { concurrency: 2 }, warnings: false }
      const throttle = createThrottle({ ...free, shared: ${shared} })
      const url = 'https://a.example/'
      process.on('uncaughtException', (error) => console.log('uncaught ' + error.code))
      const held = [await throttle.acquire(url), await throttle.acquire(url)]
      const waits = throttle.acquire(url).then(() => 'went', (error) => error.code)
      const deep = (...pad) => { throttle.scope('a.example').stats; throttle.peek(url); deep(...pad) }
      const probe = () => { try { throttle.stats(); throttle.peek(url); throttle.scope("q").pause(); return true } catch (error) { return error.code } }
      for (let pad = 0; pad < 300 && probe() === true; pad++)
        try { deep(...Array(pad % 97)) } catch {}
      console.log(probe())
      ${then}`
    return play(script).stdout.trim().split('\n')
  }

  const CODE = 'ERR_ENGINE_BROKEN'

  test('an overflow in a call: what waits is rejected, each later call says so, and another throttle works', () => {
    const lines = run(
      `const heard = await throttle.acquire(url).catch((error) => error)
      console.log(await waits, heard.code, heard instanceof EngineBrokenError, heard.message)
      for (const permit of held) permit.settle({ status: 200 })
      await throttle.idle()
      throttle.close()
      for (const call of ['run', 'fetch', 'wrap'])
        console.log(await throttle[call === 'wrap' ? 'run' : call](url, call === 'fetch' ? {} : () => 1).catch((error) => error.code))
      const other = createThrottle(free)
      console.log(await other.run(url, () => 'works'))`,
    )
    assert.equal(lines[0], CODE)
    assert.match(
      lines[1]!,
      /^ERR_ENGINE_BROKEN ERR_ENGINE_BROKEN true .*end that recursion, and make a new throttle/,
    )
    assert.deepEqual(lines.slice(2), [CODE, CODE, CODE, 'works'])
  })

  test('nothing is thrown where it is not caught, and no call is needed to hear of it', () => {
    const lines = run('console.log(await waits)')
    assert.deepEqual(lines, [CODE, CODE])
    const settled = run('held[0].settle(); throttle.close(); console.log(await waits)')
    // Both the caller of `settle` and the caller of `acquire` get the error.
    assert.deepEqual(settled, [CODE, `uncaught ${CODE}`])
    // In the turn in which it was made a throttle has not looked at its settings yet.
    const fresh = run(`
      await waits
      const other = createThrottle(free)
      const again = (...pad) => { other.scope('a.example').stats; other.peek(url); again(...pad) }
      const isBroken = () => { try { other.stats(); other.scope('q').pause() } catch { return true } }
      for (let pad = 0; pad < 300 && !isBroken(); pad++) try { again(...Array(pad % 97)) } catch {}
      await new Promise(setImmediate)
      console.log(isBroken())`)
    assert.deepEqual(fresh, [CODE, 'true'])
  })

  test('a call into the module of shared limits that is broken off ends it, and its process leaves the group', () => {
    const folder = mkdtempSync(join(tmpdir(), 'overflow-'))
    try {
      const shared = `local({ name: 'broken', folder: ${JSON.stringify(folder)} })`
      const lines = run(
        `console.log(await waits)
        for (const permit of held) permit.settle({ status: 200 })
        console.log(await throttle.run(url, () => 1).catch((error) => error.code))
        await throttle.idle()
        await throttle[Symbol.asyncDispose]()
        const other = createThrottle({ ...free, shared: ${shared} })
        console.log(await other.run(url, () => 'works'))
        other.close()`,
        shared,
      )
      assert.deepEqual(lines, [CODE, CODE, CODE, 'works'])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('programs that end while requests wait', () => {
  const WAITS =
    /never-sent: the program ends while requests wait for a\.example: 1; in flight and never settled: 1/

  function run(body: string) {
    const listen =
      "throttle.addEventListener('warning', ({ code, message }) => console.log(code + ': ' + message))"
    const script = `import { createThrottle } from '${library}'; const url = 'https://a.example/'
      const throttle = createThrottle({ delay: 0 }); ${listen}; ${body}`
    return play(script, '--expose-gc')
  }

  test('a permit that is never settled: the program says what waits when it ends', () => {
    // Kept: of a permit that is garbage another warning tells.
    const top = run('globalThis.kept = await throttle.acquire(url); await throttle.acquire(url)')
    assert.match(top.stdout, WAITS)
    assert.equal(top.status, 13)
    const inMain = run(
      'async function main() { globalThis.kept = await throttle.acquire(url); await throttle.acquire(url) }; main()',
    )
    assert.match(inMain.stdout, WAITS)
    assert.equal(inMain.stdout.trim().split('\n').length, 1)
    assert.equal(inMain.status, 0)
  })

  test('a permit that is never settled, and no request waits for it: the program says so when it ends', () => {
    const one = run(
      'globalThis.kept = await throttle.acquire(url); (await throttle.acquire("https://b.example/")).settle()',
    )
    assert.match(
      one.stdout,
      /^permit-lost: the program ends; in flight and never settled: 1 \(use `run`, or `using/,
    )
    assert.equal(one.stdout.trim().split('\n').length, 1)
    assert.equal(one.status, 0)
  })

  test('a permit that never ends, or is never let go, is reported by its name', () => {
    const never = 'new Promise(() => {})'
    const told: [string, RegExp][] = [
      [`await throttle.run(url, () => ${never})`, /^permit-lost: .* never settled: 1 \(a function of run/],
      [
        `for await (const one of throttle.map([url], () => ${never})) one`,
        /^permit-lost: .* \(a function of run/,
      ],
      ['throttle.pause(); await throttle.fetch(url)', /^never-sent: .* a\.example: 1; paused: resume/],
      [`await with_({ fetch: () => ${never} })`, /^permit-lost: .* never settled: 1 \(/],
      [`await with_({ getScopes: () => ${never} })`, /^never-sent: .* wait for getScopes or robots\.txt: 1$/],
      [
        `await with_({ robots: { userAgent: 'b' }, fetch: () => ${never} })`,
        /^never-sent: .* robots\.txt: 1$/,
      ],
    ]
    const others = `const with_ = (options) => {
      const other = createThrottle(options)
      other.addEventListener('warning', ({ code, message }) => console.log(code + ': ' + message))
      return other.fetch(url)
    };`
    for (const [body, want] of told) {
      // An object that only a promise knew that never resolves is garbage by then.
      const { stdout, status } = run(`${others}setImmediate(gc); ${body}`)
      assert.match(stdout.trim(), want, body)
      assert.equal(stdout.trim().split('\n').length, 1, stdout)
      assert.equal(status, 13, body)
    }
  })

  test('results of map that no loop read are reported when the program ends', () => {
    const slip = run('const pages = await throttle.map([url], () => 1)')
    assert.match(
      slip.stdout,
      /^never-sent: the program ends, and no loop has read what map gives: for await \(/,
    )
    assert.equal(slip.status, 0)
    const read = run('for await (const page of throttle.map([url], () => 1)) console.log(page)')
    assert.equal(read.stdout, '1\n')
  })

  test('a host in scopes that no request met is told when the program ends', () => {
    const { stderr, status } = run(
      `const other = createThrottle({ scopes: { 'github.com': { rate: 5 } } })
      await other.run('https://api.github.com/', () => 1)`,
    )
    assert.match(
      stderr,
      /^autothrottle: scopes\."github\.com" has no effect: requests go to "api\.github\.com" \(no-effect\)\n$/,
    )
    assert.equal(status, 0)
  })

  test('a program that ends with nothing waiting, or on purpose, says nothing', () => {
    const settled =
      'const permit = await throttle.acquire(url); const next = throttle.acquire(url); permit.settle()'
    for (const body of [
      `${settled}; (await next).settle()`,
      'await throttle.acquire(url); throttle.acquire(url); process.exit()',
      'await throttle.acquire(url); throttle.acquire(url).catch(() => {}); throttle.close()',
    ]) {
      const { stdout, stderr, status } = run(body)
      assert.deepEqual({ stdout, stderr, status }, { stdout: '', stderr: '', status: 0 })
    }
  })
})

// `npm start` as a newcomer meets it: its help before anything is there, and a host that is down.

const clone = join(scratch, 'clone')
for (const folder of ['tools/scripts', 'examples', 'js/command']) {
  mkdirSync(join(clone, folder), { recursive: true })
  cpSync(join(root, folder), join(clone, folder), { recursive: true })
}
/** In a clone without packages and without a build. */
const start = (...args: string[]) =>
  spawnSync(process.execPath, ['tools/scripts/start.mjs', ...args], { cwd: clone, encoding: 'utf8' })

test('help comes before anything is built', () => {
  const { status, stdout, stderr } = start('--help')
  assert.equal(status, 0, stderr)
  assert.match(stdout, /^npm start -- \[URL…\] \[options\]\n[\s\S]*--max-pages N/)
  assert.doesNotMatch(stdout, /building/)
})

test('a misspelt option is an error before anything is built', () => {
  const { status, stdout, stderr } = start('--max-page', '5')
  assert.equal(status, 2)
  assert.match(stderr, /^there is no option --max-page: did you mean --max-pages\?\n[\s\S]*--max-pages N/)
  assert.equal(stdout, '')
})

for (const host of ['127.0.0.1', 'localhost']) {
  test(`a host that is down says ECONNREFUSED: ${host}`, async () => {
    const server = createServer().listen(0, host)
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    const args = [
      '--import',
      'tsx',
      'examples/start.ts',
      `http://${host}:${port}/`,
      ...['--start-delay', '0', '--delay', '0', '--retries', '0', '--ignore-robots'],
    ]
    const child = spawn(process.execPath, args, { cwd: root })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (said += part))
    const code = await new Promise((resolve) => child.on('exit', resolve))
    assert.match(said, /ECONNREFUSED/)
    assert.equal(code, 1)
  })
}
