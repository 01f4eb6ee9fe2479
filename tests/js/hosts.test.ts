/** The names of servers: `tests/vectors/hosts.json`, which Python and Rust play, too. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { hostOf } from '../../js/scopes/names.js'

const HOSTS: { urls: [url: string, name: string | null][] } = JSON.parse(
  readFileSync(new URL('../vectors/hosts.json', import.meta.url), 'utf8'),
)

test('a server has one name, however its URL is written', () => {
  for (const [url, name] of HOSTS.urls)
    if (name === null) assert.throws(() => hostOf(url), TypeError, url)
    else assert.equal(hostOf(url), name, url)
})
