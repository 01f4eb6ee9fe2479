/**
 * Limits shared through a real Redis: real time, since a server, its lease and a killed process cannot be
 * played. The assertions are about counts at the server, not times.
 *
 * Needs a `redis-server` (or `valkey-server`); without one it is skipped by name, under `npm run test:all` it
 * fails.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openWay, slowWay } from '../../tools/bench/shared/proxy.mjs'
import { isAll } from '../required.mjs'
import { member, sharesWithRust, startSite, stopAll, until } from './processes.mjs'
import { freePort, RedisServer, SERVERS, Sentinel } from './server.mjs'

const skip = isAll || SERVERS.length > 0 ? false : 'no redis-server'

if (skip) test('limits shared through Redis', { skip }, () => {})
else {
  const { createThrottle } = await import('../../dist/node/index.js')
  const { redis, SharedError } = await import('../../dist/redis.js')
  const { CLIENTS, CLUSTERS, quit } = await import('./clients.mjs')
  let store
  before(async () => {
    store = await new RedisServer(await freePort()).start()
  })
  after(() => store.stop())

  /** Three throttles want 30 of a quota of 10: exactly 10 leave, whichever asks. */
  async function sharesQuota(make, name, look = () => {}) {
    const clients = await Promise.all([make(), make(), make()])
    const quota = { quota: { limit: 10, window: 600_000 }, delay: 0, concurrency: 30 }
    const throttles = clients.map((client) =>
      createThrottle({ defaults: quota, shared: redis(client, { name }) }),
    )
    const sent = throttles.map(() => 0)
    const waiting = throttles.flatMap((throttle, who) =>
      Array.from({ length: 10 }, () =>
        throttle.run('https://a.example/', () => {
          sent[who]++
          return { status: 200 }
        }),
      ),
    )
    const settled = Promise.allSettled(waiting)
    const total = () => sent.reduce((sum, count) => sum + count, 0)
    await until('ten leave', () => total() >= 10)
    await sleep(300)
    assert.equal(total(), 10)
    look()
    for (const throttle of throttles) throttle.close()
    await settled
    await Promise.all(throttles.map((throttle) => throttle[Symbol.asyncDispose]()))
    await Promise.all(clients.map(quit))
  }

  for (const [name, make] of Object.entries(CLIENTS).filter(([each]) => !each.includes('Sentinel')))
    test(`${name}: one quota for three`, () => sharesQuota(() => make(store.port), `quota ${name}`))

  for (const binary of SERVERS.filter((name) => name !== SERVERS[0]))
    test(`${binary}: one quota for three`, async () => {
      const other = await new RedisServer(await freePort(), { binary }).start()
      await sharesQuota(() => CLIENTS.iovalkey(other.port), 'quota')
      await other.stop()
    })

  test('a cluster: one quota for three', async () => {
    const ports = [await freePort(), await freePort(), await freePort()]
    const nodes = await Promise.all(
      ports.map(async (port) => {
        const args = ['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())]
        return new RedisServer(port, { args }).start()
      }),
    )
    const list = ports.map((port) => `127.0.0.1:${port}`)
    const create = ['--cluster', 'create', ...list, '--cluster-replicas', '0', '--cluster-yes']
    const { status, stdout } = spawnSync('redis-cli', create, { encoding: 'utf8' })
    assert.equal(status, 0, stdout)
    const ask = (...command) =>
      ports.flatMap((port) => {
        const { stdout } = spawnSync('redis-cli', ['-c', '-p', String(port), ...command], {
          encoding: 'utf8',
        })
        return stdout.split('\n').filter((line) => line.trim() !== '')
      })
    // Where all clients know messages that go to one node, they go there; else to all nodes.
    const all = (name) => ask('PUBSUB', 'SHARDCHANNELS').filter((it) => it === `autothrottle:{${name}}:all`)
    const plain = (name) => ask('KEYS', `autothrottle:{${name}}:plain`)
    // iovalkey hears only what goes to all nodes.
    const made = {
      ioredis: Array(3).fill('ioredis'),
      'node-redis': Array(3).fill('node-redis'),
      iovalkey: Array(3).fill('iovalkey'),
      sharded: ['ioredis', 'node-redis', 'ioredis'],
      mixed: ['iovalkey', 'node-redis', 'ioredis'],
    }
    for (const [name, which] of Object.entries(made)) {
      const rest = [...which]
      await sharesQuota(
        () => CLUSTERS[rest.pop()](ports[0]),
        name,
        () => {
          assert.deepEqual(
            plain(name),
            which.includes('iovalkey') ? [`autothrottle:{${name}}:plain`] : [],
            name,
          )
          assert.equal(all(name).length, which.every((each) => each === 'iovalkey') ? 0 : 1, name)
        },
      )
    }
    await Promise.all(nodes.map((node) => node.stop()))
  })

  test('Sentinel: a master that is killed is followed by its replica', async () => {
    const [masterPort, replicaPort, sentinelPort] = [await freePort(), await freePort(), await freePort()]
    const master = await new RedisServer(masterPort).start()
    const replica = await new RedisServer(replicaPort, {
      args: ['--replicaof', '127.0.0.1', String(masterPort)],
    }).start()
    const sentinel = await new Sentinel(sentinelPort, masterPort).start()
    const site = await startSite(300)
    const options = { defaults: { delay: 0, slotDelay: 0, jitter: false, concurrency: 4 } }
    const settings = {
      client: 'ioredis through Sentinel',
      port: sentinelPort,
      name: 's',
      url: site.url,
      options,
    }
    const children = [member(settings), member(settings)]
    await until('both send', () => site.by.size === 2)
    await sentinel.knowsReplica()
    await master.kill()
    await sentinel.hasPromoted(replicaPort)
    const before = site.total
    await until('they go on with the new master', () => site.total > before + 8)
    const reads = spawnSync('redis-cli', ['-p', String(replicaPort), 'GET', 'autothrottle:{s}:lease'])
    assert.match(String(reads.stdout), /^\d+:/)
    await stopAll(children)
    assert.equal(site.most, 4)
    site.stop()
    await Promise.all([master.stop(), replica.stop(), sentinel.stop()])
  })

  test('Rust and Node: one quota for three processes, whichever decides', async () => {
    const client = await CLIENTS.ioredis(store.port)
    await sharesWithRust(`redis://127.0.0.1:${store.port}/`, redis(client, { name: 'languages' }))
    await quit(client)
  })

  test('slots are never more than there are, when the writer, another and the store are killed', async () => {
    const site = await startSite(700)
    const options = { defaults: { delay: 0, slotDelay: 0, jitter: false, concurrency: 4 } }
    const settings = { client: 'ioredis', port: store.port, name: 'slots', url: site.url, options }
    const first = member(settings)
    await until('the first sends', () => (site.by.get(first.pid) ?? 0) > 0)
    const others = [member(settings), member(settings), member(settings)]
    const by = (child) => site.by.get(child.pid) ?? 0
    await until('all send', () => others.every((child) => by(child) > 1))
    // It was the first, so it writes.
    first.kill('SIGKILL')
    let before = site.total
    await until('the others go on', () => site.total > before + 8)
    others[0].kill('SIGKILL')
    before = site.total
    await until('two go on', () => site.total > before + 8)
    await store.kill()
    await store.start()
    before = site.total
    await until('they go on with a store that forgot', () => site.total > before + 8)
    await stopAll(others.slice(1))
    assert.equal(site.most, 4)
    site.stop()
  })

  test('a program that has nothing to wait for ends, and the next writer need not wait', async () => {
    const site = await startSite(5)
    const options = { defaults: { rate: 100 } }
    const settings = {
      client: 'node-redis',
      port: store.port,
      name: 'ends',
      url: site.url,
      options,
      atOnce: 1,
    }
    const [first, second] = [member(settings), member(settings)]
    await until('both send', () => site.by.size === 2)
    await stopAll([first])
    const before = site.total
    await until('the other goes on', () => site.total > before + 20)
    await stopAll([second])
    site.stop()
  })

  test('on a slow way a process is there with the clock that it knows by then', async () => {
    // A dozen round trips take longer than a lease.
    const way = await slowWay(store.port, { least: 70, more: 10 })
    const client = CLIENTS.ioredis(way.port)
    const shared = redis(client, { name: 'slow', offline: 'fail' })
    const throttle = createThrottle({ rate: 10, shared })
    const page = () => throttle.run('https://a.example/', () => ({ status: 200 }))
    assert.deepEqual(await page(), { status: 200 })
    await throttle[Symbol.asyncDispose]()
    client.disconnect()
    way.stop()
  })

  for (const kind of ['ioredis', 'node-redis'])
    test(`${kind}: a connection of commands that answers nothing is replaced, and the warning names it`, async () => {
      const way = await openWay(store.port)
      const [writer, member] = [await CLIENTS[kind](store.port), await CLIENTS[kind](way.port)]
      const options = { delay: 0, quota: { limit: 1e6, window: 60_000 } }
      const open = (client) => createThrottle({ defaults: options, shared: redis(client, { name: kind }) })
      const page = (throttle) => throttle.run('https://a.example/', () => ({ status: 200 }))
      const throttles = [open(writer), open(member)]
      await page(throttles[0])
      await page(throttles[1])
      const codes = []
      throttles[1].addEventListener('warning', ({ code, message }) => codes.push(`${code}: ${message}`))
      way.hollow('commands')
      assert.deepEqual(await page(throttles[1]), { status: 200 })
      assert.match(codes.join(), /carries this process's commands/)
      await Promise.all(throttles.map((throttle) => throttle[Symbol.asyncDispose]()))
      writer.destroy?.() ?? writer.disconnect()
      member.destroy?.() ?? member.disconnect()
      way.stop()
    })

  test('a store that will not let this process share its limits is an error that names what it lacks', async () => {
    const strict = { delay: 0, quota: { limit: 5, window: 60_000, strict: true } }
    const rights = {
      hset: ['+@all', '-hset'],
      pexpire: ['+@all', '-pexpire'],
      channel: ['+@all', 'resetchannels'],
      eval: ['+@all', '-eval'],
    }
    const cases = Object.entries(rights).map(([name, given]) => {
      const user = ['ACL', 'SETUSER', name, 'on', '>p', '~*', '&*', ...given]
      assert.match(
        spawnSync('redis-cli', ['-p', String(store.port), ...user], { encoding: 'utf8' }).stdout,
        /OK/,
      )
      return [name, { port: store.port, username: name, password: 'p' }, /NOPERM|user executing the script/]
    })
    cases.push(['password', { port: store.port, username: 'hset', password: 'q' }, /WRONGPASS/])
    const { Redis } = await import('ioredis')
    for (const [name, options, why] of cases) {
      const client = new Redis({ host: '127.0.0.1', ...options }).on('error', () => {})
      const shared = redis(client, { name: `lacks ${name}` })
      const throttle = createThrottle({ defaults: strict, shared })
      const page = async () => {
        // A lease is needed to see that it cannot be stored.
        for (let each = 0; each < 9; each++) await throttle.run('https://a.example/', () => ({ status: 200 }))
      }
      await assert.rejects(page(), (error) => error.code === 'ERR_CONFIG' && why.test(error.message), name)
      throttle.close()
      client.disconnect()
    }
  })

  for (const [name, secure] of Object.entries({
    ioredis: async (port) => new (await import('ioredis')).Redis({ host: '127.0.0.1', port, tls: {} }),
    iovalkey: async (port) => new (await import('iovalkey')).default({ host: '127.0.0.1', port, tls: {} }),
    redis: async (port) =>
      (await import('redis')).createClient({ socket: { host: '127.0.0.1', port, tls: true } }),
  }))
    test(`${name} wants TLS at a port without: the warning asks whether the port speaks it`, async () => {
      const client = (await secure(store.port)).on('error', () => {})
      const connecting = client.isOpen === false ? client.connect().catch(() => {}) : undefined
      const throttle = createThrottle({ rate: 10, shared: redis(client, { name: 'tls' }) })
      const warned = new Promise((resolve) =>
        throttle.addEventListener('warning', ({ code, message }) => resolve(`${code}: ${message}`)),
      )
      throttle.run('https://a.example/', () => ({ status: 200 })).catch(() => {})
      assert.match(await warned, /^group-offline: .*by TLS: does its port speak TLS\?/)
      throttle.close()
      if (client.destroy) client.destroy()
      else client.disconnect()
      await connecting
    })

  test('offline: fail rejects what waits when the store is gone', async () => {
    const other = await new RedisServer(await freePort()).start()
    const client = CLIENTS.ioredis(other.port)
    const shared = redis(client, { name: 'gone', offline: 'fail' })
    const throttle = createThrottle({ rate: 1, shared })
    await throttle.run('https://a.example/', () => ({ status: 200 }))
    await other.kill()
    const late = Array.from({ length: 30 }, () => throttle.run('https://a.example/', () => ({ status: 200 })))
    const outcomes = await Promise.allSettled(late)
    const failed = outcomes.filter(({ reason }) => reason instanceof SharedError)
    assert.ok(failed.length > 0)
    assert.equal(failed[0].reason.code, 'ERR_SHARED_OFFLINE')
    throttle.close()
    client.disconnect()
    await other.stop()
  })

  test('a wrong client, name or way to be offline is an error at once, with its path', () => {
    assert.throws(
      () => redis({}, { name: '', offline: 'pray', nmae: 1 }),
      (error) => {
        assert.equal(error.code, 'ERR_CONFIG')
        const paths = error.problems.map(({ path }) => path)
        assert.deepEqual(paths, ['shared.nmae', 'shared.name', 'shared.offline', 'shared.client'])
        return true
      },
    )
  })
}
