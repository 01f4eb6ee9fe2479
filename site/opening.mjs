/**
 * The playground's first charts, drawn as the site is built: you see them before any script has run. The live
 * ones take their place once the same has happened in the page.
 */
import { register } from 'node:module'

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
