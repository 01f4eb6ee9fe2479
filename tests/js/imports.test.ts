/** Imports in `js/` go one way: esbuild says which file needs which, and tests look for circles. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { build } from 'esbuild'
import { root } from './prose.js'

/** The files that each file imports, both without `js/`. */
type Graph = ReadonlyMap<string, readonly string[]>

const isLocal = (path: string) => path.startsWith('js/') || path.startsWith('pkg/')

/** With types, each `import type` counts as an import of a value. */
async function imports(withTypes = false): Promise<Graph> {
  const names = readdirSync(join(root, 'js'), { recursive: true, encoding: 'utf8' })
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: names.filter((name) => name.endsWith('.ts')).map((name) => `js/${name}`),
    bundle: true,
    format: 'esm',
    logLevel: 'error',
    metafile: true,
    outdir: 'none',
    packages: 'external',
    platform: 'node',
    write: false,
    plugins: withTypes
      ? [
          {
            name: 'types-as-values',
            setup({ onLoad }) {
              onLoad({ filter: /[/\\]js[/\\].*\.ts$/ }, ({ path }) => ({
                loader: 'ts',
                contents: readFileSync(path, 'utf8').replace(/^(import|export) type (?=[{*])/gm, '$1 '),
              }))
            },
          },
        ]
      : [],
    ...(withTypes && { tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } } }),
  })
  const short = (path: string) => path.replace(/^js\//, '')
  return new Map(
    Object.entries(metafile.inputs).map(([file, { imports }]) => [
      short(file),
      imports
        .map(({ path }) => path)
        .filter(isLocal)
        .map(short),
    ]),
  )
}

const values = imports()

/** The first circle of a graph, its files in the order of their imports. */
function circleOf(graph: Graph): string[] | undefined {
  const done = new Set<string>()
  const walk = (file: string, way: readonly string[]): string[] | undefined => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file]
    if (done.has(file)) return undefined
    for (const needed of graph.get(file) ?? []) {
      const circle = walk(needed, [...way, file])
      if (circle) return circle
    }
    done.add(file)
    return undefined
  }
  for (const file of graph.keys()) {
    const circle = walk(file, [])
    if (circle) return circle
  }
  return undefined
}

/** The folders of `js/`: an import leads up in this list. Folders on one line do not know each other. */
const LEVELS = [
  ['pkg'],
  ['base'],
  ['answers'],
  ['wasm'],
  ['scopes'],
  ['options'],
  ['core'],
  ['fetch'],
  ['throttle'],
  ['clients', 'llm', 'shared', 'simulate', 'entry', 'command'],
]

const folderOf = (file: string) => (file.includes('/') ? file.slice(0, file.indexOf('/')) : 'entry')

/** A front may use what stands beside it: the package's entries, and the command that reads them. */
const isFront = (folder: string) => folder === 'entry' || folder === 'command'

function levelOf(folder: string): number {
  const found = LEVELS.findIndex((level) => level.includes(folder))
  assert.notEqual(found, -1, `${folder} has no place in LEVELS`)
  return found
}

test('a circle is found, and a file that many import is none', () => {
  const square = { a: ['b', 'c'], b: ['d'], c: ['d'], d: [] as string[] }
  assert.equal(circleOf(new Map(Object.entries(square))), undefined)
  assert.deepEqual(circleOf(new Map(Object.entries({ ...square, d: ['e'], e: ['b'] }))), ['b', 'd', 'e', 'b'])
})

test('files of TypeScript import each other in no circle', async () => {
  const graph = await values
  assert.ok(graph.get('throttle/throttle.ts')?.includes('core/scheduler.ts'), 'imports are seen')
  assert.deepEqual(circleOf(graph), undefined)
})

test('in core and command, types know each other in no circle either', async () => {
  const all = await imports(true)
  assert.ok(all.get('core/waiting.ts')?.includes('core/permit.ts'), 'types are seen')
  const isOneWay = (file: string) => /^(?:core|command)\//.test(file)
  const graph = [...all]
    .filter(([file]) => isOneWay(file))
    .map(([file, needed]) => [file, needed.filter(isOneWay)] as const)
  assert.deepEqual(circleOf(new Map(graph)), undefined)
})

test('files of TypeScript import from folders below their own', async () => {
  for (const [file, needed] of await values)
    for (const other of needed) {
      const [from, to] = [folderOf(file), folderOf(other)]
      const isDown = from === to || levelOf(to) < levelOf(from)
      assert.ok(isDown || (isFront(from) && levelOf(to) === LEVELS.length - 1), `${file} imports ${other}`)
    }
})
