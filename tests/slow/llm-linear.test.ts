/**
 * Four times the hostile answer of a language model is at most four times the work: bodies, events, refusals
 * and requests, whatever is in them. Work is counted (`counted.ts`), for times flicker.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { initSync, refusal, WasmAsked, WasmBody } from '../../pkg/llm.js'
import { count, stepsOf } from './counted.js'

count('llm', initSync)

/** Both below the 64,000 bytes of a refusal that are read. */
const SMALL = 15_000
const LARGE = 4 * SMALL
/** Loops and calls a byte: what is nested is looked at once a level, on 48 levels. */
const MOST_A_BYTE = 120

const FILLERS = [
  ...[
    '1',
    '.',
    '9e',
    ' ',
    '\n',
    '\\',
    '"',
    '\\u00fc',
    '\\ud83d',
    'é',
    '[',
    '{',
    ']',
    '[]',
    '{"a":',
    '"a":1,',
  ],
  ...[
    '{"delta":',
    '{"usage":',
    '"usage":{},',
    '"usage":1,',
    '{"content":"a"},',
    '[1],',
    'data:',
    'data: {}\n',
  ],
  ...[
    'data: {"choices":[{"delta":{"content":"a"}}]}\n',
    '\r',
    'input',
    'output token',
    'request',
    '1h',
    '1m ',
  ],
  ...[
    'try again in ',
    'try again in 1',
    '"retryDelay":',
    '"limit":',
    '"limit": "0',
    'limit: 0',
    '{"type":"image",',
  ],
  ...['{"text":"a"},', 'data:image/png;base64,', 'AAAA', '{"type":"image_url","image_url":{"url":"'],
]
/** The bytes before and behind them. */
const FRAMES = [
  ['', ''],
  ['{"a":"', '"}'],
  ['{"choices":[{"delta":{"content":"', '"}}]}'],
  ['{"choices":[{"delta":', '}]}'],
  ['{"usage":', '}'],
  ['{"usage":{"prompt_tokens":', '}}'],
  ['{"messages":[', ']}'],
  ['{', '"b":1}'],
  ['{"error":{"message":"try again in ', '"}}'],
] as const

const READERS: Readonly<Record<string, (text: string) => void>> = {
  body: (text) => heard(false, text),
  stream: (text) => heard(true, `data: ${text}\n\n`),
  'stream, cut everywhere': (text) => heard(true, `data: ${text}\n\n`, 64),
  refusal: (text) => void refusal(429, 0, false, false, true, text),
  request: (text) =>
    new WasmAsked('a.example', '/v1/chat/completions', 'POST', text, undefined, -1, false).free(),
}

function heard(isStream: boolean, text: string, piece = text.length): void {
  const body = new WasmBody(isStream, true)
  const bytes = new TextEncoder().encode(text)
  for (let at = 0; at < bytes.length; at += piece) body.hear(bytes.subarray(at, at + piece))
  body.end()
  body.free()
}

for (const [name, read] of Object.entries(READERS))
  test(`${name}: the work grows as the input`, (t) => {
    let most = 0
    for (const filler of FILLERS)
      for (const [before, behind] of FRAMES) {
        const [once, four] = [SMALL, LARGE].map((size) => {
          const text = before + filler.repeat(size / filler.length) + behind
          return stepsOf(() => read(text))
        }) as [number, number]
        const what = `${before}${JSON.stringify(filler)}…${behind}: ${once} steps, of four times as much ${four}`
        assert.ok(once > 0 && four <= 4.2 * once + 20_000, what)
        assert.ok(four <= LARGE * MOST_A_BYTE, what)
        most = Math.max(most, four / LARGE)
      }
    t.diagnostic(`${most.toFixed(1)} steps a byte at most`)
  })
