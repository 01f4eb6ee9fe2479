/** Sets up what a run needs, runs it, and shows it meanwhile. */
import { closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { createThrottle, type ThrottleOptions } from 'autothrottle'
import { rules } from '../robots.js'
import { type Job, Journal, keyOf } from './journal.js'
import { fetchOf } from './network.js'
import { noted, Run, type Task } from './run.js'
import { opened, type Settings } from './settings.js'
import { Store } from './store.js'
import { startView, type View } from './view.js'

/** The picture comes at the end: a place that cannot be written is known at once. */
function tryToWrite(file: string): void {
  const isNew = !existsSync(file)
  closeSync(openSync(file, 'a'))
  if (isNew) rmSync(file)
}

export async function perform(settings: Settings, task: Task, prepare?: (run: Run) => void): Promise<Run> {
  const { state, plot, throttle: options } = settings
  if (plot !== undefined) opened('--plot', () => tryToWrite(plot))
  const send = await fetchOf(settings.network)
  if (state !== undefined) Journal.claim(state, task.command)
  const snapshot = state === undefined ? undefined : Journal.pace(state)
  const throttle = createThrottle({
    redirects: 'throttle',
    ...options,
    ...(settings.isObeying ? { robots: { userAgent: settings.userAgent, rules } } : {}),
    ...(snapshot ? { snapshot } : {}),
    fetch: noted(options.fetch ?? send ?? fetch),
  } as ThrottleOptions)
  const done = new Set<string>()
  const store = await Store.open(settings, (key) => done.add(key))
  const found: Job[] = []
  const onDone = (key: string, isFailed: boolean) => {
    if (isFailed && settings.isRetryingFailed) done.delete(key)
    else done.add(key)
  }
  const onFound = (job: Job) => {
    task.recall?.(job)
    if (!done.has(keyOf(job))) found.push(job)
  }
  const journal = state === undefined ? undefined : new Journal(state, task.command, onDone, onFound)
  const run = new Run(settings, task, throttle, store, journal)
  for (const key of done) run.frontier.markDone(key)
  for (const job of found) run.frontier.add(job)
  prepare?.(run)
  throttle.addEventListener('settle', ({ status }) => {
    run.totals.requests++
    const isRefused = status === 429 || status === 503
    if (isRefused) run.totals.refused++
    run.series.note(isRefused)
  })
  throttle.addEventListener('stall', (event) => {
    const error = `only bad answers for ${Math.round(event.forMs / 1000)} s`
    run.giveUp(event.scope, { error, code: 'ERR_STALLED' })
    event.fail()
  })
  const view: View = startView(run)
  if (settings.isKeepingNothing)
    run.say('pages are not kept: --out DIR keeps them, and a pipe takes their lines')
  const onSignal = (signal: NodeJS.Signals) => run.stop(signal)
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  try {
    await run.go()
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
    view.end()
  }
  return run
}
