/**
 * The declarations of `dist/`: what an entry exports, and what that needs. Exports between files of the code
 * are no part of the package, so an editor does not offer them.
 *
 * They are there once, in the folder that says it is CommonJS: ES modules may import CommonJS, and not the
 * other way round. Those of an ES entry are one line.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { root } from './lib.mjs'

const PLATFORM = 'core/platform.d.ts'

/** Makes those of the entries from what the compiler wrote. */
export async function declarations(dist, entries) {
  await ready()
  const files = shaken(dist, entries)
  for (const [path, text] of files) {
    const to = join(dist, 'cjs', path)
    mkdirSync(dirname(to), { recursive: true })
    // The client whose options are added to may not be there.
    writeFileSync(to, withPlatform(path, text).replaceAll(/^declare module '/gm, '// @ts-ignore\n$&'))
  }
  for (const name of readdirSync(dist)) {
    const isFolder = statSync(join(dist, name)).isDirectory()
    if (isFolder && !['cjs', 'cli', 'edge', 'node'].includes(name))
      rmSync(join(dist, name), { recursive: true })
  }
  for (const entry of entries) {
    const from = `./cjs/${entry}.js`
    // A client has other declarations for ES modules: they get the same options.
    const own = /^\/\/ @ts-ignore\ndeclare module .*?^}\n/ms.exec(
      readFileSync(join(dist, 'cjs', `${entry}.d.ts`), 'utf8'),
    )
    const [added = ''] = own ?? []
    const named = added.replaceAll(/\?: (\w+)/g, `?: import('${from}').$1`)
    writeFileSync(join(dist, `${entry}.d.ts`), `export * from '${from}'\n${named}`)
  }
}

/** The names that a file of declarations exports, in order. */
export async function exported(dist, path) {
  await ready()
  const namesOf = (each) => {
    const { exports, stars } = read(dist, each)
    return [...exports.keys(), ...stars.flatMap((star) => (star ? namesOf(star) : []))]
  }
  return [...new Set(namesOf(path))].sort()
}

let parseSync
/** Not at the top: a fresh clone has no packages yet, and says `--help`. */
const ready = async () => {
  ;({ parseSync } = await import('vite'))
}

/** Code without its comments. */
const bare = (text) => text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')

/** The declarations, imports and exports of a file. */
function read(dist, path) {
  const text = readFileSync(join(dist, path), 'utf8')
  const { program, errors } = parseSync(path, text, { lang: 'dts' })
  if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`)
  const to = ({ value }) =>
    value.startsWith('.') ? join(dirname(path), value.replace(/js$/, 'd.ts')) : undefined
  const [statements, imports, exports, stars] = [[], new Map(), new Map(), []]
  let from = 0
  for (const node of program.body) {
    const code = text.slice(from, node.end)
    from = node.end
    if (node.type === 'ImportDeclaration') {
      for (const { type, local, imported } of node.specifiers) {
        const name = type === 'ImportSpecifier' ? (imported.name ?? imported.value) : undefined
        imports.set(local.name, { from: to(node.source), name })
      }
      statements.push({ code, node, names: [] })
      continue
    }
    if (node.type === 'ExportAllDeclaration') stars.push(to(node.source))
    const declared = node.declaration ?? node
    const found = [declared.id, ...(declared.declarations ?? []).map(({ id }) => id)]
    const names = found.flatMap((id) => id?.name ?? [])
    if (node.type === 'ExportNamedDeclaration') {
      for (const name of names) exports.set(name, { local: name })
      for (const { exported, local } of node.specifiers)
        exports.set(
          exported.name,
          node.source ? { from: to(node.source), name: local.name } : { local: local.name },
        )
    }
    statements.push({ code, node, names })
  }
  return { statements, imports, exports, stars, kept: new Set(), used: new Set(), given: new Set() }
}

/** The text of each file that is needed, with no more than what is. */
function shaken(dist, entries) {
  const files = new Map()
  const fileOf = (path) => {
    if (!files.has(path)) files.set(path, read(dist, path))
    return files.get(path)
  }
  /** Keeps a statement, and all that it speaks of. */
  const keep = (path, statement) => {
    const file = fileOf(path)
    if (file.kept.has(statement)) return
    file.kept.add(statement)
    const code = bare(statement.code)
    for (const [, other, name] of code.matchAll(/import\(["'](\.[^"']+)\.js["']\)\.(\w+)/g))
      give(join(dirname(path), `${other}.d.ts`), name)
    for (const [name] of code.matchAll(/[\w$]+/g)) use(path, name)
  }
  /** Keeps what a name stands for in a file. */
  const use = (path, name) => {
    const file = fileOf(path)
    if (file.used.has(name)) return
    file.used.add(name)
    for (const statement of file.statements) if (statement.names.includes(name)) keep(path, statement)
    const imported = file.imports.get(name)
    if (imported?.from && imported.name) give(imported.from, imported.name)
    else if (imported?.from) all(imported.from)
  }
  /** Keeps what another file takes. */
  const give = (path, name) => {
    const { exports, stars, statements, given } = fileOf(path)
    given.add(name)
    // Adding to the types of a client has no name.
    for (const each of statements) if (each.node.type === 'TSModuleDeclaration') keep(path, each)
    const exported = exports.get(name)
    if (exported?.local) use(path, exported.local)
    else if (exported?.from) give(exported.from, exported.name)
    else for (const star of stars) if (star && has(star, name)) give(star, name)
  }
  const has = (path, name) => {
    const { exports, stars } = fileOf(path)
    return exports.has(name) || stars.some((star) => star && has(star, name))
  }
  const all = (path) => {
    const { exports, stars, given } = fileOf(path)
    given.add('*')
    for (const name of exports.keys()) give(path, name)
    for (const star of stars) if (star) all(star)
  }
  for (const entry of entries) all(`${entry}.d.ts`)
  const isThere = (path) => files.get(path)?.given.size > 0
  const texts = [...files]
    .filter(([path]) => isThere(path))
    .map(([path, file]) => [path, textOf(file, isThere)])
  return [[PLATFORM, readFileSync(join(dist, PLATFORM), 'utf8')], ...texts]
}

/** The text of a file without the parts that no entry exports. */
function textOf({ statements, stars, kept, used, given }, isThere) {
  // The comment that opens an entry is for its users, and stands before an import.
  let text = given.has('*')
    ? (/^\s*\/\*\*[\s\S]*?\*\/\n(?=import )/.exec(statements[0]?.code ?? '')?.[0] ?? '')
    : ''
  for (const statement of statements) {
    const { node, code } = statement
    if (node.type === 'ImportDeclaration') {
      const names = node.specifiers.filter(({ local }) => used.has(local.name))
      if (names.length > 0) text += importOf(node, names)
    } else if (node.type === 'ExportAllDeclaration') {
      const star = stars.shift()
      if (!star || isThere(star)) text += code
    } else if (node.specifiers?.length > 0) {
      const names = node.specifiers.filter(({ exported }) => given.has(exported.name))
      if (names.length > 0) text += exportOf(node, names)
    } else if (kept.has(statement) || /^\s*export \{\};?$/.test(code)) text += code
  }
  return `${text.trim()}\n`
}

const typed = (kind) => (kind === 'type' ? 'type ' : '')

function exportOf({ exportKind, source }, specifiers) {
  const named = specifiers.map(({ exported, local, exportKind: kind }) => {
    const as = exported.name === local.name ? '' : ` as ${exported.name}`
    return `${typed(kind)}${local.name}${as}`
  })
  const from = source ? ` from '${source.value}'` : ''
  return `\nexport ${typed(exportKind)}{ ${named.join(', ')} }${from};`
}

function importOf({ importKind, source }, specifiers) {
  const [first] = specifiers
  if (first.type === 'ImportNamespaceSpecifier')
    return `import * as ${first.local.name} from '${source.value}';\n`
  if (first.type === 'ImportDefaultSpecifier')
    return `import ${typed(importKind)}${first.local.name} from '${source.value}';\n`
  const named = specifiers.map(({ imported, local, importKind: kind }) => {
    const as = imported.name === local.name ? '' : ` as ${local.name}`
    return `${typed(kind)}${imported.name}${as}`
  })
  return `import ${typed(importKind)}{ ${named.join(', ')} } from '${source.value}';\n`
}

/**
 * Declarations take the platform's types from `core/platform.ts`, and say which library declares
 * `Symbol.dispose`: a compiler may know neither.
 */
function withPlatform(path, text) {
  const platform = readFileSync(`${root}/js/core/platform.ts`, 'utf8')
  const names = [...platform.matchAll(/^export (?:type|declare const) (\w+)/gm)].map(([, name]) => name)
  if (path === PLATFORM) return text
  const code = bare(text)
  const used = [...new Set(names)].filter((name) => new RegExp(`\\b${name}\\b`).test(code))
  const away = relative(dirname(path), 'core/platform.js')
  const from = away.startsWith('.') ? away : `./${away}`
  const disposable = /Symbol\.(?:asyncD|d)ispose/.test(code)
    ? '/// <reference lib="esnext.disposable" />\n'
    : ''
  const imported = used.length > 0 ? `import { ${used.join(', ')} } from '${from}';\n` : ''
  return disposable + imported + text
}
