/** `docs/api.md` is what the sources say. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
// @ts-expect-error: a script without types.
import { api } from '../../docs/api.mjs'

test('every public member is on docs/api.md (node docs/api.mjs writes it anew)', () => {
  const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')
  assert.equal(page, api())
  for (const member of ['throttle.map', 'permit.settle', 'scope.configure', 'boundBy'])
    assert.ok(page.includes(`| \`${member}`), member)
  const entries = readdirSync(new URL('../../js', import.meta.url)).filter((name) => name.endsWith('.ts'))
  for (const entry of entries) {
    const code = readFileSync(new URL(`../../js/${entry}`, import.meta.url), 'utf8')
    for (const [, name] of code.matchAll(/^export (?:async )?(?:function|const) (\w+)/gm))
      assert.match(page, new RegExp(`\\| \`${name}\\b`), `${entry}: ${name}`)
  }
})
