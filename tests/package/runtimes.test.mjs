/**
 * The packed tarball in every runtime that is there: the same conformance program, unchanged; in browsers as
 * plain modules with an import map, without a bundler.
 *
 * A new runtime is a line in `RUNTIMES` and, if npm has it, one in `tests/runtimes/package.json`. In
 * `npm run test:all` all of them must be there; by hand, those that are missing are skipped by name (`npm
 * install --prefix tests/runtimes` fetches them).
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { BROWSERS, posted } from '../browsers.mjs'
import { skipUnless } from '../required.mjs'
import { listen } from '../serve.mjs'
import { packed } from './install.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const bin = (path) => join(root, 'tests/runtimes/node_modules', path)
const RUNTIMES = [
  { name: 'this Node', command: process.execPath, args: [] },
  { name: 'Node 22', command: bin('node22/bin/node'), args: [] },
  { name: 'Node 24', command: bin('node24/bin/node'), args: [] },
  { name: 'Node 26', command: bin('node26/bin/node'), args: [] },
  { name: 'Deno', command: bin('.bin/deno'), args: ['run', '--no-lock', '--allow-net'] },
  { name: 'Bun', command: bin('.bin/bun'), args: [] },
]

const { scratch, run, remove } = packed()
after(remove)
for (const name of ['conformance.mjs', 'redirects.mjs']) {
  copyFileSync(join(root, 'tests/runtimes', name), join(scratch, name))
}
const main = `import { createThrottle } from 'autothrottle'
import { check } from './redirects.mjs'
console.log(await check(createThrottle, 'BASE'))
`

/** Redirects as `/STATUS?to=…` says; anything else says what it was asked. */
const mirror = await listen(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  const url = new URL(request.url, 'http://x')
  const status = Number(url.pathname.slice(1))
  if (status) return response.writeHead(status, { location: url.searchParams.get('to') }).end('moved')
  const { authorization, 'x-own': own } = request.headers
  response.end(JSON.stringify({ method: request.method, body, authorization, own }))
})
after(mirror.stop)
writeFileSync(join(scratch, 'main.mjs'), main.replace('BASE', mirror.url))
const { WANTED } = await import('../runtimes/redirects.mjs')

for (const { name, command, args } of RUNTIMES) {
  const isThere = existsSync(command)
  test(name, { skip: skipUnless(isThere) }, async (t) => {
    assert.ok(isThere, `${name} is missing: npm install --prefix tests/runtimes`)
    t.diagnostic(run(command, ['--version']).split('\n')[0])
    assert.match(run(command, [...args, 'conformance.mjs']), /^conformance: \d+ checks passed$/m)
    assert.equal((await output(command, [...args, 'main.mjs'])).trim(), WANTED, 'redirects')
  })
}

/** The output of a program, while the mirror in this process answers it. */
function output(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: scratch, env: { ...process.env, NO_COLOR: '1' } })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (part) => {
        said += part
      })
    }
    child.on('error', reject)
    child.on('close', () => resolve(said))
  })
}

const PAGE = `<!doctype html><title>conformance</title>
<script type="importmap">{ "imports": {
  "autothrottle": "/node_modules/autothrottle/dist/index.js",
  "autothrottle/engine": "/node_modules/autothrottle/dist/engine.js",
  "autothrottle/testing": "/node_modules/autothrottle/dist/testing.js"
} }</script>
<script type="module">
  const lines = []
  console.log = (line) => lines.push(line)
  try { await import('/conformance.mjs') } catch (error) { lines.push(String(error), error.stack) }
  await fetch('/result', { method: 'POST', body: lines.join('\\n') })
</script>`

/** A page whose policy allows no script inside it; it says whether it may compile. */
const STRICT_PAGE = '<!doctype html><title>policy</title><script type="module" src="/policy.js"></script>'
const POLICY = `import { createThrottle } from '/node_modules/autothrottle/dist/index.js'
let said
try {
  said = await createThrottle().run('https://a.example/', () => 'works')
} catch (error) {
  said = [error.name, error.code, error.message, error.cause].join('\\n')
}
await fetch('/result', { method: 'POST', body: said })
`
writeFileSync(join(scratch, 'policy.js'), POLICY)

/** The message that the page posts, beside the scratch project. */
const inBrowser = (browser, page = PAGE, policy = undefined) =>
  posted(browser, (request, response) => {
    const path = new URL(request.url, 'http://x').pathname
    if (path === '/') {
      if (policy !== undefined) response.setHeader('content-security-policy', policy)
      response.setHeader('content-type', 'text/html').end(page)
    } else if (/^[\w./-]+\.m?js$/.test(path) && !path.includes('..') && existsSync(scratch + path)) {
      response.setHeader('content-type', 'text/javascript').end(readFileSync(scratch + path))
    } else {
      response.writeHead(404).end()
    }
  })

for (const browser of BROWSERS) {
  const version = spawnSync(browser.command, ['--version'], { encoding: 'utf8' })
  const isThere = version.status === 0
  test(browser.name, { skip: skipUnless(isThere) }, async (t) => {
    assert.ok(isThere, `${browser.command} is missing`)
    t.diagnostic(version.stdout.trim())
    assert.match(await inBrowser(browser), /^conformance: \d+ checks passed$/m)
    const strict = "default-src 'none'; connect-src 'self'; script-src 'self'"
    const blocked = await inBrowser(browser, STRICT_PAGE, strict)
    assert.match(
      blocked,
      /^WasmBlockedError\nERR_WASM_BLOCKED\n.*'wasm-unsafe-eval'.*docs\/runtimes\.md.*\n.*CompileError/,
    )
    assert.equal(await inBrowser(browser, STRICT_PAGE, `${strict} 'wasm-unsafe-eval'`), 'works')
  })
}

/** A Worker as wrangler would bundle it, served by workerd itself. */
async function inWorkerd(work) {
  copyFileSync(join(root, 'tests/runtimes/worker.mjs'), join(scratch, 'worker.mjs'))
  // A module runs once in an isolate, and an object shares that of its Worker.
  copyFileSync(join(scratch, 'conformance.mjs'), join(scratch, 'conformance-again.mjs'))
  const { build } = await import('esbuild')
  const outdir = join(scratch, 'worker')
  await build({
    entryPoints: [join(scratch, 'worker.mjs')],
    bundle: true,
    format: 'esm',
    target: 'es2022',
    conditions: ['workerd', 'worker'],
    external: ['cloudflare:workers'],
    loader: { '.wasm': 'copy' },
    assetNames: '[name]',
    outdir,
    outExtension: { '.js': '.mjs' },
    logLevel: 'error',
  })
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.on('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  writeFileSync(
    join(outdir, 'config.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  compatibilityDate = "2026-01-01",
  durableObjectNamespaces = [(className = "Limiter", uniqueKey = "limiter")],
  durableObjectStorage = (inMemory = void),
  bindings = [(name = "LIMITER", durableObjectNamespace = "Limiter")],
  modules = [
    (name = "worker.mjs", esModule = embed "worker.mjs"),
    (name = "autothrottle_bg.wasm?module", wasm = embed "autothrottle_bg.wasm"),
  ],
);`,
  )
  const workerd = spawn(WORKERD, ['serve', 'config.capnp'], {
    cwd: outdir,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  workerd.stderr.on('data', (part) => {
    said += part
  })
  try {
    const url = `http://127.0.0.1:${port}`
    for (let tries = 0; ; tries++) {
      try {
        await (await fetch(`${url}/up`)).text()
        break
      } catch (error) {
        if (tries > 100 || workerd.exitCode !== null) throw new Error(`workerd: ${said}`, { cause: error })
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
    return await work(url)
  } catch (error) {
    throw new Error(`workerd said: ${said}\n${error.message}`, { cause: error })
  } finally {
    workerd.kill('SIGKILL')
  }
}

const WORKERD = bin('workerd/bin/workerd')
const isWorkerdThere = existsSync(WORKERD)
const skip = skipUnless(isWorkerdThere)

test('workerd', { skip }, async (t) => {
  assert.ok(isWorkerdThere, 'workerd is missing')
  t.diagnostic(run(WORKERD, ['--version']).trim())
  await inWorkerd(async (url) => {
    assert.match(await (await fetch(`${url}/conformance`)).text(), /^conformance: \d+ checks passed$/m)
    assert.match(await (await fetch(`${url}/object/conformance`)).text(), /^conformance: \d+ checks passed$/m)
    assert.equal(await (await fetch(`${url}/redirects?base=${mirror.url}`)).text(), WANTED, 'redirects')
    for (const path of ['/shared', '/object/shared']) {
      const sent = await Promise.all(Array.from({ length: 8 }, async () => (await fetch(url + path)).json()))
      sent.sort((a, b) => a - b)
      for (let index = 1; index < sent.length; index++) {
        const times = sent.map((at) => at - sent[0])
        assert.ok(sent[index] - sent[index - 1] >= 59, `${path}: sent at ${times}`)
      }
    }
  })
})
