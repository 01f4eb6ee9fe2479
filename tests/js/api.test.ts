/** `docs/api.md` is what the sources say. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
// @ts-expect-error: a script without types.
import { api } from '../../docs/api.mjs'

test('every public member is on docs/api.md (node docs/api.mjs writes it anew)', () => {
  const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')
  assert.equal(page, api())
  for (const member of ['throttle.map', 'permit.settle', 'scope.configure', 'boundBy'])
    assert.ok(page.includes(`| \`${member}`), member)
})
