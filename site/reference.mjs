/** Writes the reference from the types: typedoc's Markdown, one page for each entry of the package. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))

export function reference() {
  const folder = `${here}.pages/reference`
  rmSync(folder, { recursive: true, force: true })
  const typedoc = `${here}node_modules/typedoc/bin/typedoc`
  execFileSync(process.execPath, [typedoc, '--options', 'typedoc.json'], { cwd: here, stdio: 'inherit' })
  // The main entry is called `index`, and so is the list of all entries.
  renameSync(`${folder}/index-1.md`, `${folder}/main.md`)
  for (const name of readdirSync(folder)) {
    const entry = name.slice(0, -3)
    const title = { index: 'Reference', main: 'autothrottle' }[entry] ?? `autothrottle/${entry}`
    const text = readFileSync(`${folder}/${name}`, 'utf8')
      .replace(/^# .*$/m, `# ${title}`)
      .replaceAll('[index](index-1.md)', '[autothrottle](main.md)')
      .replaceAll('index-1.md', 'main.md')
      .replace('## Modules\n', 'The entries of the package, written from its types.\n')
      .replaceAll(/^- \[(\w+)\]\((?!main)/gm, (_, name) => `- [autothrottle/${name}](`)
    writeFileSync(`${folder}/${name}`, `---\neditLink: false\n---\n\n${text}`)
  }
}
