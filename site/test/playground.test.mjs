/**
 * The built site in real browsers: every story runs, its numbers are those of Node, and the console stays
 * empty. A strict Content-Security-Policy and a path of its own are no hindrance.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { register } from 'node:module'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { BROWSERS, posted } from '../../tests/browsers.mjs'
import { skipUnless } from '../../tests/required.mjs'
import { serveFolder } from '../serve.mjs'

register('./resolve.mjs', import.meta.url)
const { fromHash, programOf } = await import('../playground/program.js')
const { Stage } = await import('../playground/stage.js')
const { figuresOf, linesOf, verdictOf } = await import('../playground/figures.js')
const { notesOf } = await import('../playground/notes.js')
const { STORIES } = await import('../playground/stories.js')
const { knows, race, RUNNERS, verdict } = await import('../playground/race.js')
const { essay, SCENES } = await import('../essay/scenes.js')
const { createThrottle } = await import('../../dist/index.js')
const { createSimulation, replaySimulation, simulate } = await import('../../dist/simulate.js')

const dist = fileURLToPath(new URL('../dist', import.meta.url))
const isBuilt = existsSync(`${dist}/playground.html`)
const UNDER = '/any/where/'
const POLICY = "script-src 'self' 'wasm-unsafe-eval'"
const plain = (value) => JSON.parse(JSON.stringify(value))

/** Opens a page with a driver beside it; gives what the driver posts. */
async function drive(browser, page = 'playground.html') {
  const files = serveFolder(dist, { under: UNDER, headers: { 'content-security-policy': POLICY } })
  let isOffline = false
  const driven = (request, response) => {
    if (request.url.endsWith('/offline')) {
      isOffline = true
      response.end()
    } else if (isOffline) {
      request.destroy()
    } else if (request.url === `${UNDER}driver.js`) {
      const code = readFileSync(new URL('driver.js', import.meta.url))
      response.writeHead(200, { 'content-type': 'text/javascript' }).end(code)
    } else if (request.url === `${UNDER}${page}`) {
      const plainPage = readFileSync(`${dist}/${page}`, 'utf8')
      const withDriver = plainPage.replace(
        '</body>',
        '<script type="module" src="./driver.js"></script></body>',
      )
      response
        .writeHead(200, { 'content-type': 'text/html', 'content-security-policy': POLICY })
        .end(withDriver)
    } else files(request, response)
  }
  return JSON.parse(await posted(browser, driven, `${UNDER}${page}`))
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
      const lines = linesOf(stage.program)
      const sums = stage.recorders.map((_, run) => {
        const own = lines.filter((line) => line.run === run).map((line) => figuresOf(stage, line))
        const of = (key) => own.reduce((sum, each) => sum + each[key], 0)
        return [of('sent'), of('served'), of('refused') + of('failed')]
      })
      const traced = story.runs.map(({ trace: { sent, answered, status } }) => {
        const ended = status.filter((_, at) => answered[at] !== null && answered[at] < story.now)
        return [
          sent.length,
          ended.filter((each) => each < 400).length,
          ended.filter((each) => each >= 400).length,
        ]
      })
      assert.deepEqual(sums, traced, `${story.name}: figures of the page are those of the engine`)
      const cells = story.figures.map(([, sent, served]) =>
        [sent, served].map((text) => Number(text.replace(/,/g, ''))),
      )
      assert.deepEqual(
        cells,
        lines.map((line) => figuresOf(stage, line)).map(({ sent, served }) => [sent, served]),
      )
      assert.ok(story.drawn.length >= 6 && story.drawn.every(Boolean), `${story.name}: charts are drawn`)
      const isOver = story.now >= story.program.span
      const told = STORIES.find(({ name }) => name === story.name)
      if (isOver) assert.equal(story.says, verdictOf(stage, lines, told).join(''), story.name)
      else assert.match(story.says, /request/)
      assert.equal(story.notes.length, notesOf(stage).length, `${story.name}: notes`)
    }
    assert.match(seen.ends.verdict.join(' '), /refused once.*1 refused.*\d\d+ refused/)
    assert.equal(seen.ends.opened, '#retry-after@60000', 'it stops where it ends')
    assert.match(seen.ends.rule, /^Retry-After\..*More$/s)
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
    assert.match(real.notes, /429, wait/)
    assert.ok(seen.isOffline, 'all but the real requests was done without a network')
  })
}

/** A story at its end: its lines' figures, its notes, its verdict. */
function over(name) {
  const story = STORIES.find((each) => each.name === name)
  const stage = new Stage(programOf(name))
  stage.advance(story.program.span)
  const lines = linesOf(stage.program)
  const figures = lines.map((line) => figuresOf(stage, line))
  return { figures, notes: notesOf(stage), verdict: verdictOf(stage, lines, story).join(' ') }
}

test('what a story says at its end is true', () => {
  const heard = over('retry-after')
  const [ours, deaf] = heard.figures
  assert.equal(ours.refused, 1)
  assert.ok(deaf.refused > 100 && Math.abs(ours.served - deaf.served) <= 2, heard.verdict)
  assert.deepEqual(
    heard.notes.filter(({ run }) => run === 0).map(({ rule, text }) => [rule, text]),
    [['hold', '429, wait 8 s']],
  )
  const [rampup, backoff] = over('hidden-limit').figures
  assert.ok(rampup.share > 0.9 && backoff.share < rampup.share)
  const slow = over('autothrottle')
  assert.ok(slow.figures[0].failed === 0 && slow.figures[0].waiting === 0 && slow.figures[1].failed > 0)
  assert.equal(slow.figures[0].share, undefined, 'less comes in than the limit allows')
  assert.deepEqual(
    slow.notes.filter(({ isChange }) => isChange).map(({ at }) => at),
    [30_000, 60_000],
  )
  const [bad, ...others] = over('bad-host').figures
  assert.ok(bad.refused > 0 && others.every(({ refused }) => refused === 0))
  // Their rates are 1, 2 and 4 a second, and the last request may be under way.
  for (const [index, rate] of [1, 2, 4].entries()) assert.ok(others[index].served >= rate * 90 - 3)
  const quota = over('quota')
  assert.ok(quota.figures[0].refused === 0 && quota.figures[0].waiting > 0)
  assert.equal(over('draft').figures[0].sent, 3)
})

test('a change of yours is a note with what it was, and many notes are few', () => {
  const stage = new Stage(programOf('hidden-limit'))
  stage.advance(60_000)
  stage.change({ throttle: { backoff: { window: 30_000 } }, policy: 1, mine: true })
  stage.change({ server: { rate: 3 }, mine: true })
  stage.advance(540_000)
  const notes = notesOf(stage)
  const yours = notes.filter(({ rule }) => rule === 'you').map(({ at, text }) => [at, text])
  assert.deepEqual(yours, [
    [60_000, 'you: Window 60 s → 30 s'],
    [60_000, 'you: Limit 10 → 3'],
  ])
  assert.ok(notes.length <= 8, `${notes.length}`)
})

test('my API: each preset is kept without a refusal, and its lines are options that the package takes', async () => {
  const my = await import('../playground/my-api.js')
  for (const api of [...my.HOSTS, ...my.OTHERS.map(({ name }) => name)]) {
    const choice = { ...my.DEFAULT, api, requests: 200 }
    const [ours, ...others] = my.play(choice)
    assert.equal(ours.left, 0, api)
    if (my.HOSTS.includes(api)) assert.equal(ours.refused, 0, `${api}: ${JSON.stringify(ours)}`)
    else assert.ok(ours.refused < 20, `${api}: ${JSON.stringify(ours)}`)
    for (const each of others) assert.equal(each.served + each.refused, 200, `${api}: ${each.name}`)
    createThrottle(
      my.HOSTS.includes(api) ? { scopes: { [api]: my.settingsOf(choice) } } : my.settingsOf(choice),
    )
    const json = my.codeOf(choice)[2].code.match(/json!\((.*)\)\)\?;/)[1]
    createThrottle(JSON.parse(json))
    assert.deepEqual(my.fromHash(`#${my.toHash(choice)}`), choice)
  }
  assert.deepEqual(my.fromHash('#nonsense,-1,x'), my.DEFAULT)
})

test('my API: nothing is said for those who break a rule of an owner', async () => {
  const my = await import('../playground/my-api.js')
  const of = (requests) => {
    const choice = { ...my.DEFAULT, api: 'api.github.com', requests }
    return my.answer(choice, my.play(choice))
  }
  assert.match(of(500), /Promise.all gets 100, and 400 refusals. Not simulated: its 5,000 requests an hour/)
  assert.doesNotMatch(of(50), /Promise.all/)
  for (const api of my.HOSTS)
    for (const { code } of my.codeOf({ api })) assert.doesNotMatch(code, /\d\.\d{4}/, api)
})

test('the race: what each runner gets, and who won', () => {
  const runs = race(simulate)
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
    /autothrottle got 490 of 500 pages in 81 s without knowing the limit. Promise.all: 11. p-queue: 11. .*10 refusals/,
  )
  assert.deepEqual(RUNNERS.map(knows).slice(2), [
    'does not know the limit',
    'set to half the limit',
    'set to the limit',
  ])
})

test('how it works: what the page draws is what the engine does now', { skip: skipWithout('node') }, () => {
  const drawn = essay(SCENES, createSimulation)
  assert.deepEqual(plain(drawn), JSON.parse(readFileSync(`${dist}/../.pages/essay.json`, 'utf8')))
  for (const { name, runs, link } of drawn) {
    const [loose, kept] = runs
    assert.ok(kept.refused <= loose.refused || name === 'hidden-limit', `${name}: fewer refusals`)
    for (const { requests, sent, served, refused } of runs) {
      for (const [, queued, left, arrived, answered] of requests) {
        assert.ok(
          queued <= left &&
            (arrived === null || left <= arrived) &&
            (answered === null || arrived <= answered),
        )
      }
      assert.ok(served + refused <= sent)
    }
    // The same run in the playground: its link holds the server and both policies.
    if (name === 'processes') continue
    const [program] = [fromHash(`#${link}`)]
    assert.equal(program.policies.length, 2, name)
  }
})

for (const browser of BROWSERS) {
  test(`${browser.name}: the race ends with the figures of Node`, {
    skip: skipWithout(browser.command),
  }, async () => {
    const seen = await drive(browser, 'race.html')
    assert.deepEqual(seen.errors, [])
    assert.deepEqual(seen.verdict, verdict(race(simulate)))
    const expected = race(simulate).map(
      ({ served, refused }) => `${served} served, ${refused} refused, 0 waiting`,
    )
    assert.deepEqual(
      seen.figures.map((text) => text.split(' · ')[0]),
      expected,
    )
  })
}
