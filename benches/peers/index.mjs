/**
 * Ours beside the peers: `npm run bench`, which writes `benches/RESULTS.md`. `--only ROW` runs one row and
 * writes that one anew; `--quick` tries it out and writes no file.
 *
 * Contenders take turns within a row wherever they can share a process, so that a busy machine slows all
 * alike; the figures to read are the ratios. Each row runs on this Node and on Node 24.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { kept, RESULTS } from '../results.mjs'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))
const { values } = parseArgs({
  options: { quick: { type: 'boolean' }, only: { type: 'string' }, row: { type: 'string' } },
})
const ROWS = ['open', 'native', 'memory', 'backlog', 'realtime', 'fetch', 'size', 'cold', 'users']
/** What does not depend on the version of Node. */
const ONCE = new Set(['native', 'realtime', 'size', 'cold', 'users'])

if (values.row) {
  const { run } = await import(`./rows/${values.row}.mjs`)
  console.log(JSON.stringify(await run({ isQuick: values.quick ?? false })))
  process.exit(0)
}

if (!existsSync(here('node_modules'))) {
  spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--prefix', here('.')], { stdio: 'inherit' })
}
if (!existsSync(here('../../dist/index.js'))) throw new Error('npm run build first')

const node24 = here('node_modules/node24/bin/node')
const nodes = [process.execPath, ...(existsSync(node24) ? [node24] : [])]
const versionOf = (node) => spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim()

/** One row of the file, as a table in Markdown. */
async function report(row) {
  const { title, says, columns } = await import(`./rows/${row}.mjs`)
  let text = `## ${title}\n\n${wrapped(says)}\n`
  for (const node of ONCE.has(row) ? nodes.slice(0, 1) : nodes) {
    const args = [here('index.mjs'), '--row', row, ...(values.quick ? ['--quick'] : [])]
    const { status, stdout, stderr } = spawnSync(node, args, { encoding: 'utf8', maxBuffer: 1e8 })
    if (status !== 0) throw new Error(`${row} on ${node}: ${stderr}`)
    const lines = JSON.parse(stdout.trim().split('\n').at(-1))
    const line = (cells) => `| ${cells.join(' | ')} |`
    const rows = [line(['', ...columns]), line(['---', ...columns.map(() => '---:')]), ...lines.map(line)]
    text += `\nNode ${versionOf(node).slice(1)}\n\n${rows.join('\n')}\n`
  }
  return text
}

function wrapped(text) {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line.length + word.length + 1 > 108) lines.push(word)
    else lines[lines.length - 1] = line ? `${line} ${word}` : word
  }
  return lines.join('\n')
}

const { dependencies } = JSON.parse(readFileSync(here('package.json'), 'utf8'))
const versions = Object.entries(dependencies).map(([name, version]) => `${name} ${version}`)
const { build } = await import('../../dist/index.js')
const rust = spawnSync('rustc', ['--version'], { encoding: 'utf8' }).stdout?.trim()
const [cpu] = cpus()
let text = `# Side by side

Written by \`npm run bench\`. Other work may have run beside it: read the ratios, and the order.

${wrapped(
  `Machine: ${cpus().length} × ${cpu.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB. ` +
    `autothrottle ${build.version ?? ''} (${build.revision.slice(0, 9)}) beside ${versions.join(', ')}, ` +
    `governor 0.10; Node ${nodes.map(versionOf).join(' and ')}, ${rust}. "–": it cannot do that.`,
)}
`
const others = kept()
// Written after each row: a run that is cut keeps what it has.
for (const row of values.only ? [values.only] : ROWS) {
  const begin = performance.now()
  const part = await report(row)
  console.log(`${part}\n${row}: ${((performance.now() - begin) / 1000).toFixed(0)} s`)
  text += `\n${part}`
  if (!values.quick)
    writeFileSync(RESULTS, values.only ? replaced(readFileSync(RESULTS, 'utf8'), part) : text + others)
}

/** The file with this row in place of what it had; the head still says what most rows were made with. */
function replaced(file, part) {
  const parts = file.split(/^(?=##? )/m)
  const [heading] = part.split('\n')
  const index = parts.findIndex((each) => each.startsWith(`${heading}\n`))
  if (index < 0) throw new Error(`benches/RESULTS.md has no ${heading}: run all rows once`)
  const isLast = index === parts.length - 1
  return parts.with(index, isLast ? part : `${part}\n`).join('')
}
