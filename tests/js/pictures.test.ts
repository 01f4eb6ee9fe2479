/** The pictures of the guides are what the engine does now: drawn again, they are the same to the letter. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
// @ts-expect-error: a script without types.
import { pictures } from '../../docs/images/pictures.mjs'
// @ts-expect-error: a script without types.
import { headline, race } from '../../site/playground/race.js'

test('the README says what the race gives', async () => {
  const { simulate } = await import('autothrottle/simulate')
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  assert.ok(readme.replaceAll(/\s+/g, ' ').includes(`![${headline(race(simulate))}]`))
})

for (const [name, drawn] of Object.entries(pictures() as Record<string, string>)) {
  test(`docs/images/${name} shows what the engine does (npm run bless draws it anew)`, () => {
    const kept = readFileSync(new URL(`../../docs/images/${name}`, import.meta.url), 'utf8')
    assert.equal(drawn, kept)
    const marks = kept.match(/<rect|<polyline/g) ?? []
    assert.ok(marks.length >= 3, 'something is drawn')
    const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
    const isShown = read('docs/policies.md').includes(`](images/${name})`)
    assert.ok(isShown || read('README.md').includes(`docs/images/${name}`), 'it is shown')
    assert.ok(kept.length < 500_000, `${kept.length} bytes`)
  })
}
