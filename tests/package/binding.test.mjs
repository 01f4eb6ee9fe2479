/** The binding's own tests, `crates/bindings/convert/tests/`: in Node, Chromium and Firefox. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { serveFolder } from '../../site/serve.mjs'
import { BROWSERS, posted } from '../browsers.mjs'
import { skipUnless } from '../required.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'autothrottle-binding-'))
after(() => rmSync(folder, { recursive: true }))

/**
 * The part of wasm-bindgen-test's own runner that these tests need, without its web server and its drivers.
 */
const RUN = `
const said = []
globalThis.__wbg_test_invoke = (test) => test()
globalThis.__wbgtest_og_console_log = (line) => said.push(line)
export async function run(bytes) {
  const binding = await import('./binding.js')
  const exported = await binding.default({ module_or_path: bytes })
  const tests = Object.keys(exported).filter((name) => name.startsWith('__wbgt_'))
  await new binding.WasmBindgenTestContext(false).run(tests.map((name) => exported[name]))
  return said.join('\\n')
}`
const PAGE = `<!doctype html><pre id="output"></pre><script type="module">
import { run } from './run.js'
const bytes = fetch('binding_bg.wasm').then((response) => response.arrayBuffer())
const said = await bytes.then(run).catch(String)
await fetch('/said', { method: 'POST', body: said + document.querySelector('pre').textContent })
</script>`

function cargo(...args) {
  const { status, stdout, stderr } = spawnSync('cargo', args, { cwd: root, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return stdout
}

before(() => {
  const target = ['--target', 'wasm32-unknown-unknown', '--package', 'autothrottle-convert']
  const told = cargo('test', '--locked', ...target, '--test', 'values', '--no-run', '--message-format=json')
  const [, module] = /"executable":"([^"]+)"/.exec(told)
  cargo('xtask', 'bind', module, folder, 'binding')
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'run.js'), RUN)
  writeFileSync(join(folder, 'index.html'), PAGE)
})

const written = readFileSync(join(root, 'crates/bindings/convert/tests/values.rs'), 'utf8')
const count = written.match(/^#\[wasm_bindgen_test\]$/gm).length
const isGreen = new RegExp(`test result: ok\\. ${count} passed; 0 failed`)

test('the binding in Node', async () => {
  const { run } = await import(pathToFileURL(join(folder, 'run.js')))
  assert.match(await run(readFileSync(join(folder, 'binding_bg.wasm'))), isGreen)
})

for (const browser of BROWSERS) {
  const skip = skipUnless(existsSync(`/usr/bin/${browser.command}`), `${browser.command} is missing`)
  test(`the binding in ${browser.name}`, { skip }, async () => {
    assert.match(await posted(browser, serveFolder(folder)), isGreen)
  })
}
