/** `--state`: a crawl that is killed twenty times, and a list that is killed twice. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { folder, linesOf, origin, run, survives } from '../js/kills.js'

survives('bodies and index', [])

test('a list is gone on with after a kill', async () => {
  const list = Array.from({ length: 60 }, (_, page) => `${origin}/p${page}`).join('\n')
  writeFileSync(join(folder, 'list.txt'), `# pages\n${list}\n`)
  const [out, state] = [join(folder, 'list'), join(folder, 'list.state')]
  const usual = ['get', 'list.txt', '--options', 'options.json', '--out', out, '--state', state]
  for (const after of [5, 20]) assert.equal((await run(usual, after)).signal, 'SIGKILL')
  const last = await run(usual)
  assert.equal(last.code, 0, last.said)
  const urls = linesOf(join(out, 'index.jsonl')).map(({ url }) => url)
  assert.deepEqual([urls.length, new Set(urls).size], [60, 60])
})
