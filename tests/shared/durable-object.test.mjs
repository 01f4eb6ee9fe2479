/**
 * Limits shared by Workers through a Durable Object, in workerd: real time, since neither its scheduler nor
 * its storage can be played. The assertions are about counts.
 *
 * Needs `npm install --prefix tests/runtimes`; without it, the test is skipped by name.
 * In `npm run test:all` it fails.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { skipUnless } from '../required.mjs'
import { listen } from '../serve.mjs'
import { OLDEST, WORKERD, Workers } from './workers.mjs'

const skip = skipUnless(existsSync(WORKERD), 'workerd is not installed')

/** A site that counts how many it serves at a time. Pages of `/held` are answered when the test says so. */
async function siteOf(t, latency, status = 200) {
  const counts = { now: 0, most: 0, all: 0, paths: [] }
  const held = []
  const { url, stop } = await listen((request, response) => {
    counts.all++
    counts.paths.push(request.url)
    counts.most = Math.max(counts.most, ++counts.now)
    response.on('close', () => counts.now--)
    const answer = () => response.writeHead(status).end('page')
    if (request.url.startsWith('/held')) held.push(answer)
    else setTimeout(answer, latency)
  })
  t.after(stop)
  const answerHeld = () => {
    for (const answer of held.splice(0)) answer()
  }
  return { counts, answerHeld, url: `${url}/` }
}

if (skip) test('limits shared through a Durable Object', { skip }, () => {})
else {
  let workers
  before(async () => {
    workers = await new Workers().build()
    await workers.start()
  })
  after(() => workers.stop())

  /** How many requests wait at the object. */
  const waits = async () => Number(await (await workers.get('waits', {})).text())

  async function until(isSo) {
    for (let tries = 0; tries < 200; tries++) {
      if (await isSo()) return
      await sleep(20)
    }
    throw new Error(`not within four seconds: ${isSo} ${workers.said}`)
  }

  const times = (count, call) => Promise.all(Array.from({ length: count }, call))

  test('thirty Workers want a quota of ten: ten get it, twenty are told when to come back', async () => {
    const answers = await times(30, () => workers.get('run', { scope: 'quota', maxWait: 5000 }))
    const statuses = answers.map(({ status }) => status).sort()
    assert.deepEqual(statuses, [...Array(10).fill(200), ...Array(20).fill(503)], workers.said)
    const refused = answers.find(({ status }) => status === 503)
    const { retryAfterMs } = await refused.json()
    assert.ok(retryAfterMs > 500_000 && retryAfterMs <= 600_000, `come back in ${retryAfterMs} ms`)
    await sleep(1100)
  })

  test('killed and started again, the object goes on: the quota is spent', async () => {
    await workers.kill()
    await workers.start()
    const answers = await times(5, () => workers.get('run', { scope: 'quota', maxWait: 700 }))
    assert.deepEqual(
      answers.map(({ status }) => status),
      Array(5).fill(503),
      workers.said,
    )
  })

  test('two slots for all Workers', async (t) => {
    const site = await siteOf(t, 60)
    const answers = await times(20, () => workers.get('run', { scope: 'slots', target: site.url }))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200], workers.said)
    assert.equal(site.counts.most, 2)
  })

  // Two leases are six seconds: without disposal the places would come back after that, so the next one waits
  // for less. They are back within a second, but a busy machine takes two until the next one has asked.
  const goOn = async (site) => {
    const query = { scope: 'slots', maxWait: 4000, ...(site && { target: `${site.url}next` }) }
    const answers = await times(4, () => workers.get('run', query))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200], workers.said)
    if (site) assert.ok(site.counts.most <= 2, `${site.counts.most} at a time`)
  }

  const ask = (site, page, more) =>
    workers.client('run', { scope: 'slots', target: `${site.url}${page}`, ...more })

  test('Workers that throw while they hold give their places back before their lease ends', async () => {
    const died = await times(8, () => workers.get('die', { scope: 'slots' }))
    assert.deepEqual([...new Set(died.map(({ status }) => status))], [500])
    await goOn()
  })

  // With its signal the Worker knows; without it the platform ends the Worker, and disposes.
  for (const signal of ['yes', 'no'])
    test(`clients that go while they wait, signal ${signal}: nothing is sent, the next goes on`, async (t) => {
      const site = await siteOf(t, 30)
      for (const page of ['held-1', 'held-2']) ask(site, page)
      await until(() => site.counts.now === 2)
      const waiting = ['gone-1', 'gone-2', 'gone-3'].map((page) => ask(site, page, { signal }))
      await until(async () => (await waits()) === 3)
      for (const client of waiting) client.go()
      await until(async () => (await waits()) === 0)
      const next = goOn(site)
      await until(async () => (await waits()) === 4)
      site.answerHeld()
      await next
      assert.deepEqual(
        site.counts.paths.filter((path) => path.startsWith('/gone')),
        [],
      )
    })

  test('clients that go while they hold: their places are free before their lease ends', async (t) => {
    // Two sites: the next may be there before the first has seen its connection end.
    const [left, site] = [await siteOf(t, 30), await siteOf(t, 30)]
    const holding = ['held-1', 'held-2'].map((page) => ask(left, page))
    await until(() => left.counts.now === 2)
    for (const client of holding) client.go()
    await goOn(site)
    await until(() => left.counts.now === 0)
  })

  test('killed while Workers hold: the places of the dead are free before their lease ends', async (t) => {
    const site = await siteOf(t, 30)
    for (const page of ['held-1', 'held-2']) ask(site, page)
    await until(() => site.counts.now === 2)
    // Their state is stored once a second.
    await sleep(1500)
    await workers.kill()
    await workers.start()
    await goOn(site)
  })

  test('a refusal that one Worker gets slows all of them down', async (t) => {
    const site = await siteOf(t, 5, 429)
    const query = { scope: 'bad', target: site.url, maxWait: 3000 }
    assert.equal((await workers.get('run', query)).status, 429)
    const answers = await times(3, () => workers.get('run', query))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [503, 503, 503],
      workers.said,
    )
    assert.equal(site.counts.all, 1)
  })
}

// Until February 2026 a Worker's clock stood still while a timer was due, and timers were cut to whole
// milliseconds: one of half a millisecond fired without end, and the Worker's requests were lost.
test('the oldest workerd: all Workers are served, two at a time', {
  skip: skipUnless(existsSync(OLDEST), 'workerd-oldest is not installed'),
}, async (t) => {
  const workers = await new Workers(OLDEST).build()
  try {
    await workers.start()
    const site = await siteOf(t, 30)
    const ask = () => workers.get('run', { scope: 'slots', target: site.url })
    const answers = await Promise.all(Array.from({ length: 12 }, ask))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200], workers.said)
    assert.ok(site.counts.most <= 2, `${site.counts.most} at a time`)
  } finally {
    await workers.stop()
  }
})
