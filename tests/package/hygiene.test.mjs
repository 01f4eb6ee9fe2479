/**
 * The package as tools see it: publint, attw, its entries' sizes, bundlers, CommonJS, JSR, provenance,
 * notices.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { exported } from '../../tools/scripts/declarations.mjs'
import { WASM_FEATURES } from '../../tools/scripts/lib.mjs'
import { commandNotices, notices, pythonNotices } from '../../tools/scripts/notices.mjs'
import { skipUnless } from '../required.mjs'
import { packed } from './install.mjs'
import { BUDGETS, OVER_MAIN, sizeOf, sizeOverMain, WITHOUT_MODULE } from './sizes.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { scratch, tarball, run, addCommand, remove } = packed()
after(remove)
const installed = join(scratch, 'node_modules/autothrottle')

/** Entries that are files for other tools, and one that only Workers load, as an ES module. */
const NO_CODE = ['./package.json', './component', './component.wit', './durable-object', './slim.wasm']

test('publint has nothing to say, of the command either', async () => {
  const { publint } = await import('publint')
  for (const pkgDir of [installed, addCommand().installed]) {
    const { messages } = await publint({ pkgDir, strict: true })
    assert.deepEqual(messages, [], pkgDir)
  }
})

test('are the types wrong? They are not, in modules, CommonJS, bundlers, node10', () => {
  const attw = join(root, 'node_modules/.bin/attw')
  const args = [tarball, '--profile', 'strict', '--no-color', '--exclude-entrypoints', ...NO_CODE]
  const { status, stdout } = spawnSync(attw, args, { encoding: 'utf8' })
  assert.equal(status, 0, stdout)
})

for (const [entry, budget] of Object.entries(BUDGETS)) {
  test(`${entry} stays below ${budget} bytes, gzipped`, async (t) => {
    const { gzipped } = await sizeOf(`export * from '${entry}'`, { resolveDir: scratch })
    t.diagnostic(`${gzipped} bytes`)
    assert.ok(gzipped <= budget, `${gzipped} bytes`)
  })
}

for (const [entry, budget] of Object.entries(OVER_MAIN)) {
  test(`autothrottle/${entry} adds ${budget} bytes at most to the main entry, gzipped`, async (t) => {
    const added = await sizeOverMain(entry, join(installed, 'dist'))
    t.diagnostic(`${added} bytes`)
    assert.ok(added <= budget, `${added} bytes`)
    if (entry !== 'redis' && entry !== 'local') return
    const module = gzipSync(readFileSync(join(installed, 'dist/shared-module.js')), { level: 9 })
    const rest = added - module.length
    assert.ok(rest <= WITHOUT_MODULE, `${rest} bytes without the module`)
  })
}

for (const name of ['autothrottle', 'simulator', 'shared', 'llm']) {
  // V8 inlines a call that gives one reference. In Node 20 and 22 it ends the program (`unreachable code`) if
  // the code around the call is deoptimized meanwhile. Each signature with several results costs half a
  // millisecond of CPU when the module is compiled.
  test(`no export of ${name} gives a reference alone, or several results`, () => {
    const flags = [...WASM_FEATURES, join(root, `pkg/${name}_bg.wasm`)]
    const { stdout } = spawnSync(join(root, 'node_modules/.bin/wasm-dis'), flags, {
      encoding: 'utf8',
      maxBuffer: 1e9,
    })
    const exported = new Set([...stdout.matchAll(/\(export "[^"]+" \(func (\S+)\)\)/g)].map(([, of]) => of))
    const heads = [...stdout.matchAll(/\(func (\S+)[^\n]*/g)].filter(([, of]) => exported.has(of))
    const found = heads.map(([head]) => head)
    assert.ok(found.length > 20, `${found.length} exports`)
    assert.deepEqual(
      found.filter((head) => /\(result (?:externref|\w+ \w+)/.test(head)),
      [],
    )
  })
}

test('it is small to install: files, bytes as they lie there, bytes on the way', (t) => {
  const [{ files, unpackedSize, size }] = JSON.parse(
    run('npm', ['pack', '--dry-run', '--ignore-scripts', '--json'], installed),
  )
  t.diagnostic(`${files.length} files, ${unpackedSize} bytes, ${size} packed`)
  assert.ok(files.length <= 160, `${files.length} files`)
  assert.ok(unpackedSize <= 2_551_000, `${unpackedSize} bytes`)
  assert.ok(size <= 1_212_000, `${size} bytes packed`)
  const hashes = files
    .filter(({ size }) => size > 200)
    .map(({ path }) => [
      createHash('sha256')
        .update(readFileSync(join(installed, path)))
        .digest('hex'),
      path,
    ])
  const twice = hashes.filter(([hash], at) => hashes.findIndex(([other]) => other === hash) !== at)
  assert.deepEqual(twice, [], 'no file is there twice')
})

test('chunks, folders and the command are no entries', () => {
  const chunk = readdirSync(join(installed, 'dist')).find((name) => name.startsWith('shared-'))
  const inside = [
    chunk.slice(0, -3),
    'index',
    'bin',
    'engine-module',
    'cjs/index',
    'node/index',
    'edge/index',
  ]
  const program = `const open = []
    for (const name of ${JSON.stringify(inside)})
      await import('autothrottle/' + name).then(() => open.push(name), () => {})
    console.log(open.join())`
  assert.equal(run(process.execPath, ['--input-type=module', '-e', program]).trim(), '')
})

test('declarations export what a list says, and no more: entries, and what their types need', async () => {
  const types = join(installed, 'dist/cjs')
  const files = readdirSync(types, { recursive: true }).filter((path) => path.endsWith('.d.ts'))
  // The platform's are named as the platform has them.
  const ours = files.filter((path) => path !== join('core', 'platform.d.ts')).sort()
  const lines = []
  for (const path of ours) lines.push(`${path.slice(0, -5)}: ${(await exported(types, path)).join(' ')}\n`)
  const list = join(root, 'tests/golden/exports.txt')
  if (process.env.UPDATE_GOLDEN) writeFileSync(list, lines.join(''))
  assert.equal(
    lines.join(''),
    readFileSync(list, 'utf8'),
    'UPDATE_GOLDEN=1 writes it: is each name for users?',
  )
  const api = readFileSync(join(root, 'docs/api.md'), 'utf8')
  const functions = ours
    .filter((path) => !path.includes('/'))
    .flatMap((path) =>
      [...readFileSync(join(types, path), 'utf8').matchAll(/^export declare (?:function|const) (\w+)/gm)].map(
        ([, name]) => name,
      ),
    )
  assert.deepEqual(
    functions.filter((name) => !api.includes(name)),
    [],
    'docs/api.md has the functions of entries',
  )
})

test('it says what it was built from', async () => {
  const { build } = await import(pathToFileURL(join(installed, 'dist/index.js')).href)
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  assert.equal(build.version, version)
  assert.equal(JSON.parse(readFileSync(join(root, 'jsr.json'), 'utf8')).version, version)
  assert.match(build.revision, /^(?:[0-9a-f]{40}\+?|unknown)$/)
  for (const [name, hash] of Object.entries(build.modules)) {
    // The simulator is no file of the package: the tests of the boundary compare what travels in the code.
    const bytes = readFileSync(join(name === 'simulator' ? root : installed, `pkg/${name}_bg.wasm`))
    assert.equal(createHash('sha256').update(bytes).digest('hex'), hash, name)
  }
})

test('the third-party notices are those of what is linked', () => {
  assert.equal(
    readFileSync(join(root, 'THIRD-PARTY-NOTICES.md'), 'utf8'),
    notices(),
    'npm run bless writes them',
  )
  assert.equal(
    readFileSync(join(root, 'cli/THIRD-PARTY-NOTICES.md'), 'utf8'),
    commandNotices(),
    'npm run bless writes them',
  )
  assert.equal(
    readFileSync(join(root, 'python/NOTICE-THIRD-PARTY.md'), 'utf8'),
    pythonNotices(),
    'npm run bless writes them',
  )
})

for (const condition of ['workerd', 'edge-light']) {
  test(`${condition} carries the module once, not its bytes beside it`, async (t) => {
    const { build } = await import('esbuild')
    const imported = []
    const wasm = {
      name: 'wasm',
      setup(build) {
        build.onResolve({ filter: /\.wasm/ }, ({ path, resolveDir }) => {
          imported.push(join(resolveDir, path))
          return { path, external: true }
        })
      },
    }
    const stdin = {
      contents: "export * from 'autothrottle'; export * from 'autothrottle/engine'",
      resolveDir: scratch,
    }
    const output = { bundle: true, minify: true, format: 'esm', write: false, target: 'es2022' }
    const { outputFiles } = await build({ stdin, ...output, conditions: [condition], plugins: [wasm] })
    assert.deepEqual(imported, [join(installed, 'pkg/autothrottle_bg.wasm?module')])
    const script = gzipSync(outputFiles[0].contents, { level: 9 }).length
    const module = gzipSync(readFileSync(join(installed, 'pkg/autothrottle_bg.wasm')), { level: 9 }).length
    t.diagnostic(`${script} bytes of JavaScript and ${module} of WebAssembly, gzipped`)
    assert.ok(script < 37_900, `${script} bytes of JavaScript`)
  })
}

const PROGRAM = `
import { createThrottle } from 'autothrottle'
import { simulate } from 'autothrottle/simulate'
const throttle = createThrottle({ fetch: async () => new Response('page'), defaults: { delay: 1 } })
const { summary } = simulate({ server: { model: 'nginx', rate: 5 }, duration: 1000 })
console.log(await (await throttle.fetch('https://a.example/')).text(), summary.served > 0)
`

test('bundled by Vite, webpack and esbuild, for pages and for Node, it runs', async () => {
  writeFileSync(join(scratch, 'main.js'), PROGRAM)
  const entry = join(scratch, 'main.js')
  const bundlers = {
    async vite(outDir) {
      const { build } = await import('vite')
      const lib = { entry, formats: ['es'], fileName: () => 'main.mjs' }
      await build({
        root: scratch,
        logLevel: 'error',
        configFile: false,
        build: { lib, outDir, target: 'es2022' },
      })
    },
    async 'vite for Node'(outDir) {
      const { build } = await import('vite')
      await build({
        root: scratch,
        logLevel: 'error',
        configFile: false,
        ssr: { noExternal: true },
        build: {
          ssr: entry,
          outDir,
          target: 'es2022',
          rolldownOptions: { output: { entryFileNames: 'main.mjs' } },
        },
      })
    },
    webpack: (path) => byWebpack(path, 'web'),
    'webpack for Node': (path) => byWebpack(path, 'node'),
    esbuild: (outdir) => byEsbuild(outdir, 'browser'),
    'esbuild for Node': (outdir) => byEsbuild(outdir, 'node'),
  }
  async function byWebpack(path, target) {
    const { default: webpack } = await import('webpack')
    const output = { path, filename: 'main.mjs', module: true, chunkFormat: 'module' }
    const options = {
      mode: 'production',
      target,
      context: scratch,
      entry,
      output,
      experiments: { outputModule: true },
    }
    const stats = await new Promise((resolve, reject) => {
      webpack(options, (error, stats) => (error ? reject(error) : resolve(stats)))
    })
    const { errors } = stats.toJson({ all: false, errors: true })
    assert.deepEqual(errors, [])
  }
  async function byEsbuild(outdir, platform) {
    const { build } = await import('esbuild')
    const output = { outdir, outExtension: { '.js': '.mjs' }, bundle: true, minify: true, format: 'esm' }
    await build({ entryPoints: [entry], ...output, platform, target: 'es2022', logLevel: 'error' })
  }
  for (const [name, bundle] of Object.entries(bundlers)) {
    const folder = join(scratch, name)
    mkdirSync(folder)
    await bundle(folder)
    assert.ok(existsSync(join(folder, 'main.mjs')), name)
    // Away from node_modules: whatever it still imports is not there.
    const alone = mkdtempSync(join(tmpdir(), 'autothrottle-bundle-'))
    writeFileSync(join(alone, 'main.mjs'), readFileSync(join(folder, 'main.mjs')))
    assert.equal(run(process.execPath, ['main.mjs'], alone).trim(), 'page true', name)
    rmSync(alone, { recursive: true })
  }
})

test('CommonJS requires it: the ES modules where Node allows that, else a copy of them', () => {
  const program = `
    const { createThrottle, ConfigError } = require('autothrottle')
    const { Engine } = require('autothrottle/engine')
    const { FakeClock } = require('autothrottle/testing')
    const { simulate } = require('autothrottle/simulate')
    const { summary } = simulate({ server: { model: 'nginx', rate: 5 }, duration: 1000 })
    let error
    try { new Engine({ concurency: 1 }) } catch (thrown) { error = thrown }
    const { throttle } = require('autothrottle/undici')
    const clock = new FakeClock()
    console.log(typeof createThrottle({ clock }).fetch, new Engine().poll(0), error instanceof ConfigError,
      summary.served > 0, typeof throttle)
    import('autothrottle').then((module) => console.log(module.ConfigError === ConfigError))`
  writeFileSync(join(scratch, 'program.cjs'), program)
  const spoken = (...args) =>
    run(process.execPath, [...args, 'program.cjs'])
      .trim()
      .split('\n')
  const old = '--no-experimental-require-module'
  const isKnown = spawnSync(process.execPath, [old, '-e', '0']).status === 0
  if (isKnown) assert.deepEqual(spoken(old), ['function -2 true true function', 'false'])
  const said = spoken()
  assert.equal(said[0], 'function -2 true true function')
  // One of each class, also for a program that has dependencies of both kinds.
  if (process.features.require_module) assert.equal(said[1], 'true')
})

const deno = join(root, 'tests/runtimes/node_modules/.bin/deno')
test('JSR would take it', { skip: skipUnless(existsSync(deno), 'no Deno') }, () => {
  const args = ['publish', '--dry-run', '--allow-dirty', '--allow-slow-types', '--no-check', '--quiet']
  const { status, stdout, stderr } = spawnSync(deno, args, {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  })
  assert.equal(status, 0, stdout + stderr)
})
