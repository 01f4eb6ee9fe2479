/**
 * The built site in real browsers: every story runs, its numbers are those of Node, nothing is said on the
 * console, and a strict Content-Security-Policy and a path of its own are no hindrance.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { register } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { serveFolder } from '../../scripts/serve.mjs'
import { skipUnless } from '../../tests/required.mjs'

register('./resolve.mjs', import.meta.url)
const { programOf } = await import('../playground/program.js')
const { Stage } = await import('../playground/stage.js')
const { STORIES } = await import('../playground/stories.js')
const { race, verdict } = await import('../playground/race.js')
const { createThrottle } = await import('../../dist/index.js')
const { replaySimulation } = await import('../../dist/simulate.js')

const dist = fileURLToPath(new URL('../dist', import.meta.url))
const isBuilt = existsSync(`${dist}/playground.html`)
const UNDER = '/any/where/'
const POLICY = "script-src 'self' 'wasm-unsafe-eval'"
const plain = (value) => JSON.parse(JSON.stringify(value))

const BROWSERS = [
  {
    name: 'Chromium',
    command: 'chromium',
    args: (profile, url) => [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
      `--user-data-dir=${profile}`,
      url,
    ],
  },
  {
    name: 'Firefox',
    command: 'firefox-esr',
    args: (profile, url) => ['--headless', '--no-remote', '--profile', profile, url],
  },
]

/** Opens the playground with a driver beside it; gives what the driver posts. */
async function drive({ command, args }, driver = 'driver.js', page = 'playground.html') {
  const profile = mkdtempSync(join(tmpdir(), 'autothrottle-site-'))
  const files = serveFolder(dist, { under: UNDER, headers: { 'content-security-policy': POLICY } })
  let isOffline = false
  let settle
  const result = new Promise((resolve, reject) => {
    settle = { resolve, reject }
  })
  const server = createServer((request, response) => {
    if (request.url.endsWith('/offline')) {
      isOffline = true
      response.end()
    } else if (request.method === 'POST') {
      const parts = []
      request.on('data', (part) => parts.push(part))
      request.on('end', () => {
        response.end()
        settle.resolve(JSON.parse(Buffer.concat(parts).toString()))
      })
    } else if (isOffline) {
      request.destroy()
    } else if (request.url === `${UNDER}driver.js`) {
      const code = readFileSync(new URL(driver, import.meta.url))
      response.writeHead(200, { 'content-type': 'text/javascript' }).end(code)
    } else if (request.url === `${UNDER}${page}`) {
      const plainPage = readFileSync(`${dist}/${page}`, 'utf8')
      const driven = plainPage.replace('</body>', '<script type="module" src="./driver.js"></script></body>')
      response.writeHead(200, { 'content-type': 'text/html', 'content-security-policy': POLICY }).end(driven)
    } else files(request, response)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${server.address().port}${UNDER}${page}`
  const browser = spawn(command, args(profile, url), {
    stdio: 'ignore',
    env: { ...process.env, HOME: profile },
  })
  browser.on('exit', (code) => settle.reject(new Error(`${command} ended with ${code}`)))
  const patience = setTimeout(() => settle.reject(new Error(`${command} said nothing for 100 s`)), 100_000)
  try {
    return await result
  } finally {
    clearTimeout(patience)
    browser.removeAllListeners('exit')
    const ended = new Promise((resolve) => browser.once('exit', resolve))
    browser.kill('SIGKILL')
    await ended
    server.closeAllConnections()
    server.close()
    // Its children may write for a moment longer.
    rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}

function skipWithout(command) {
  if (!isBuilt) return skipUnless(false, 'not built: npm run site -- --build')
  return skipUnless(spawnSync(command, ['--version']).status === 0)
}

/** A run of the page's, played again by Node. */
function replays({ runs }, what) {
  for (const { recording, summary, trace } of runs) {
    const again = replaySimulation(recording)
    assert.deepEqual(plain(again.summary()), summary, what)
    for (const [name, column] of Object.entries(again.trace())) {
      assert.deepEqual(plain(Array.from(column)), trace[name], `${what}: ${name}`)
    }
  }
}

for (const browser of BROWSERS) {
  test(`${browser.name}: every story, every control`, { skip: skipWithout(browser.command) }, async () => {
    assert.ok(isBuilt, 'the site is not built')
    const seen = await drive(browser)
    assert.deepEqual(seen.errors, [])
    assert.deepEqual(
      seen.stories.map(({ name }) => name),
      STORIES.map(({ name }) => name),
    )
    for (const story of seen.stories) {
      const stage = new Stage(programOf(story.name))
      stage.advance(story.now)
      const here = plain(stage.download())
      assert.deepEqual(story.runs, here.runs, `${story.name}: the same as in Node`)
      replays(story, story.name)
      assert.equal(Number(story.figures[0][1]), story.runs[0].summary.sent, 'what the table says')
      assert.ok(story.drawn.length >= 6 && story.drawn.every(Boolean), `${story.name}: charts are drawn`)
      assert.match(story.why, /request|Nothing waits/)
    }
    const { controls, policies, problem, pasted } = seen
    assert.match(controls.stepped, /^#autothrottle@1\d{4}$/)
    assert.equal(controls.moved.program.changes.length, 3, 'the change is in the program')
    assert.deepEqual(controls.linked, controls.moved, 'a link is all that is on screen')
    replays(controls.moved, 'moved')
    assert.equal(policies.length, 7 + 7)
    for (const { problem, ...which } of policies) assert.equal(problem, '', JSON.stringify(which))
    const wrong = (() => {
      try {
        createThrottle({ delai: 1, defaults: { delay: -1 } })
      } catch (error) {
        return error.message
      }
    })()
    assert.equal(problem, wrong, 'the same error as in code')
    assert.deepEqual(pasted.program.policies[0].throttle, { rate: '90/min' })
    replays(pasted, 'pasted')
    const { real } = seen
    assert.ok(
      real.served >= 10 && real.refused >= 1 && real.sent >= real.served + real.refused,
      JSON.stringify(real),
    )
    assert.match(real.why, /asked to be left alone/)
    assert.ok(seen.isOffline, 'all but the real requests was done without a network')
  })
}

test('the race: what each runner gets, and who won', () => {
  const runs = race()
  assert.deepEqual(
    runs.map(({ served, refused, seconds }) => [served, refused, Math.round(seconds)]),
    [
      [11, 489, 0],
      [11, 489, 5],
      [490, 10, 81],
      [500, 0, 100],
      [500, 0, 50],
    ],
  )
  assert.match(
    verdict(runs).join(' '),
    /Promise.all got 11.*autothrottle got 490 in 81 s, told nothing; 10 were/,
  )
})

for (const browser of BROWSERS) {
  test(`${browser.name}: the race ends with the figures of Node`, {
    skip: skipWithout(browser.command),
  }, async () => {
    const seen = await drive(browser, 'race-driver.js', 'race.html')
    assert.deepEqual(seen.errors, [])
    assert.deepEqual(seen.verdict, verdict(race()))
    const expected = race().map(({ served, refused }) => `${served} served, ${refused} refused, 0 waiting`)
    assert.deepEqual(
      seen.figures.map((text) => text.split(' · ')[0]),
      expected,
    )
  })
}
