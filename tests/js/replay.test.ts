/** Every trace through WebAssembly: the transcript must be the native one, byte for byte. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { play } from './player.js'

const [, ...stories] = readFileSync(new URL('../traces.txt', import.meta.url), 'utf8').split('\n== ')

test('there are traces', () => assert.ok(stories.length >= 47))

for (const story of stories) {
  const name = story.slice(0, story.indexOf('\n'))
  test(`${name} is played as natively`, () => {
    assert.equal(play(story).trimEnd(), story.slice(name.length).trim())
  })
}
