/**
 * A rolling upgrade by real processes: some speak another version of the protocol, so neither kind reads the
 * other. The limit holds all the same: a process that hears that others live waits, as
 * `docs/shared-faults.md` says. Real time, as in `redis.test.mjs`.
 *
 * With `OLDER`, a folder in which an older commit was built (`git worktree add OLDER e2a127f`, and there
 * `npm ci` and `npm run build`), the others are of that package, too.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { isAll } from '../required.mjs'
import { member, startSite, stopAll, until } from './processes.mjs'
import { freePort, RedisServer, SERVERS } from './server.mjs'

const skip = isAll || SERVERS.length > 0 ? false : 'no redis-server'

const { OLDER } = process.env

test('processes of two versions keep one limit, whichever decides', { skip }, (t) =>
  upgrade(t, { version: 4 }),
)

test('processes of an older package and of this one keep one limit', { skip: !OLDER && 'no OLDER' }, (t) =>
  upgrade(t, { dist: pathToFileURL(`${OLDER}/dist/`).href }),
)

/** First there are three that are `older`, then three of ours; then the older ones go, one by one. */
async function upgrade(t, older) {
  const store = await new RedisServer(await freePort()).start()
  t.after(() => store.stop())
  const seen = await startSite(50)
  t.after(seen.stop)
  const options = { defaults: { delay: 50, jitter: false, concurrency: 2 } }
  const start = (which) =>
    member({ client: 'ioredis', port: store.port, name: 'versions', url: seen.url, options, ...which })
  const old = [start(older), start(older), start(older)]
  const by = (some) => some.reduce((sum, { pid }) => sum + (seen.by.get(pid) ?? 0), 0)
  await until('the old ones are served', () => old.every(({ pid }) => seen.by.get(pid) > 5))
  const ours = [start(), start(), start()]
  await sleep(2000)
  assert.equal(by(ours), 0, 'an old one has the lease')
  // The old writer is killed. A new process that decided would have others beside it that do not know of it.
  for (let round = 0; round < 2; round++) {
    for (const child of old) child.send('state')
    const isWriter = ({ said }) => said.findLast(({ state }) => state)?.state.isWriter
    await until('one of them decides', () => old.some(isWriter))
    const writer = old.find(isWriter)
    seen.kill(writer)
    old.splice(old.indexOf(writer), 1)
    const [before, from] = [seen.total, performance.now()]
    await sleep(9000)
    const most = (performance.now() - from) / 50 + 5
    assert.ok(seen.total - before <= most, `${seen.total - before} of ${most} by both versions`)
    assert.equal(by(ours), 0, 'the old ones live: another of them decides')
  }
  const waits = ours.flatMap(({ said }) => said.filter(({ warning }) => warning))
  assert.ok(waits.some(({ warning }) => warning === 'group-version'))
  for (const child of old) seen.kill(child)
  seen.most = 0
  const before = ours.map(({ pid }) => seen.by.get(pid) ?? 0)
  await until('the new ones have the whole limit', () =>
    ours.every(({ pid }, place) => (seen.by.get(pid) ?? 0) > before[place] + 10),
  )
  assert.ok(seen.most <= 2, `${seen.most} at a time`)
  await stopAll(ours)
}
