/**
 * The blame for a failure, by the codes and words of all runtimes, and the answers in results and errors. A
 * wrong word here blames a server for what it never saw, or lets one off that refuses.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  createThrottle,
  ScopeDownError,
  type SettleEvent,
  type ThrottleOptions,
  TimeoutError,
} from 'autothrottle'
import { SharedError } from 'autothrottle/local'
import { FakeClock } from 'autothrottle/testing'
import { build } from 'esbuild'
import {
  answerIn,
  answerInError,
  answerOfError,
  answerOfResult,
  checkedHeaders,
  isStatus,
} from '../../js/answers/answer.js'
import { failureOf, failureOfRequest } from '../../js/answers/failures.js'

const [CONNECTION, TIMEOUT, NEITHER] = [0, 1, Number.NaN]

const failed = (fields: object, message = 'it broke') => Object.assign(new Error(message), fields)
const caused = (cause: unknown, depth = 1): Error =>
  new Error('outer', { cause: depth === 1 ? cause : caused(cause, depth - 1) })

test('codes of Node, undici and Bun are the server’s doing; a code that only looks like one is not', () => {
  const codes =
    'ECONNREFUSED ECONNRESET ECONNABORTED EPIPE ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH ENETDOWN'
  const secure = 'EPROTO CERT_HAS_EXPIRED ERR_TLS_CERT_ALTNAME_INVALID UND_ERR_SOCKET ConnectionRefused'
  for (const code of `${codes} ${secure} ConnectionClosed ConnectionReset`.split(' '))
    assert.equal(failureOf(failed({ code })), CONNECTION, code)
  const late = 'ETIMEDOUT ESOCKETTIMEDOUT ERR_TIMEOUT UND_ERR_CONNECT_TIMEOUT UND_ERR_HEADERS_TIMEOUT'
  for (const code of `${late} UND_ERR_BODY_TIMEOUT`.split(' '))
    assert.equal(failureOf(failed({ code })), TIMEOUT, code)
  const others =
    'EACCES MY_ECONNREFUSED EPIPES XEPIPE XETIMEDOUT ETIMEDOUTS UND_ERR_INVALID_ARG ENOENT ERR_TLS_'
  for (const code of `${others} MY_CERT_X UND_ERR_SOCKETS`.split(' '))
    assert.equal(failureOf(failed({ code })), NEITHER, code)
  assert.equal(failureOf(failed({ code: 111 })), NEITHER)
})

test('words of every runtime are a failure of the connection, wherever they stand in the chain', () => {
  for (const words of [
    'fetch failed',
    'Failed to fetch',
    'NetworkError when attempting to fetch resource.',
    'Load failed',
    'Network connection lost.',
    'error sending request for url (http://x/)',
    'Unable to connect. Is the computer able to access the url?',
    'The socket connection was closed unexpectedly',
  ]) {
    assert.equal(failureOf(new Error(words)), CONNECTION, words)
    assert.equal(failureOf(caused(new Error(words))), CONNECTION, words)
  }
  assert.equal(failureOf(new Error('the word is wrong')), NEITHER)
  assert.equal(failureOf({ message: 7 }), NEITHER, 'a message that is no text')
  // `TypeError: fetch failed` says why in its cause; where that is silent, its own words count.
  assert.equal(failureOf(new TypeError('fetch failed', { cause: failed({ code: 'ETIMEDOUT' }) })), TIMEOUT)
  assert.equal(failureOf(new TypeError('fetch failed', { cause: new Error('?') })), CONNECTION)
  assert.equal(failureOf(new Error('fetch failed', { cause: new Error('?') })), NEITHER)
  assert.equal(failureOf(new TypeError('x is not a function', { cause: new Error('?') })), NEITHER)
})

test('a cause is looked for as deep as clients nest them, and no deeper', () => {
  const reset = failed({ code: 'ECONNRESET' })
  for (const depth of [1, 2, 3, 4]) assert.equal(failureOf(caused(reset, depth)), CONNECTION, `${depth}`)
  assert.equal(failureOf(caused(reset, 5)), NEITHER)
  const ring = new Error('ring')
  ring.cause = ring
  assert.equal(failureOf(ring), NEITHER)
})

test('a failure is no error, an abort, or a timeout by its name', () => {
  for (const nothing of [undefined, null, 'fetch failed', 7, () => {}, {}])
    assert.equal(failureOf(nothing), NEITHER)
  assert.equal(failureOf(new DOMException('stop', 'AbortError')), NEITHER)
  assert.equal(failureOf(caused(failed({ name: 'AbortError', code: 'ECONNRESET' }))), NEITHER)
  assert.equal(failureOf(new DOMException('late', 'TimeoutError')), TIMEOUT)
  assert.equal(failureOf(caused({ name: 'TimeoutError' })), TIMEOUT)
})

test('a rejection of fetch is the connection’s, unless the caller aborted it or it took too long', () => {
  const aborted = (reason?: unknown) => AbortSignal.abort(reason)
  assert.equal(failureOfRequest(new Error('whatever')), CONNECTION)
  assert.equal(failureOfRequest(null), CONNECTION)
  assert.equal(failureOfRequest(undefined, null), CONNECTION)
  assert.equal(failureOfRequest(failed({ code: 'ETIMEDOUT' })), TIMEOUT)
  assert.equal(failureOfRequest(new DOMException('stop', 'AbortError')), NEITHER)
  const reason = new Error('not wanted')
  assert.equal(failureOfRequest(reason, aborted(reason)), NEITHER)
  assert.equal(failureOfRequest(reason, new AbortController().signal), CONNECTION, 'it was not aborted')
  assert.equal(failureOfRequest(new Error('reset'), aborted(reason)), CONNECTION, 'something else failed')
  const late = new DOMException('late', 'TimeoutError')
  assert.equal(failureOfRequest(late, aborted(late)), NEITHER, '`AbortSignal.timeout` of one’s own')
})

test('a status is a whole number of three digits, and an answer is what has one', () => {
  for (const status of [100, 200, 429, 599, 999]) assert.ok(isStatus(status), `${status}`)
  for (const status of [99, 1000, 200.5, '200', Number.NaN, null, undefined])
    assert.ok(!isStatus(status), `${status}`)
  assert.deepEqual(answerIn({ status: 'ok', statusCode: 204 }), { status: 204, headers: undefined })
  assert.deepEqual(answerIn({ status: 201, statusCode: 204 }), { status: 201, headers: undefined })
  assert.deepEqual(answerIn({ status: 200, headers: 'retry-after: 7' }), { status: 200, headers: undefined })
  for (const nothing of [undefined, null, 7, 'x', {}, () => {}]) {
    assert.equal(answerIn(nothing), undefined)
    assert.equal(answerInError(nothing), undefined)
  }
  assert.deepEqual(answerInError({ response: { status: 503 }, status: 200 })?.status, 503)
  assert.deepEqual(answerInError({ response: 'gone', status: 410 })?.status, 410)
})

test('a result and an error as answers: without an answer nothing', () => {
  assert.deepEqual(answerOfResult({ status: 200 }), { status: 200, headers: undefined })
  assert.deepEqual(answerOfResult({ status: 200, headers: {} }), { status: 200, headers: {} })
  assert.equal(answerOfResult('text'), undefined)
  const reset = failed({ code: 'ECONNRESET' })
  assert.deepEqual(answerOfError(reset, undefined), { error: reset })
  assert.equal(answerOfError(reset, AbortSignal.abort(reset)), undefined, 'the caller’s own reason')
  assert.deepEqual(answerOfError(reset, AbortSignal.abort('other')), { error: reset })
  assert.deepEqual(answerOfError(reset, new AbortController().signal), { error: reset })
  assert.equal(answerOfError(new Error('a bug'), null), undefined)
  assert.deepEqual(answerOfError(failed({ status: 429 }), null), { status: 429, headers: undefined })
})

test('header fields in any form are read, and what is none says so', () => {
  const headers = new Headers({ a: '1' })
  assert.equal(checkedHeaders(headers), headers)
  const plain = { 'retry-after': '7' }
  assert.equal(checkedHeaders(plain), plain)
  assert.deepEqual(checkedHeaders([]), [])
  assert.deepEqual(checkedHeaders(['a', '1', 'b', '2']), [
    ['a', '1'],
    ['b', '2'],
  ])
  const lists = [
    ['a', ['1', '2']],
    ['b', 3],
    ['c', undefined],
    ['d', null],
  ]
  const read = [
    ['a', '1'],
    ['a', '2'],
    ['b', '3'],
  ]
  assert.deepEqual(checkedHeaders(lists), read)
  assert.deepEqual(checkedHeaders(new Map(lists as [string, unknown][])), read)
  for (const wrong of [undefined, null, 7, 'a: 1', ['a', '1', 'b'], [['a', '1'], 'b'], [[7, '1']]])
    assert.throws(() => checkedHeaders(wrong), { name: 'TypeError', message: /^headers: want Headers/ })
})

test('whatever is thrown comes through as it is, and the slot comes back', async () => {
  for (const thrown of [undefined, null, 'text', 7, Symbol('s')]) {
    const throttle = createThrottle({ defaults: { delay: 0, slotDelay: 0 } })
    const statuses: unknown[] = []
    throttle.addEventListener('settle', ({ status }: SettleEvent) => statuses.push(status))
    const caught = await throttle.run({ scopes: 'x' }, () => Promise.reject(thrown)).catch((error) => error)
    assert.equal(caught, thrown)
    assert.deepEqual([statuses, throttle.stats().inFlight], [[undefined], 0])
  }
})

describe('hosts that are down, waits that are in vain, stalls', () => {
  const page = 'https://a.example/page'
  const refused = () => Promise.reject(Object.assign(new TypeError('fetch failed'), { code: 'ECONNREFUSED' }))

  function make(options: ThrottleOptions, answer: () => Promise<Response>) {
    const clock = new FakeClock()
    let sent = 0
    const fetch = (async () => {
      sent++
      return answer()
    }) as typeof globalThis.fetch
    return { clock, throttle: createThrottle({ clock, fetch, seed: 1, ...options }), sent: () => sent }
  }

  test('fifty requests to a dead host with retries are over in two minutes', async () => {
    const { clock, throttle, sent } = make({ downAfter: 60_000, retry: { limit: 3 } }, refused)
    const errors: unknown[] = []
    for (let count = 0; count < 50; count++) throttle.fetch(page).catch((error) => errors.push(error))
    await clock.advance(120_000)
    assert.equal(errors.length, 50)
    const down = errors.filter((error) => error instanceof ScopeDownError)
    assert.ok(down.length >= 45 && sent() < 20, `${down.length} down, ${sent()} sent`)
    assert.match(String(down[0]), /^ScopeDownError: a\.example is down: no answer has come for \d+ s$/)
    const { waiting, inFlight } = throttle.stats()
    assert.deepEqual([waiting, inFlight], [0, 0])
    const probe = throttle.fetch(page).catch(({ code }) => code)
    await assert.rejects(throttle.fetch(page), ScopeDownError, 'another one looks')
    assert.equal(await probe, 'ECONNREFUSED')
  })

  test('a timeout that a known hold outlasts is refused at once', async () => {
    const { clock, throttle } = make({ delay: 0 }, async () => new Response('ok'))
    throttle.scope('a.example').hold(10_000)
    for (const ask of [
      () => throttle.fetch(page, { throttle: { maxWait: 5000 } }),
      () => throttle.run(page, () => 1, { maxWait: 5000 }),
      () => throttle.acquire({ scopes: ['b', 'a.example'] }, { maxWait: 5000 }),
    ])
      await assert.rejects(ask, (error: TimeoutError) => {
        assert.ok(error instanceof TimeoutError && !error.isSent)
        assert.match(error.message, /would be held for 10000 ms, longer than its maxWait, 5000 ms/)
        return true
      })
    assert.deepEqual([clock.now(), throttle.stats().waiting], [0, 0])
    const patient = throttle.fetch(page, { throttle: { maxWait: 10_001 } })
    await clock.advance(10_000)
    assert.equal((await patient).status, 200)
  })

  test('a stall is told after two minutes, to who listens or else as a warning', async () => {
    for (const isHeard of [true, false]) {
      const { clock, throttle } = make({}, async () => new Response('', { status: 503 }))
      const told: string[] = []
      const tell = (what: string) => told.push(`${what} at ${clock.now() < 400_000}`)
      if (isHeard) throttle.addEventListener('stall', ({ scope }) => tell(`stall ${scope}`))
      throttle.addEventListener('warning', ({ code, scope }) => tell(`${code} ${scope}`))
      const all = Promise.all(Array.from({ length: 12 }, () => throttle.fetch(page)))
      await clock.advance(3_600_000)
      await all
      assert.deepEqual(told, ['stall a.example at true'])
    }
  })
})

test('an error has its name also where a bundler shortens the names of classes', async () => {
  const { outputFiles } = await build({
    entryPoints: [new URL('../../js/base/errors.ts', import.meta.url).pathname],
    bundle: true,
    minify: true,
    format: 'esm',
    write: false,
  })
  type Kinds = Record<string, new (...args: unknown[]) => Error>
  const code = `data:text/javascript,${encodeURIComponent(outputFiles[0]!.text)}`
  const small = (await import(code)) as Kinds
  const whole = (await import('../../js/base/errors.js')) as unknown as Kinds
  const kinds = Object.keys(whole).filter((name) => /Error$/.test(name) && name !== 'ThrottleError')
  assert.ok(kinds.length > 12, kinds.join())
  for (const name of kinds) {
    const given = name === 'ConfigError' || name === 'SnapshotError' ? [] : new Response('')
    for (const all of [small, whole]) assert.equal(new all[name]!(given, given, given).name, name)
  }
  assert.equal(new SharedError('gone').name, 'SharedError')
})
