/**
 * The packages as they are published: `npm run pack` builds, puts them together in `target/package` and
 * `target/package-cli`, and packs them. `files` of `package.json` says what travels. A link of a page to a
 * file that does not is the file's address in the repository. Commands and dependencies of a clone stay at
 * home.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'
import { fileURLToPath } from 'node:url'
import { capture, main, root, run } from './lib.mjs'

/** Puts together what `npm pack` and `npm publish` take, in this folder. */
export function stage(folder) {
  const [{ files }] = JSON.parse(capture('npm', ['pack', '--dry-run', '--ignore-scripts', '--json']))
  const paths = new Set(files.map(({ path }) => path))
  rmSync(folder, { recursive: true, force: true })
  for (const path of paths) {
    mkdirSync(dirname(`${folder}/${path}`), { recursive: true })
    if (path === 'package.json') writeFileSync(`${folder}/${path}`, published())
    else if (path.endsWith('.md')) writeFileSync(`${folder}/${path}`, page(path, paths))
    else cpSync(`${root}/${path}`, `${folder}/${path}`)
  }
}

/** Puts together the package of the command: its page is its README. */
export function stageCommand(folder) {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}/README.md`, page('docs/command.md', new Set()))
  for (const name of ['package.json', 'THIRD-PARTY-NOTICES.md'])
    cpSync(`${root}/cli/${name}`, `${folder}/${name}`)
  cpSync(`${root}/LICENSE`, `${folder}/LICENSE`)
  cpSync(`${root}/dist/cli/bin.js`, `${folder}/bin.js`)
}

/** `package.json` without what only a clone needs. npm takes no folder that `files` leaves out. */
function published() {
  const {
    scripts: _,
    devDependencies: __,
    ...rest
  } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
  return `${JSON.stringify(rest, null, 2)}\n`
}

/** A page, each of whose links leads to a file of the package or to an address. */
function page(path, paths) {
  const { repository } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
  const address = repository.url.replace(/^git\+|\.git$/g, '')
  const lead = (target) => {
    const [, file, rest] = /^([^#]*)(.*)$/.exec(target)
    const place = join(dirname(path), file)
    if (/^[a-z]+:/.test(target) || file === '' || paths.has(place)) return target
    // An image is its bytes, and no page about them.
    return `${address}/${place.endsWith('.svg') ? 'raw' : 'blob'}/main/${place}${rest}`
  }
  // Not in code.
  return readFileSync(`${root}/${path}`, 'utf8')
    .split(/(^```.*?^```$)/ms)
    .map((part) =>
      part.startsWith('```')
        ? part
        : part
            .replaceAll(/(\]\()([^)\s]+)(?=\))/g, (_, before, target) => before + lead(target))
            .replaceAll(/^(\[[^\]]+\]: )(\S+)$/gm, (_, before, target) => before + lead(target)),
    )
    .join('')
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await main(async () => {
    await run('node', ['tools/scripts/build.mjs'])
    const [folder, command] = [`${root}/target/package`, `${root}/target/package-cli`]
    stage(folder)
    stageCommand(command)
    await run('npm', ['pack', '--ignore-scripts', folder, command])
  })
