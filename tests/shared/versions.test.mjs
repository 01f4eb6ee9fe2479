/**
 * A rolling upgrade by real processes: some speak another version of the protocol, so neither kind reads the
 * other. The limit holds all the same: a process that hears that others live waits, as
 * `docs/shared-faults.md` says. Real time, as in `redis.test.mjs`.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAll } from '../required.mjs'
import { member, startSite, stopAll, until } from './processes.mjs'
import { freePort, RedisServer, SERVERS } from './server.mjs'

const isThere = existsSync(new URL('node_modules/ioredis', import.meta.url)) && SERVERS.length > 0
const skip = isAll || isThere ? false : 'no clients, or no redis-server'

test('processes of two versions keep one limit, whichever decides', { skip }, async (t) => {
  const store = await new RedisServer(await freePort()).start()
  after(() => store.stop())
  const seen = await startSite(50)
  t.after(seen.stop)
  const options = { defaults: { delay: 50, jitter: false, concurrency: 2 } }
  const start = (version) =>
    member({ client: 'ioredis', port: store.port, name: 'versions', url: seen.url, options, version })
  const old = [start(4), start(4), start(4)]
  const by = (some) => some.reduce((sum, { pid }) => sum + (seen.by.get(pid) ?? 0), 0)
  await until('the old ones are served', () => old.every(({ pid }) => seen.by.get(pid) > 5))
  const ours = [start(), start(), start()]
  await sleep(2000)
  assert.equal(by(ours), 0, 'an old one has the lease')
  // The old writer is killed, and a new process may be the next. Those that it does not know live.
  for (let round = 0; round < 2; round++) {
    for (const child of old) child.send('state')
    const isWriter = ({ said }) => said.findLast(({ state }) => state)?.state.isWriter
    await until('one of them decides', () => old.some(isWriter) || by(ours) > 0)
    const writer = old.find(isWriter)
    if (writer) {
      seen.kill(writer)
      old.splice(old.indexOf(writer), 1)
    }
    const [before, from] = [seen.total, performance.now()]
    await sleep(9000)
    const most = (performance.now() - from) / 50 + 5
    assert.ok(seen.total - before <= most, `${seen.total - before} of ${most} by both versions`)
    assert.ok(seen.most <= 2, `${seen.most} at a time`)
  }
  const waits = [...old, ...ours].flatMap(({ said }) => said.filter(({ warning }) => warning))
  assert.ok(waits.some(({ warning }) => warning === 'group-version'))
  for (const child of old) seen.kill(child)
  const before = ours.map(({ pid }) => seen.by.get(pid) ?? 0)
  await until('the new ones have the whole limit', () =>
    ours.every(({ pid }, place) => (seen.by.get(pid) ?? 0) > before[place] + 10),
  )
  assert.ok(seen.most <= 2, `${seen.most} at a time`)
  await stopAll(ours)
})
