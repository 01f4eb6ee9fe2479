/**
 * Events beside requests, as notes on the time line: the server changed, you moved a slider, a refusal made
 * the throttle slower. Each note opens the rule that acted.
 *
 * Notes that say the same and are near each other become one, with a count.
 */

import { POLICIES } from './policies.js'
import { currentOf } from './program.js'
import { EXTRAS, SERVERS } from './servers.js'
import { short, span } from './words.js'

/** The most notes that are read; beyond them, near ones are taken together. */
const MOST = 8

/** The policies' actions, in words, and the page that has more. */
export const RULES = {
  server: {
    title: 'The server changed',
    text: 'This is part of the simulation. The throttle sees only answers, and how long they take.',
    link: 'docs/simulate',
  },
  you: {
    title: 'You changed it',
    text: 'A setting of a scope counts from this moment, as after throttle.scope(name).configure(…).',
    link: 'docs/api',
  },
  backoff: {
    title: 'Backoff',
    text:
      'A bad answer doubles the delay, to backoff.minDelay (1 s) at least and backoff.maxDelay (300 s) at most. ' +
      'Answers to requests that were already in flight count as the same step.',
    link: 'docs/policies#backoff-the-server-refuses',
  },
  hold: {
    title: 'Retry-After',
    text:
      'The server says how long to wait, so no request to it leaves before. One second is added where it says ' +
      'whole seconds: many servers cut the fraction off.',
    link: 'docs/hints#waits',
  },
  recover: {
    title: 'A step back',
    text: 'After backoff.window (60 s) without a bad answer, and with a good one, backoff takes one step back.',
    link: 'docs/policies#backoff-the-server-refuses',
  },
  rampup: {
    title: 'Rampup',
    text: 'A refusal tells rampup where the limit is. It goes on a little slower, and tries to go faster later.',
    link: 'docs/rampup#what-it-does',
  },
  ignored: {
    title: 'A refusal without effect',
    text: 'Backoff is off here, so a refusal does not change the pace.',
    link: 'docs/policies#backoff-the-server-refuses',
  },
  warning: {
    title: 'A warning',
    text: 'The throttle says so once when a setting does something else than was typed.',
    link: 'docs/errors',
  },
}

/** The notes of a stage in the order of time: `{ at, run, scope, rule, text }`; `run` is absent for the server's. */
export function notesOf({ program, recorders, now }) {
  const from = now - program.span
  const notes = [
    ...changesOf(program, now),
    ...serversOwn(program, now),
    ...recorders.flatMap((recorder, run) => toldBy(recorder, program, run)),
  ].filter(({ at }) => at >= from)
  notes.sort((a, b) => a.at - b.at)
  for (let near = program.span / 100; ; near *= 1.6) {
    const together = near > program.span ? notes.slice(-MOST) : grouped(notes, near)
    if (together.length <= MOST) return together
  }
}

/** The changes by the story or by you. */
function changesOf(program, now) {
  const before = (at) =>
    currentOf({ ...program, changes: program.changes.filter((each) => each.at < at) }, at)
  return program.changes
    .filter(({ at }) => at <= now)
    .flatMap(({ at, server, network, throttle, policy, mine }) => {
      const old = before(at)
      const rule = mine ? 'you' : 'server'
      const who = mine ? 'you' : 'server'
      const note = (label, unit, from, to) => ({
        ...{ at, rule, isChange: true },
        text: `${who}: ${label} ${worth(from, unit)} → ${worth(to, unit)}`,
      })
      const fields = [...SERVERS.flatMap((each) => each.fields), ...EXTRAS]
      const ofServer = Object.entries(server ?? network ?? {}).map(([key, value]) => {
        const field = fields.find((each) => each.key === key)
        return note(field?.label ?? key, field?.unit, (server ? old.server : old.network)?.[key], value)
      })
      const ofPolicy = Object.entries(throttle ?? {}).flatMap(([key, value]) => {
        const was = old.policies[policy].throttle.defaults?.[key]
        return differences(key, was, value).map(([path, from, to]) => {
          const field = POLICIES.flatMap((each) => each.fields).find((each) => each.path === path)
          return { ...note(field?.label ?? path, field?.unit, from ?? field?.start, to), run: policy }
        })
      })
      return [...ofServer, ...ofPolicy]
    })
}

/** Paths at which two settings differ. */
function differences(path, from, to) {
  if (typeof to !== 'object' || to === null) return from === to ? [] : [[path, from, to]]
  return Object.entries(to).flatMap(([key, value]) => differences(`${path}.${key}`, from?.[key], value))
}

function worth(value, unit) {
  if (value === undefined || value === null) return 'none'
  if (typeof value !== 'number') return typeof value === 'object' ? JSON.stringify(value) : String(value)
  if (unit === 'ms') return value >= 1000 ? `${short(value / 1000)} s` : `${short(value)} ms`
  return unit === '%' ? `${short(value * 100)} %` : short(value)
}

/** The changes that a server makes by itself. */
function serversOwn({ options }, now) {
  const all = Object.entries({ server: options.server, ...options.servers })
  return all
    .flatMap(([scope, { step, outage }]) => {
      const note = (at, text) => ({ at, scope, rule: 'server', isChange: true, text: `server: ${text}` })
      return [
        ...(step ? [note(step.at, `limit × ${short(step.factor)}`)] : []),
        ...(outage
          ? [note(outage.at, 'refuses everything'), note(outage.at + outage.length, 'serves again')]
          : []),
      ]
    })
    .filter(({ at }) => at <= now)
}

/** The engine's notices, and refusals that have none. */
function toldBy({ told, refusals }, { policies }, run) {
  const asked = JSON.stringify(policies[run]?.throttle ?? {})
  const isDeaf = /"backoff":(?:false|\{"statusCodes":\[\])/.test(asked)
  const quiet = asked.includes('"rampup"') ? 'rampup' : isDeaf ? 'ignored' : 'backoff'
  const bad = refusals.map(({ at, scope, status }) => {
    return { at, scope, run, rule: quiet, text: `${status || 'no answer'}`, count: 1 }
  })
  const notes = new Map(bad.map((note) => [`${note.scope} ${note.at}`, note]))
  let heard = 0
  for (const { kind, at, scope, delayMs, step, holdUntil, askedMs, why } of told) {
    // News of real requests comes a moment apart.
    while (bad[heard]?.at <= at + 20) heard++
    let last = heard - 1
    while (bad[last]?.at > at - 20 && bad[last].scope !== scope) last--
    const about = bad[last]?.at > at - 20 ? bad[last] : undefined
    const when = about?.at ?? at
    const place = `${scope} ${when}`
    if (kind === 'backoff') {
      const text = `${about?.text ?? 'refused'}, ${span(delayMs)} between requests`
      notes.set(place, { at: when, scope, run, rule: 'backoff', text, count: 1 })
    } else if (kind === 'hold' && askedMs === undefined) {
      const text = `${about ? `${about.text}, ` : ''}wait ${span(holdUntil - at)}`
      notes.set(place, { at: when, scope, run, rule: 'hold', text, count: 1 })
    } else if (kind === 'recover') {
      const text = step > 0 ? `step back, ${span(delayMs)} between requests` : 'recovered'
      notes.set(`${place} ${kind}`, { at, scope, run, rule: 'recover', text, count: 1 })
    } else if (why !== undefined && !isDeaf) {
      notes.set(`${place} ${kind}`, { at, scope, run, rule: 'warning', text: `warning: ${why}`, count: 1 })
    }
  }
  return [...notes.values()]
}

/** Notes of one kind that are nearer to each other than that, as one. */
function grouped(notes, near) {
  const out = []
  const last = new Map()
  for (const note of notes) {
    const key =
      note.isChange || note.rule === 'warning' ? undefined : `${note.run} ${note.scope} ${note.rule}`
    const before = key && last.get(key)
    if (before && note.at - before.until <= near) {
      before.count += note.count
      before.until = note.at
      // The last pace, not a refusal that changed none.
      if (note.text.includes(',') || note.rule === 'recover') before.text = note.text
      continue
    }
    const made = { ...note, until: note.at }
    if (key) last.set(key, made)
    out.push(made)
  }
  return out
}
