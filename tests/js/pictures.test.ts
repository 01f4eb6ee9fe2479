/** The pictures of the guides are what the engine does now: drawn again, they are the same to the letter. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
// @ts-expect-error: a script without types.
import { pictures } from '../../docs/images/pictures.mjs'

for (const [name, drawn] of Object.entries(pictures() as Record<string, string>)) {
  test(`docs/images/${name} shows what the engine does (npm run bless draws it anew)`, () => {
    const kept = readFileSync(new URL(`../../docs/images/${name}`, import.meta.url), 'utf8')
    assert.equal(drawn, kept)
    const marks = kept.match(/<rect|<polyline/g) ?? []
    assert.ok(marks.length >= 3, 'something is drawn')
    const text = readFileSync(new URL('../../docs/policies.md', import.meta.url), 'utf8')
    assert.ok(text.includes(`](images/${name})`), 'it is shown')
  })
}
