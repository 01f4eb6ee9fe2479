/**
 * The cases of `tests/vectors/llm.jsonl`, which every host plays: bodies, refusals, requests. Those of
 * `llm-names.jsonl`: the scopes of accounts and models, which a group's hosts share.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createThrottle } from 'autothrottle'
import { llmFetch } from 'autothrottle/llm'
import { FakeClock } from 'autothrottle/testing'
import { Body, refusalOf } from '../../js/llm/answer.js'
import { askedOf, type Vendor } from '../../js/llm/request.js'

type Parts = string | readonly (readonly [string, number])[]
interface Case {
  readonly name: string
  readonly is: Readonly<Record<string, unknown>>
  readonly body?: Parts
  readonly stream?: boolean
  readonly cachedFree?: boolean
  readonly refusal?: Parts
  readonly status?: number
  readonly waitMs?: number
  readonly retryAfter?: boolean
  readonly toldFinal?: boolean
  readonly anthropic?: boolean
  readonly request?: Parts
  readonly host?: string
  readonly path?: string
  readonly method?: string
  readonly formModel?: string
  readonly vendor?: Vendor
}

const textOf = (parts: Parts) =>
  typeof parts === 'string' ? parts : parts.map(([text, times]) => text.repeat(times)).join('')

function bodyOf(told: Parts, { stream = false, cachedFree = false }: Case) {
  const body = new Body(stream, cachedFree)
  const bytes = new TextEncoder().encode(textOf(told))
  // Pieces of a prime length, and one whole where it is long.
  const piece = bytes.length > 10_000 ? 65_537 : 7
  for (let at = 0; at < bytes.length; at += piece) body.hear(bytes.subarray(at, at + piece))
  body.end()
  const { usage, written, isBroken: broken, isWhole: whole } = body
  const { input = null, free, output = null } = usage
  return { input, free, output, written, broken, whole }
}

function readRefusal(told: Parts, { status, waitMs, retryAfter, toldFinal, anthropic }: Case) {
  const headers = new Headers(toldFinal ? { 'x-should-retry': 'false' } : {})
  if (retryAfter) headers.set('retry-after', String(waitMs! / 1000))
  else if (waitMs) headers.set('retry-after-ms', String(waitMs))
  const read = refusalOf(new Response('', { status: status!, headers }), textOf(told), anthropic!)
  return { waitMs: read.wait ?? null, final: read.isFinal, kind: read.kind ?? null }
}

function readRequest(told: Parts, { host, path, method, formModel, vendor, is }: Case) {
  const texts: string[] = []
  const count = (text: string) => {
    texts.push(text)
    return 0
  }
  const form = new FormData()
  if (formModel) form.set('model', formModel)
  const body = formModel ? form : textOf(told)
  const url = new URL(`https://${host}${path}`)
  const asked = askedOf(url, method!, body, vendor, is.texts ? count : undefined)
  const { characters, bytes, tokens, isUncounted: uncounted, model = null, bound = null } = asked
  const read = { vendor: asked.vendor, model, characters, bytes, tokens, bound, uncounted }
  return is.texts ? { ...read, texts: texts.reverse() } : read
}

for (const line of readFileSync(`${import.meta.dirname}/../vectors/llm.jsonl`, 'utf8')
  .trim()
  .split('\n')) {
  const told = JSON.parse(line) as Case
  test(told.name, () => {
    const { body, refusal, request } = told
    const read =
      body !== undefined
        ? bodyOf(body, told)
        : refusal !== undefined
          ? readRefusal(refusal, told)
          : readRequest(request!, told)
    assert.deepEqual(read, told.is)
  })
}

interface Named {
  readonly name: string
  readonly model: string
  readonly vendor: Vendor
  readonly headers: Readonly<Record<string, string>>
  readonly is: string
}

for (const line of readFileSync(`${import.meta.dirname}/../vectors/llm-names.jsonl`, 'utf8')
  .trim()
  .split('\n')) {
  const { name, model, vendor, headers, is } = JSON.parse(line) as Named
  test(`the scopes of an account and a model: ${name}`, async () => {
    const throttle = createThrottle({ clock: new FakeClock(), fetch: async () => new Response('{}') })
    const body = JSON.stringify({ model, messages: [] })
    await llmFetch(throttle, { vendor })('https://h/v1/messages', { method: 'POST', body, headers })
    const scopes = Object.keys(throttle.stats().scopes).filter((scope) => scope.endsWith('#requests'))
    assert.deepEqual(scopes, [`llm:h/${is}#requests`])
  })
}
