/**
 * Whether a message is well formed: each field that anybody reads has its type and a sensible number.
 *
 * The trap is a message that is believed: one odd field, of a newer version or of a program with a fault,
 * ended every process that heard it.
 */
type Check = (value: unknown) => boolean

const text: Check = (value) => typeof value === 'string'
const real: Check = (value) => Number.isFinite(value)
const amount: Check = (value) => Number.isFinite(value) && (value as number) >= 0
const count: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const level: Check = (value) => value === 0 || value === 1 || value === 2
const is =
  (known: unknown): Check =>
  (value) =>
    value === known
const or =
  (...checks: Check[]): Check =>
  (value) =>
    checks.some((check) => check(value))
const maybe =
  (check: Check): Check =>
  (value) =>
    value === undefined || value === null || check(value)
const list =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const row =
  (...checks: Check[]): Check =>
  (value) =>
    Array.isArray(value) && checks.every((check, place) => check(value[place]))
const object =
  (fields: Record<string, Check>): Check =>
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(fields).every(([name, check]) => check((value as Record<string, unknown>)[name]))
const valuesOf =
  (check: Check): Check =>
  (value) =>
    object({})(value) && list(check)(Object.values(value!))

const names = list(text)
const cost = or(amount, list(amount))
/** What the engine is told of an answer: four numbers at least. */
const told: Check = (value) => list(or(real, is(null)))(value) && (value as []).length >= 4
const ask = { id: count, attempt: count, names, cost, priority: real, delay: amount, waited: amount }
const flight = object({ ...ask, sentAgo: amount, told: maybe(told), said: maybe(row(count, count)) })
const order = or(
  row(is('configure'), text, object({})),
  row(is('crawl'), text, or(amount, is(null))),
  row(is('hold'), text, amount),
  row(is('adjust'), text, amount, amount, amount),
  row(or(is('pause'), is('resume')), or(text, is(null))),
  row(is('reset'), text),
  row(is('watch'), level),
)
const ACTS: Readonly<Record<string, Check>> = {
  ask: row(text, ...Object.values(ask)),
  over: row(text, count, count, told),
  left: row(text, count, count, real),
  cancel: row(text, count),
  order: row(text, count, order),
}
/** One of a newer program that nobody here knows means nothing. */
const act: Check = (value) => row(text)(value) && (ACTS[(value as string[])[0]!]?.(value) ?? true)
const refusal = or(
  row(count, is('full')),
  row(count, is('cost'), maybe(text), maybe(text)),
  row(count, is('down'), text, amount),
  row(count, is('wrong'), text),
)
const head = { from: text, epoch: count }
const toWriter = { ...head, hello: count }
const orders = list(row(count, amount, order))

const MESSAGES: Readonly<Record<string, Check>> = {
  hello: object({
    ...toWriter,
    waiting: list(object(ask)),
    flying: list(flight),
    orders,
    hash: text,
    watch: level,
  }),
  turn: object({ ...toWriter, number: count, acts: list(act) }),
  ping: object(toWriter),
  bye: object(toWriter),
  grant: object({
    ...head,
    hello: count,
    number: count,
    ids: (value) => list(count)(value) && (value as []).length % 2 === 0,
    refused: list(refusal),
    at: maybe(real),
  }),
  beat: object({
    ...head,
    members: valuesOf(row(count, count, count)),
    hash: text,
    state: maybe(text),
    seen: maybe(text),
  }),
  tell: object({ ...head, now: real, notices: list(object({ kind: text })), of: maybe(text) }),
  resign: object({ ...head, state: text }),
}

/** Whether whoever reads it finds what is to be in a message of its type. */
export function isMessage(value: { type?: unknown }): boolean {
  return typeof value.type === 'string' && Object.hasOwn(MESSAGES, value.type) && MESSAGES[value.type]!(value)
}

/** Whether it is what a writer remembers; of its snapshot the engine judges. */
export const isState = object({
  snapshot: object({ scopes: object({}) }),
  settings: list(row(text, object({}))),
  members: list(row(text, row(count, count, count), list(row(count, names)))),
})
