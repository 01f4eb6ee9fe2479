/**
 * What `npm run mutants` and `npm run mutants:js` leave alive is explained, and the explanations are of
 * today's code.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { survivors } from '../../scripts/mutants.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('each survivor is of a file, a function and a line that are still there, and has its reason', () => {
  const rows = survivors()
  assert.ok(rows.length > 0)
  for (const { file, mutant, source, reason } of rows) {
    assert.ok(existsSync(root + file), `${file} is no more`)
    const text = readFileSync(root + file, 'utf8')
    assert.ok(source.length > 5 && text.includes(source), `${file} no longer says ${source}`)
    // `replace + with - in Some::thing`, `replace Some::thing -> u8 with 1`, `delete ! in thing`.
    const place =
      / in ([\w:<>' ,&]+)$/.exec(mutant)?.[1] ?? /^replace ([\w:<>' ,&]+?)(?: ->| with)/.exec(mutant)?.[1]
    const name = place?.split('::').at(-1)
    assert.ok(name !== undefined && text.includes(`fn ${name}`), `${file} has no function of ${mutant}`)
    assert.ok(reason.length > 20, `${file}: ${mutant}: no reason`)
  }
  const keys = rows.map(({ file, mutant, source }) => `${file}: ${mutant}: ${source}`)
  assert.equal(new Set(keys).size, keys.length, 'none is there twice')
})
