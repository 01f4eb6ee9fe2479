/** The engine's numbers, in words. */

/** The first server of several has a host's name, too. */
export const hostOf = (scope) => (scope === 'server' ? 'bad.example' : scope)

/** 950 → `0.95 s`; 61000 → `1:01`. */
export function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${trim((ms / 1000).toFixed(ms < 10_000 ? 2 : 1))} s`
  return clock(ms)
}

/** Minutes and seconds, as on a watch; of what takes seconds in all, tenths of them. */
export function clock(ms, whole = 60_000) {
  if (whole <= 10_000) return `${(Math.floor(ms / 100 + 1e-6) / 10).toFixed(1)} s`
  const seconds = Math.floor(ms / 1000 + 1e-6)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** `0:01.250` */
const clockExact = (ms) => `${clock(ms)}.${String(Math.floor(ms % 1000)).padStart(3, '0')}`

const trim = (text) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text)

/** A number in few digits. */
export const short = (value) =>
  value === null || value === undefined || Number.isNaN(value)
    ? '–'
    : trim(value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2))

const WHY = {
  paused: () => 'it is paused',
  'max-in-flight': () => 'as many requests are in flight as the whole throttle allows',
  concurrency: ({ slots }) =>
    slots === 1
      ? 'the one slot is taken until an answer comes'
      : `all ${slots} slots are taken until an answer comes`,
  delay: ({ delayMs }) => `the delay of ${span(delayMs)} between two requests is not over`,
  backoff: ({ delayMs, backoffMs, backoffStep }) =>
    `it backs off after bad answers: ${span(Math.max(delayMs, backoffMs))} between two requests` +
    (backoffStep > 0 ? `, step ${backoffStep}` : ''),
  'crawl-delay': () => 'robots.txt asks for a delay',
  'slot-delay': () => 'the slot that is next has not rested long enough',
  hold: () => 'the server asked to be left alone (Retry-After)',
  quota: ({ quotaLeft }, at) => {
    const until = at === undefined ? '' : ` until ${clock(at)}`
    return quotaLeft === undefined || quotaLeft < 1
      ? `the quota is spent${until}`
      : `it costs more than the ${short(quotaLeft)} units that are left${until}`
  },
  'request-delay': () => 'the request has a delay of its own',
  rate: () => 'the rate spaces requests evenly',
}

/** Reasons as they stand in a sentence about the past. */
const KEPT = {
  paused: 'a pause',
  'max-in-flight': 'the limit of the whole throttle',
  concurrency: 'a free slot',
  delay: 'the delay',
  backoff: 'backoff',
  'crawl-delay': 'robots.txt',
  'slot-delay': 'the delay of a slot',
  hold: 'Retry-After',
  quota: 'the quota',
  'request-delay': 'its own delay',
  rate: 'the rate',
}

/** Why the next request waits, from `state()` of a simulation. */
export function whyNext({ next, now, scopes, waiting }) {
  if (!next) return waiting > 0 ? 'The next request may leave now.' : 'No request waits.'
  const scope = scopes[next.scope] ?? Object.values(scopes)[0]
  const isOfMany = Object.keys(scopes).length > 1
  const where = next.scope && (isOfMany || next.scope !== 'server') ? ` for ${hostOf(next.scope)}` : ''
  const left = (next.at ?? 0) - now
  const when = next.at === undefined ? 'waits' : left < 1 ? 'leaves now' : `leaves in ${span(left)}`
  if (when === 'leaves now') return `The next request${where} ${when}.`
  return `The next request${where} ${when}: ${WHY[next.reason](scope, next.at)}.`
}

const STATUS = {
  200: 'served',
  429: 'refused (429 Too Many Requests)',
  503: 'refused (503 Service Unavailable)',
  504: 'failed (504 Gateway Timeout)',
  0: 'given up by the client',
}

/**
 * A request's life as parts of a bar: what each is, from when to when, and in words. A wait of no time is left out.
 */
export function parts(request, now = request.sentAt) {
  const { queuedAt, sentAt, answeredAt, status, reason, cost } = request
  const waited = sentAt - queuedAt
  const out = [{ kind: 'queued', from: queuedAt, to: queuedAt, text: `Queued at ${clockExact(queuedAt)}` }]
  if (waited >= 1) {
    const why = reason ? ` for ${KEPT[reason]}` : ''
    out.push({ kind: 'waited', from: queuedAt, to: sentAt, text: `Waited ${span(waited)}${why}` })
  }
  out.push({ kind: 'sent', from: sentAt, to: sentAt, text: `Sent at ${clockExact(sentAt)}` })
  const more = (request.headers ?? '').split('\n').filter(Boolean)
  if (cost !== undefined && cost !== 1) more.push(`Cost ${short(cost)} units`)
  if (answeredAt === undefined) {
    return [...out, { kind: 'open', from: sentAt, to: Math.max(now, sentAt), text: 'No answer yet', more }]
  }
  const said = STATUS[status] ?? `answered ${status}`
  const text = `${said[0].toUpperCase()}${said.slice(1)} after ${span(answeredAt - sentAt)}`
  const kind = status >= 200 && status < 400 ? 'served' : 'refused'
  return [...out, { kind, from: sentAt, to: answeredAt, text, more }]
}
