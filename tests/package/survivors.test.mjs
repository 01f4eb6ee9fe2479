/**
 * What `npm run mutants` and `npm run mutants:js` leave alive is explained, and the explanations are of
 * today's code.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { survivors } from '../mutants/score.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('each survivor is of a file, a function and a line that are still there, and has its reason', () => {
  const rows = survivors()
  assert.ok(rows.length > 0)
  for (const { file, mutant, source, reason } of rows) {
    assert.ok(existsSync(root + file), `${file} is no more`)
    const text = readFileSync(root + file, 'utf8')
    assert.ok(source.length > 5 && text.includes(source), `${file} no longer says ${source}`)
    assert.ok(reason.length > 20, `${file}: ${mutant}: no reason`)
    if (file.endsWith('.ts')) {
      const [, what] = /^replace (.{1,79}) with /.exec(mutant) ?? [undefined, source]
      const flat = source.replace(/\s+/g, ' ')
      assert.ok(flat.includes(what) || what.includes(flat), `${file}: ${mutant} is not in ${source}`)
      continue
    }
    // `replace + with - in Some::thing`, `replace Some::thing -> u8 with 1`, `delete ! in thing`.
    const place =
      / in ([\w:<>' ,&]+)$/.exec(mutant)?.[1] ?? /^replace ([\w:<>' ,&]+?)(?: ->| with)/.exec(mutant)?.[1]
    const name = place?.split('::').at(-1)
    assert.ok(name !== undefined && text.includes(`fn ${name}`), `${file} has no function of ${mutant}`)
  }
  const keys = rows.map(({ file, mutant, source }) => `${file}: ${mutant}: ${source}`)
  assert.equal(new Set(keys).size, keys.length, 'none is there twice')
})
