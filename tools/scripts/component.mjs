/**
 * Builds the component: Rust → a core module → wasm-opt → `dist/autothrottle.wasm`, with its WIT
 * beside it. wasm-opt knows no components, so the core module goes through it before the wrapping.
 */
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { buildWasm, renew, root, run, step, WASM_OPT } from './lib.mjs'

const NAME = 'autothrottle_component'
const MADE = `${root}/pkg/component.wasm`
const WIT = `${root}/crates/bindings/component/wit/engine.wit`

/** Makes what has changed since the last time. */
export async function component() {
  const inputs =
    'src crates/reading crates/bindings/component tools/xtask Cargo.lock Cargo.toml tools/scripts/lib.mjs'.split(
      ' ',
    )
  await renew(MADE, inputs, async () => {
    const target = 'wasm32-unknown-unknown'
    await step('component: Rust', () => buildWasm(['--locked', '--package', 'autothrottle-component']))
    const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
    const core = `${root}/pkg/component.core.wasm`
    const compiled = `${root}/target/${target}/wasm/${NAME}.wasm`
    // A host's call costs more than what is copied into callers saves: .1 kB less.
    const options = WASM_OPT.map((each) =>
      each.replace('inline-max-function-size=5', 'inline-max-function-size=4'),
    )
    await step('component: wasm-opt', () =>
      run('npx', ['--no-install', 'wasm-opt', ...options, compiled, '-o', core]),
    )
    await step('component: wrapped', () =>
      run('cargo', ['xtask-component', 'component', core, MADE, version]),
    )
    const bytes = readFileSync(MADE)
    console.log(`  component: ${bytes.length} bytes, ${gzipSync(bytes, { level: 9 }).length} gzipped`)
  })
  mkdirSync(`${root}/dist`, { recursive: true })
  copyFileSync(MADE, `${root}/dist/autothrottle.wasm`)
  copyFileSync(WIT, `${root}/dist/autothrottle.wit`)
}
