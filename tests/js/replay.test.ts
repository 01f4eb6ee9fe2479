/** Every trace through WebAssembly: the transcript must be the native one, byte for byte. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { play } from './player.js'

const folder = new URL('../traces/', import.meta.url)
const traces = readdirSync(folder).filter((name) => name.endsWith('.trace'))

test('there are traces', () => assert.ok(traces.length >= 13))

for (const name of traces) {
  test(`${name} is played as natively`, () => {
    const golden = readFileSync(new URL(name.replace(/trace$/, 'golden'), folder), 'utf8')
    assert.equal(play(readFileSync(new URL(name, folder), 'utf8')), golden)
  })
}
