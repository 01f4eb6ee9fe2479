/**
 * Writes the notices of what travels in our packages, with the licences. `THIRD-PARTY-NOTICES.md`: crates
 * inside the WebAssembly modules, and npm's packages inside the JavaScript. `cli/THIRD-PARTY-NOTICES.md`:
 * the command. `python/NOTICE-THIRD-PARTY.md`: crates inside Python's native module. `node
 * tools/scripts/notices.mjs`
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { capture, root } from './lib.mjs'

/** The packages inside the command. */
const IN_COMMAND = ['entities', 'htmlparser2', 'robots-parser']

/** The notices of the crates that these link, for a platform or for all. */
function linked(ours, ...platform) {
  const args = ['metadata', ...platform, '--format-version', '1', '--locked']
  const { packages, resolve } = JSON.parse(capture('cargo', args))
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]))
  const isMacro = ({ targets }) => targets.some(({ kind }) => kind.includes('proc-macro'))
  const macros = new Set(packages.filter(isMacro).map(({ id }) => id))
  const reachable = new Set()
  const reach = (id) => {
    if (reachable.has(id) || macros.has(id)) return
    reachable.add(id)
    const isLinked = ({ dep_kinds }) => dep_kinds.some(({ kind }) => kind === null)
    for (const dep of nodes.get(id).deps.filter(isLinked)) reach(dep.pkg)
  }
  for (const { id, name } of packages) if (ours.test(name)) reach(id)
  const crates = packages
    .filter(({ id, name }) => reachable.has(id) && !name.startsWith('autothrottle'))
    .sort((a, b) => a.name.localeCompare(b.name))
  return crates.map(({ name, version, license, repository, manifest_path }) => {
    const folder = dirname(manifest_path)
    const licences = readdirSync(folder).filter((each) => /^LICEN[CS]E/i.test(each))
    const file = licences.find((each) => /MIT/i.test(each)) ?? licences[0]
    const text = file ? readFileSync(`${folder}/${file}`, 'utf8') : 'See the repository.'
    return notice(name, version, license, repository, text)
  })
}

/** The notices of the code that is linked into the package of npm, and the page about it. */
export function notices() {
  const ours = /^autothrottle-(?:component|javascript|shared-javascript|simulator)$/
  const parts = linked(ours, '--filter-platform', 'wasm32-unknown-unknown')
  const about = `# Third-party notices

What of others is inside \`pkg/*.wasm\` and its bindings, and inside the component; fflate's inflate is in the entries. The rest of the JavaScript has no dependencies. Written by \`npm run bless\`.

The Rust standard library (MIT OR Apache-2.0, https://github.com/rust-lang/rust) and its allocator dlmalloc (public domain) are linked, too.
`
  return [about, ...parts, noticeOf('fflate')].join('\n')
}

/** The notices of the packages inside the command's package. */
export function commandNotices() {
  const about = `# Third-party notices

Packages whose code is inside \`bin.js\`. Written by \`npm run bless\` of the repository.
`
  return [about, ...IN_COMMAND.map(noticeOf)].join('\n')
}

/** The notices of the code that is linked into Python's native module, on any platform. */
export function pythonNotices() {
  const about = `# Third-party notices

Crates inside the native module of this package. Written by \`npm run bless\` of the repository.

The Rust standard library (MIT OR Apache-2.0, https://github.com/rust-lang/rust) is linked, too.
`
  return [about, ...linked(/^autothrottle-python$/)].join('\n')
}

/** A package of npm's. */
function noticeOf(name) {
  const folder = `${root}/node_modules/${name}`
  const { version, license, repository } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'))
  const file = readdirSync(folder).find((each) => /^LICEN[CS]E/i.test(each))
  const text = readFileSync(`${folder}/${file}`, 'utf8')
  return notice(name, version, license, repository.url ?? repository, text)
}

const notice = (name, version, license, place, text) =>
  `## ${name} ${version}\n\n${license}, ${place}\n\n\`\`\`text\n${text.trim().replace(/[ \t]+$/gm, '')}\n\`\`\`\n`

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(`${root}/THIRD-PARTY-NOTICES.md`, notices())
  writeFileSync(`${root}/cli/THIRD-PARTY-NOTICES.md`, commandNotices())
  writeFileSync(`${root}/python/NOTICE-THIRD-PARTY.md`, pythonNotices())
}
