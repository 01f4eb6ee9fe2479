/**
 * Gathers the pages: guides and changes from the repository, the site's own, the reference; and as JSON what pages
 * show that is worked out as the site is built.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { register } from 'node:module'
import { fileURLToPath } from 'node:url'
import { essay, SCENES } from './essay/scenes.js'
import { headline, race } from './playground/race.js'

const here = fileURLToPath(new URL('.', import.meta.url))

export async function gather() {
  const pages = `${here}.pages`
  rmSync(pages, { recursive: true, force: true })
  cpSync(`${here}pages`, pages, { recursive: true })
  cpSync(`${here}../docs`, `${pages}/docs`, { recursive: true })
  cpSync(`${here}../CHANGELOG.md`, `${pages}/changelog.md`)
  python(`${pages}/docs/python.md`)
  for (const name of ['policies', 'simulate']) playground(`${pages}/docs/${name}.md`)
  const { createSimulation, simulate } = await import('../dist/simulate.js')
  const data = {
    opening: await opening(),
    essay: essay(SCENES, createSimulation),
    hero: hero(simulate),
    install: install(),
  }
  for (const [name, of] of Object.entries(data)) writeFileSync(`${pages}/${name}.json`, JSON.stringify(of))
  reference()
}

/** How one installs the package today, by language: from the one table of the guide that says it. */
export function install() {
  const section = readFileSync(`${here}../docs/start.md`, 'utf8')
    .split(/^## /m)
    .find((each) => each.startsWith('Install'))
  const rows = [...section.matchAll(/^\| ([^|]+) \| `([^`]+)` \|$/gm)].map(([, language, line]) => [
    language,
    line,
  ])
  if (rows.length < 3) throw new Error('docs/start.md: no table of how to install')
  return Object.fromEntries(rows)
}

/** The picture on the first page, of four minutes: the rate that rampup finds below a limit that halves. */
function hero(simulate) {
  const [duration, bins] = [240_000, 96]
  // The search for the limit is over after this share of the time.
  const found = 10_000 / duration
  const { trace } = simulate({
    server: { model: 'nginx', rate: 10, burst: 2, refusal: '429', step: { at: duration / 2, factor: 0.5 } },
    network: { latency: 80, jitter: 10 },
    throttle: { rampup: true },
    duration,
    seed: 3,
  })
  const width = duration / bins
  const sent = new Array(bins).fill(0)
  for (const at of trace.sent) sent[Math.min(bins - 1, Math.floor(at / width))] += 1000 / width
  const rate = sent.map((_, index) => {
    const near = sent.slice(Math.max(0, index - 1), index + 2)
    return Number((near.reduce((sum, each) => sum + each, 0) / near.length).toFixed(2))
  })
  const refused = Array.from(trace.sent, (at) => at / duration).filter(
    (_, index) => trace.status[index] !== 200,
  )
  const within = (from, to) => refused.filter((at) => at >= from && at < to).length
  return {
    ...{ rate, refused, limits: [10, 5], all: trace.sent.length, race: headline(race(simulate)) },
    // To find the limit, beside it, and after it has halved.
    why: [within(0, found), within(found, 0.5), within(0.5, 1)],
  }
}

/** Where the guides name the playground, it is a link here: it is a page of the same site. */
function playground(page) {
  const text = readFileSync(page, 'utf8')
  const linked = text
    .replace('[playground](simulate.md)', '[playground](../playground.md)')
    .replace(/^(\*\*)?The playground/m, '$1[The playground](../playground.md)')
  if (linked === text) throw new Error(`${page} names no playground: take it out of the list`)
  writeFileSync(page, linked)
}

/** Python's own page stands beside its code: its title and its links are another's here. */
function python(page) {
  const text = readFileSync(`${here}../python/README.md`, 'utf8')
  const moved = text.replaceAll(
    /(?<=\]\(|\]: )https:\/\/github\.com\/autothrottle\/autothrottle\/blob\/main\/docs\//g,
    '',
  )
  writeFileSync(page, moved.replace(/^# .*/, '# Python'))
}

// Writes the reference from the types: typedoc's Markdown, one page for each entry of the package.

export function reference() {
  const folder = `${here}.pages/reference`
  rmSync(folder, { recursive: true, force: true })
  const typedoc = `${here}node_modules/typedoc/bin/typedoc`
  execFileSync(process.execPath, [typedoc], { cwd: here, stdio: 'inherit' })
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

// The playground's first charts, drawn as the site is built: you see them before any script has run. The live
// ones take their place once the same has happened in the page.

register('./test/resolve.mjs', import.meta.url)

/** Charts by their column, and the least that their height stands for: as in Playground.vue. */
const LEAST = { rate: 1, delay: 10, latency: 10, inFlight: 2, refused: 5 }
/** Every third sample is as much as a phone shows. */
const EVERY = 3

/** Paths of lines by chart, in a box of 1000 × 100, the limit before the policies; `notes` and `verdict` in words. */
export async function opening() {
  const { programOf } = await import('./playground/program.js')
  const { Stage } = await import('./playground/stage.js')
  const { OPENING, storyOf } = await import('./playground/stories.js')
  const { linesOf, verdictOf } = await import('./playground/figures.js')
  const { notesOf } = await import('./playground/notes.js')
  const stage = new Stage(programOf(OPENING.story))
  stage.advance(OPENING.at)
  const lines = stage.recorders.map((recorder) => recorder.lines.get('server'))
  const { times } = stage.recorders[0]
  const x = (seconds) => Math.round((seconds * 1e6) / stage.program.span)
  const chart = ([column, least]) => {
    const shown = lines.map((line) => line[column])
    if (column === 'rate') shown.unshift(lines[0].limit)
    const most = Math.max(least, Math.max(...shown.flat().map(Number)) * 1.12)
    const y = (value) => Number((100 - (value / most) * 100).toFixed(1))
    const steps = (values) =>
      values.reduce(
        (text, value, at) =>
          value === values[at - 1] && at < values.length - 1 ? text : `${text}H${x(times[at])}V${y(value)}`,
        `M0 ${y(values[0])}`,
      )
    const path = (values) => {
      if (/delay|refused/.test(column) || values === lines[0].limit) return steps(values)
      const points = values.flatMap((value, at) =>
        value === null || (at % EVERY > 0 && at < values.length - 1) ? [] : [`${x(times[at])} ${y(value)}`],
      )
      return `M${points.join(' ')}`
    }
    return [column, shown.map(path)]
  }
  const verdict = verdictOf(stage, linesOf(stage.program), storyOf(OPENING.story))
  return { ...Object.fromEntries(Object.entries(LEAST).map(chart)), notes: notesOf(stage), verdict }
}
