/** The results, in figures: for each policy, or for each host where there are several. */
import { policyOf } from './policies.js'
import { hostOf, short, span } from './words.js'

/** The figures of a line: from a recorder that has heard everything since the beginning. */
export function figuresOf(stage, { run, scope, label }) {
  const { sent, served, refused, failed, waitedMs, latencyMs, allowed } =
    stage.recorders[run].totals.get(scope)
  const waiting = stage.recorders[run].lines.get(scope).waiting.at(-1) ?? 0
  return {
    ...{ label, run, scope, sent, served, refused, failed, waiting },
    meanMs: served > 0 ? waitedMs / served : undefined,
    latencyMs: served > 0 ? latencyMs / served : undefined,
    share: hasShare(stage.program) && allowed > 0 ? served / allowed : undefined,
  }
}

/**
 * Whether *of the limit* means something: one server, and as many requests as may leave. With less to send, or
 * a quota, the server's limit is not what bounds.
 */
const hasShare = ({ options, policies }) =>
  !options.load &&
  Object.keys(options.servers ?? {}).length === 0 &&
  !JSON.stringify(policies).includes('"quota"')

/** A line's figures as a sentence. */
export function inWords({ label, served, refused, failed, meanMs, waiting }, { load }) {
  const bad = [
    refused > 0 ? `${count(refused)} refused` : '',
    failed > 0 ? `${count(failed)} failed` : '',
  ].filter(Boolean)
  const waits = load && waiting > 0 ? `; ${count(waiting)} still wait here` : ''
  const mean = load && meanMs !== undefined ? `, ${span(meanMs)} from queued to answered` : ''
  return `${label}: ${count(served)} served${mean}, ${bad.join(', ') || 'none refused'}${waits}.`
}

/** The verdict of a story that is over: what it is about, and a sentence for each line. */
export function verdictOf(stage, lines, story) {
  const figures = lines.map((line) => figuresOf(stage, line))
  const { options } = stage.program
  const moral = story?.moral ? [story.moral(figures)] : []
  // The table has the rest of many hosts.
  return lines.length > 2 && story ? moral : [...moral, ...figures.map((each) => inWords(each, options))]
}

/** The names of policies: the kind; two of one kind get a letter. */
export function namesOf({ policies }) {
  const labels = policies.map(({ kind, name }) => name ?? (policyOf(kind) ?? policyOf('custom')).label)
  return labels[0] === labels[1] ? labels.map((label, index) => `${label} ${'AB'[index]}`) : labels
}

/** A line for each policy; where there are several hosts, for each of them. */
export function linesOf(program) {
  const hosts = Object.keys(program.options.servers ?? {})
  if (hosts.length === 0) return namesOf(program).map((label, run) => ({ run, scope: 'server', label }))
  return ['server', ...hosts].map((scope) => ({ run: 0, scope, label: hostOf(scope) }))
}

/** Thousands apart. */
export const count = (number) => String(Math.round(number)).replaceAll(/\B(?=(\d{3})+$)/g, ',')

export const percent = (share) => (share === undefined ? '–' : `${short(share * 100)} %`)
