/**
 * The component as it is shipped: it is what its WIT says, has no imports, is small, and runs. Hosts that
 * drive it are tested in `tests/component` (Rust).
 */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { capture } from '../../tools/scripts/lib.mjs'
import { skipUnless } from '../required.mjs'
import { packed } from './install.mjs'
import { COMPONENT_BUDGET } from './sizes.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { run, remove } = packed()
after(remove)
const shipped = (name) => {
  const program = `process.stdout.write(require.resolve('autothrottle/${name}'))`
  return run(process.execPath, ['-e', program]).trim()
}

/** The interfaces of a WIT without comments, by name. */
function interfaces(wit) {
  const blocks = wit.matchAll(/^\s*interface ([\w-]+) \{\n([\s\S]*?)^\s*\}\n/gm)
  const lines = (text) => text.split('\n').map((line) => line.trim())
  return Object.fromEntries(Array.from(blocks, ([, name, body]) => [name, lines(body)]))
}

test('it imports nothing and exports what the WIT says', () => {
  const made = capture('cargo', ['xtask-component', 'wit', shipped('component')])
  const typed = capture('cargo', ['xtask-component', 'wit', 'crates/bindings/component/wit'])
  assert.ok(made && typed)
  assert.doesNotMatch(made, /\bimport\b/)
  const world = /world [\w-]+ \{([\s\S]*?)\}/.exec(made)[1]
  const exported = world.trim().split(/\s*\n\s*/)
  assert.deepEqual(exported, [
    'export autothrottle:engine/throttling@0.1.0;',
    'export autothrottle:engine/reading@0.1.0;',
  ])
  assert.deepEqual(Object.keys(interfaces(typed)), ['throttling', 'reading'])
  assert.deepEqual(interfaces(made), interfaces(typed))
})

test('the WIT is shipped beside it, and each of its items is documented', () => {
  const wit = readFileSync(shipped('component.wit'), 'utf8')
  assert.equal(wit, readFileSync(join(root, 'crates/bindings/component/wit/engine.wit'), 'utf8'))
  const lines = wit.split('\n')
  for (const [place, line] of lines.entries()) {
    const isItem =
      /^ {4,8}[\w%][\w-]*(?:\(.*\))?(?:: .*|,| .*\{|\(options.*)$/.test(line) && !/^ {12}/.test(line)
    if (!isItem || /^ {4}use /.test(line)) continue
    assert.match(lines[place - 1], /^\s*\/\/\//, `line ${place + 1}: ${line}`)
  }
})

test(`it stays below ${COMPONENT_BUDGET} bytes, gzipped`, (t) => {
  const { length } = gzipSync(readFileSync(shipped('component')), { level: 9 })
  t.diagnostic(`${length} bytes`)
  assert.ok(length <= COMPONENT_BUDGET, `${length} bytes`)
})

test('it says what it is to registries', () => {
  const bytes = readFileSync(shipped('component')).toString('latin1')
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const words of ['autothrottle:engine', 'MIT', version]) assert.ok(bytes.includes(words), words)
})

const JCO = new URL('../runtimes/node_modules/@bytecodealliance/jco-transpile/dist/index.js', import.meta.url)

test('the code of docs/component.md for jco runs, and prints what it says', {
  skip: skipUnless(existsSync(JCO), 'jco is not installed'),
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'autothrottle-jco-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const page = readFileSync(join(root, 'docs/component.md'), 'utf8')
  const [, code] = /```js\n([\s\S]*?)```/.exec(page)
  const { transpile } = await import(JCO.href)
  const { files } = await transpile(shipped('component'), { name: 'autothrottle' })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'program.js'), code)
  for (const [name, content] of Object.entries(files)) {
    const file = join(folder, 'engine', name)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, content)
  }
  const printed = run(process.execPath, [join(folder, 'program.js')])
    .trim()
    .split('\n')
  assert.deepEqual(
    printed,
    [...code.matchAll(/^\/\/ → (.*)$/gm)].map(([, said]) => said),
  )
})
