/**
 * Gives the hot functions of the engine's module copies of what they call and many others call, too.
 *
 * wasm-bindgen borrows and gives back the engine around each method, by functions that all methods share:
 * a fifth of a permit's time. Neither Rust nor wasm-opt can copy a function into a few of its callers alone.
 * But wasm-opt copies one that has a single caller. Here each call of a hot function gets a function of its
 * own, by text: a permit and its end take 17 ns less, for .1 kB.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { run, WASM_FEATURES } from './lib.mjs'

const BORROW = [
  '::try_ref_mut_from_abi::',
  '<wasm_bindgen::__rt::RcRefMut<',
  '<wasm_bindgen::__rt::WasmRefCell<',
]

/** Parts of the names of hot functions, and of what they shall have by themselves. */
const HOT = {
  $wasmengine_send_at_once: BORROW,
  $wasmengine_settle_plain: BORROW,
}

const NAME = String.raw`\$(?:"[^"]*"|[^\s)]+)`

/** The text of a module, where hot functions call copies. */
function withCopies(text) {
  const [head, ...functions] = text.split('\n (func ')
  const nameOf = (code) => new RegExp(NAME).exec(code)[0]
  const byName = new Map(functions.map((code) => [nameOf(code), `${code.split('\n )')[0]}\n )`]))
  const copies = []
  const copied = (code, own) =>
    code.replaceAll(new RegExp(`\\(call (${NAME})`, 'g'), (call, name) => {
      if (!own.some((part) => name.includes(part))) return call
      const number = copies.push('') - 1
      // Until it is copied into its caller, it must not be equal to another one.
      const mark = `$1  (drop (i32.const ${number}))\n`
      const copy = byName.get(name).replace(name, `$own${number}`)
      copies[number] = copied(copy.replace(/^(.*\n(?: {2}\(local .*\n)*)/, mark), own)
      return `(call $own${number}`
    })
  const changed = new Set()
  const all = functions.map((code) => {
    const [part, own] = Object.entries(HOT).find(([part]) => nameOf(code).includes(part)) ?? []
    if (own === undefined) return code
    const before = copies.length
    const calling = copied(code, own)
    if (copies.length - before === own.length) changed.add(part)
    return calling
  })
  for (const part of Object.keys(HOT))
    if (!changed.has(part))
      throw new Error(`${part}: the module has no function of that name, or it calls others`)
  return [head, ...copies, ...all].join('\n (func ')
}

/** Does so with a module that has its functions' names. */
export async function unshare(module) {
  const file = `${module}.wat`
  const convert = (...args) => run('npx', ['--no-install', 'wasm-opt', '--quiet', ...WASM_FEATURES, ...args])
  await convert(module, '-S', '-o', file)
  writeFileSync(file, withCopies(readFileSync(file, 'utf8')))
  await convert(file, '-g', '-o', module)
  rmSync(file)
}
