/**
 * `autothrottle/slim` as it is packed: the module from each place that may have it, what is refused, what it
 * weighs, bundled by Vite and esbuild, and in a browser.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { brotliCompressSync } from 'node:zlib'
import { BROWSERS, posted } from '../browsers.mjs'
import { skipUnless } from '../required.mjs'
import { packed } from './install.mjs'
import { SLIM_MODULE_BUDGET } from './sizes.mjs'

const { scratch, run, remove } = packed()
after(remove)
const wasm = join(scratch, 'node_modules/autothrottle/pkg/autothrottle_bg.wasm')

/** The output of a fresh process that tries each of these in turn. */
function tried(...sources) {
  const program = `
    import { readFileSync } from 'node:fs'
    import { createThrottle, initialize, NotInitializedError } from 'autothrottle/slim'
    const url = new URL(import.meta.resolve('autothrottle/slim.wasm'))
    const bytes = readFileSync(url)
    const response = (body, type, status = 200) =>
      new Response(body, { status, headers: type ? { 'content-type': type } : {} })
    for (const source of [${sources.map((each) => `() => ${each}`).join()}]) {
      let said
      try {
        await initialize(source())
        said = await createThrottle().run('https://a.example/', () => 'works')
      } catch (error) {
        said = [error instanceof NotInitializedError, error.code, error.message].join()
      }
      console.log(said)
    }`
  writeFileSync(join(scratch, 'slim.mjs'), program)
  return run(process.execPath, ['slim.mjs']).trim().split('\n')
}

for (const source of [
  'url',
  'url.href',
  'bytes',
  'bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)',
  'new WebAssembly.Module(bytes)',
  'WebAssembly.compile(bytes)',
  "response(bytes, 'application/wasm')",
  "Promise.resolve(response(bytes, 'application/octet-stream'))",
])
  test(`the module comes from ${source}`, () => assert.deepEqual(tried(source), ['works']))

test('initialize refuses bytes that are no module, says why, and may be tried again', () => {
  const other = "Buffer.concat([bytes.subarray(0, -1), Buffer.from('x')])"
  const said = tried(
    "response('<!doctype html>', 'text/html')",
    "response('gone', 'text/plain', 404)",
    '7',
    'bytes.subarray(0, 8)',
    other,
    "new URL('file:///nowhere.wasm')",
    'bytes',
  )
  const refused = /^true,ERR_NOT_INITIALIZED,autothrottle\/slim: /
  for (const line of said.slice(0, -1)) assert.match(line, refused)
  assert.match(said[0], /no WebAssembly module/)
  assert.match(said[1], /404/)
  assert.match(said[2], /got Number$/)
  assert.match(said[3], /this is version [\d.]+; the module is of another$/)
  assert.match(said[4], /this is version [\d.]+; the module is of [\d.x]+$/)
  assert.match(said[5], /could not be had from file:/)
  assert.equal(said[6], 'works')
})

test('without the module it says what to write', () => {
  const program = `import { createThrottle } from 'autothrottle/slim'
    try { createThrottle() } catch ({ code, message }) { console.log(code, message) }`
  writeFileSync(join(scratch, 'without.mjs'), program)
  assert.match(run(process.execPath, ['without.mjs']), /^ERR_NOT_INITIALIZED .*await initialize/)
})

test('classes are those of the main entry, and other entries work with it', () => {
  const program = `
    import { readFileSync } from 'node:fs'
    import * as main from 'autothrottle'
    import { ConfigError, createThrottle, initialize } from 'autothrottle/slim'
    import { FakeClock } from 'autothrottle/testing'
    await initialize(readFileSync(${JSON.stringify(wasm)}))
    const clock = new FakeClock()
    console.log(ConfigError === main.ConfigError, createThrottle({ clock }).now?.() ?? clock.now())`
  writeFileSync(join(scratch, 'both.mjs'), program)
  assert.equal(run(process.execPath, ['both.mjs']).trim(), 'true 0')
})

test(`the module stays below ${SLIM_MODULE_BUDGET} bytes as a server sends it`, (t) => {
  const sent = brotliCompressSync(readFileSync(wasm)).length
  t.diagnostic(`${sent} bytes`)
  assert.ok(sent <= SLIM_MODULE_BUDGET, `${sent} bytes`)
})

const PAGE = `
import { createThrottle, initialize } from 'autothrottle/slim'
import url from 'autothrottle/slim.wasmQUERY'
let said
try {
  await initialize(fetch(new URL(url, import.meta.url)))
  said = await createThrottle().run('https://a.example/', () => 'works')
} catch (error) {
  said = String(error)
}
await fetch('/result', { method: 'POST', body: said })
`
const BUNDLERS = {
  async Vite(outDir) {
    writeFileSync(join(scratch, 'page.js'), PAGE.replace('QUERY', '?url'))
    const { build } = await import('vite')
    const input = join(scratch, 'page.js')
    const rolldownOptions = { input, output: { entryFileNames: 'main.js' } }
    const options = { outDir, target: 'es2022', rolldownOptions, emptyOutDir: false }
    await build({ root: scratch, base: './', logLevel: 'error', configFile: false, build: options })
  },
  async esbuild(outDir) {
    writeFileSync(join(scratch, 'page.js'), PAGE.replace('QUERY', ''))
    const { build } = await import('esbuild')
    await build({
      entryPoints: { main: join(scratch, 'page.js') },
      outdir: outDir,
      bundle: true,
      minify: true,
      format: 'esm',
      target: 'es2022',
      loader: { '.wasm': 'file' },
      logLevel: 'error',
    })
  },
}

for (const [name, bundle] of Object.entries(BUNDLERS)) {
  test(`bundled by ${name}, the module is a file beside, and a page runs it`, async (t) => {
    const folder = mkdtempSync(join(scratch, `${name}-`))
    await bundle(folder)
    const made = readdirSync(folder, { recursive: true })
    const assets = made.filter((path) => path.endsWith('.wasm'))
    assert.equal(assets.length, 1, made.join())
    assert.deepEqual(readFileSync(join(folder, assets[0])), readFileSync(wasm))
    assert.ok(readFileSync(join(folder, 'main.js')).length < 120_000, 'no bytes of it in the code')
    if (skipUnless(existsSync('/usr/bin/chromium'))) return t.diagnostic('no Chromium: bundled, not run')
    assert.equal(await inChromium(folder), 'works')
  })
}

/** The message that the page in this folder posts. Its policy only lets WebAssembly compile. */
function inChromium(folder) {
  const types = { '.js': 'text/javascript', '.wasm': 'application/wasm' }
  return posted(BROWSERS[0], (request, response) => {
    const path = new URL(request.url, 'http://x').pathname
    const type = types[/\.\w+$/.exec(path)?.[0]]
    if (type !== undefined && !path.includes('..') && existsSync(join(folder, path)))
      response.setHeader('content-type', type).end(readFileSync(join(folder, path)))
    else {
      response.setHeader('content-security-policy', "script-src 'self' 'wasm-unsafe-eval'")
      response.setHeader('content-type', 'text/html').end('<script type="module" src="/main.js"></script>')
    }
  })
}
