/** Tests that need a driver of a browser: keys, widths, preferences, a reload without a network. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { register } from 'node:module'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { skipUnless } from '../../tests/required.mjs'
import { listen } from '../../tests/serve.mjs'
import { serveFolder } from '../serve.mjs'

const CHROME = '/usr/bin/chromium'
const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const isThere = existsSync(CHROME) && existsSync(`${root}/site/dist/playground.html`)
const skip = skipUnless(isThere, 'no Chromium, or the site is not built')
const options = { skip }

let browser
let server
let base
let isOffline = false

before(async () => {
  if (skip) return
  const { chromium } = await import('playwright-core')
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking']
  browser = await chromium.launch({ executablePath: CHROME, args })
  const files = serveFolder(root)
  server = await listen((request, response) => (isOffline ? request.destroy() : files(request, response)))
  base = server.url
})
after(async () => {
  await browser?.close()
  server?.stop()
})

/** A page that fails the test when it says something on the console. */
async function open(path, preferences = {}) {
  const page = await browser.newPage(preferences)
  const said = []
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && said.push(message.text()))
  page.on('pageerror', ({ message }) => said.push(message))
  await page.goto(`${base}${path}`)
  return { page, said }
}

const PLAYGROUND = '/site/dist/playground.html'

test('keys alone: a story, its clock, a request’s life', options, async () => {
  const { page, said } = await open(`${PLAYGROUND}#draft@1500`)
  await page.waitForFunction(() => document.querySelector('.pg-clock')?.textContent === '1.5 s')
  const plot = page.getByRole('application')
  await plot.focus()
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('ArrowLeft')
  const life = page.locator('#pg-life')
  await life.getByText('Sent at 0:00.300').waitFor()
  assert.match(await life.textContent(), /Waited 300 ms for the delay.*Served after 50 ms/)
  await page.keyboard.press('Escape')
  await life.getByText('Point at a request').waitFor()
  await page.getByRole('button', { name: 'Quota with costs' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Pause' }).focus()
  await page.keyboard.press('Space')
  await page.getByRole('button', { name: 'Play' }).waitFor()
  await page.getByRole('slider', { name: 'Units' }).focus()
  await page.keyboard.press('ArrowRight')
  assert.match(page.url(), /#p=/)
  assert.deepEqual(said, [])
  await page.close()
})

test('a pointer over a mark tells the life of that request', options, async () => {
  const { page, said } = await open(`${PLAYGROUND}#retry-after@20000`)
  await page.waitForFunction(() => document.querySelector('.pg-clock')?.textContent === '0:20')
  const over = page.locator('.pg-chart .u-over').first()
  const { x, y, width, height } = await over.boundingBox()
  await page.mouse.move(x + (width * 3.3) / 60, y + height * 0.3)
  await page.locator('#pg-life').getByText('Refused (429 Too Many Requests)').waitFor()
  assert.match(await page.locator('#pg-life').textContent(), /Throttle.*retry-after: \d/is)
  assert.equal(await page.locator('.pg-bar span').count(), 2, 'waiting here, and refused')
  assert.deepEqual(said, [])
  await page.close()
})

const THEMES = ['light', 'dark']
const PAGES = [
  'index',
  'playground',
  'race',
  'how-it-works',
  'my-api',
  'docs/start',
  'docs/settings',
  'docs/policies',
]
for (const colorScheme of THEMES)
  test(`axe-core finds no fault, ${colorScheme}`, { ...options, timeout: 120_000 }, async () => {
    const { readFileSync } = await import('node:fs')
    const axe = readFileSync(`${root}/site/node_modules/axe-core/axe.min.js`, 'utf8')
    const page = await browser.newPage({ colorScheme })
    const found = []
    for (const name of PAGES) {
      await page.goto('about:blank')
      await page.goto(`${base}/site/dist/${name}.html`)
      if (name === 'playground') {
        await page.waitForFunction(() => document.querySelectorAll('.pg canvas').length === 6)
        await page.locator('.pg-notes button').first().click()
      }
      await page.evaluate(axe)
      const { violations } = await page.evaluate(() => globalThis.axe.run())
      found.push(...violations.map(({ id, nodes }) => `${name}: ${id} ${nodes.map(({ target }) => target)}`))
    }
    // On a phone, drawings and tables go sideways.
    await page.setViewportSize({ width: 390, height: 844 })
    for (const name of ['docs/policies', 'docs/errors', '404']) {
      await page.goto(`${base}/site/dist/${name}.html`)
      await page.evaluate(axe)
      const { violations } = await page.evaluate(() => globalThis.axe.run())
      found.push(...violations.map(({ id, nodes }) => `${name}, phone: ${id} ${nodes.length}`))
    }
    assert.deepEqual(found, [])
    await page.close()
  })

test(
  'my API: the figures are those of Node, a link shows the same, a wrong number says so',
  options,
  async () => {
    register('./resolve.mjs', import.meta.url)
    const my = await import('../playground/my-api.js')
    const choice = { ...my.DEFAULT, api: 'api.stripe.com', requests: 300 }
    const { page, said } = await open(`/site/dist/my-api.html#${my.toHash(choice)}`)
    const runs = my.play(choice)
    await page.getByText(my.answer(choice, runs)).waitFor()
    assert.equal(await page.locator('.api-lanes li').count(), runs.length)
    for (const { code } of my.codeOf(choice))
      assert.ok((await page.locator('.api').innerText()).includes(code))
    await page.getByLabel('My API').selectOption('unknown')
    await page.getByLabel('Suppose it bears').selectOption('2')
    const other = { api: 'unknown', requests: 300, limit: 2 }
    await page.getByText(my.answer(other, my.play(other))).waitFor()
    assert.match(page.url(), /#unknown,300,2$/)
    await page.getByLabel('Requests').fill('0')
    await page.getByText('want 1 to 10,000 requests; got 0').waitFor()
    await page.getByText('Watch it in the playground').click()
    await page.locator('.pg-legend').getByText('p-queue').waitFor()
    await page.waitForFunction(() => document.querySelectorAll('.pg canvas').length === 6)
    assert.deepEqual(said, [])
    await page.close()
  },
)

test('on a phone the rate stays in sight while a slider moves', options, async () => {
  const { page, said } = await open(`${PLAYGROUND}#hidden-limit@100000`, {
    viewport: { width: 390, height: 844 },
  })
  await page.waitForFunction(() => document.querySelector('.pg-clock')?.textContent === '1:40')
  await page.getByText('Change the server and the policies').click()
  const slider = page.getByRole('slider', { name: 'Window' })
  await slider.scrollIntoViewIfNeeded()
  await slider.focus()
  await page.keyboard.press('ArrowLeft')
  const { y, height } = await page.locator('.pg-peek canvas').boundingBox()
  assert.ok(y > 0 && y + height < 844, `the rate is drawn at ${y}`)
  await page.locator('.pg-notes').getByText('you: Window 60 s → 30 s').waitFor()
  assert.deepEqual(said, [])
  await page.close()
})

test('on a phone nothing is wider than the screen', options, async () => {
  for (const width of [320, 390, 768]) {
    const { page, said } = await open(`${PLAYGROUND}#bad-host@30000`, { viewport: { width, height: 800 } })
    await page.waitForFunction(() => document.querySelector('.pg-clock')?.textContent === '0:30')
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width)
    const { x, width: wide } = await page.getByRole('button', { name: 'One bad host' }).boundingBox()
    assert.ok(x >= 0 && x + wide <= width, `the chosen story is at ${x}`)
    assert.deepEqual(said, [])
    await page.close()
  }
})

test('the bar of a page with a sidebar ends within the window', options, async () => {
  for (const width of [970, 1024, 1280, 1366]) {
    const { page } = await open('/site/dist/docs/scrapy.html', { viewport: { width, height: 800 } })
    const ends = await page
      .locator('.VPNavBar .content-body > *')
      .evaluateAll((all) => all.map((each) => each.getBoundingClientRect().right))
    assert.ok(ends.length > 3 && Math.max(...ends) <= width, `${width}: ${ends}`)
    await page.close()
  }
})

for (const [what, viewport] of Object.entries({
  'a desktop': { width: 1350, height: 940 },
  'a phone': { width: 412, height: 823 },
})) {
  test(`nothing shifts while the page comes up, on ${what}`, options, async () => {
    const { page } = await open('/site/dist/icon.svg', { viewport })
    // Slow enough that what is drawn is seen in all of its states.
    const session = await page.context().newCDPSession(page)
    await session.send('Emulation.setCPUThrottlingRate', { rate: 4 })
    await page.goto(`${base}${PLAYGROUND}`)
    await page.waitForFunction(() => document.querySelectorAll('.pg canvas').length === 6)
    await page.waitForFunction(() => document.querySelector('.pg-clock')?.textContent === '1:00')
    const shift = await page.evaluate(
      () =>
        new Promise((resolve) => {
          new PerformanceObserver((list) =>
            resolve(list.getEntries().reduce((sum, { value }) => sum + value, 0)),
          ).observe({ type: 'layout-shift', buffered: true })
          setTimeout(() => resolve(0), 500)
        }),
    )
    assert.ok(shift < 0.01, `layout shift ${shift}`)
    await page.close()
  })
}

test('once seen, the playground opens without a network', options, async () => {
  const { page } = await open(PLAYGROUND)
  await page.waitForFunction(() => document.querySelector('.pg-clock')?.textContent === '1:00')
  await page.waitForFunction(async () => (await navigator.serviceWorker.ready).active.state === 'activated')
  await page.reload()
  await page.waitForFunction(() => document.querySelector('.pg-clock')?.textContent === '1:00')
  await page.waitForLoadState('networkidle')
  try {
    isOffline = true
    // Elsewhere first: to another `#` alone the page would not be loaded anew.
    await page.goto('about:blank')
    await page.goto(`${base}${PLAYGROUND}#quota@20000`)
    await page.waitForFunction(() => document.querySelector('.pg-clock')?.textContent === '0:20')
  } finally {
    isOffline = false
    await page.close()
  }
})

test('a page seen, the guides and their search go on without a network', {
  ...options,
  timeout: 90_000,
}, async () => {
  const { page } = await open('/site/dist/docs/start.html')
  const isKept = async () => (await caches.match(new URL('../kept.json', location.href))) !== undefined
  while (!(await page.evaluate(isKept))) await page.waitForTimeout(100)
  try {
    isOffline = true
    await page.goto('about:blank')
    await page.goto(`${base}/site/dist/docs/policies.html`)
    // Until the page has come alive, a click has no effect.
    await page.waitForFunction(() => {
      document.querySelector('.DocSearch-Button').click()
      return document.querySelector('#localsearch-input')
    })
    await page.getByRole('searchbox').fill('slotDelay')
    await page.locator('#localsearch-list a[href*="settings.html"]').first().click()
    await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor()
  } finally {
    isOffline = false
    await page.close()
  }
})

test('the first charts are there before a script has run, and for a link only its own', options, async () => {
  const page = await browser.newPage({ serviceWorkers: 'block' })
  await page.route(/\/assets\/.*\.js$/, (route) => route.abort())
  await page.goto(`${base}${PLAYGROUND}`)
  assert.equal(await page.locator('.pg-picture:visible').count(), 5)
  assert.ok((await page.locator('.pg-picture path').first().boundingBox()).width > 300)
  await page.goto('about:blank')
  await page.goto(`${base}${PLAYGROUND}#quota@20000`)
  assert.equal(await page.locator('.pg-picture:visible').count(), 0)
  await page.close()
})

test('a guide has its outline beside it as it comes up', options, async () => {
  const { page, said } = await open('/site/dist/docs/policies.html', {
    viewport: { width: 1500, height: 900 },
  })
  await page.locator('.VPDocAsideOutline').getByText('Backoff: the server refuses').waitFor({ timeout: 5000 })
  assert.deepEqual(said, [])
  await page.close()
})

test('what a page needs before it is drawn is small, and no script is in its way', options, async () => {
  const { gzipSync } = await import('node:zlib')
  const { readdirSync, readFileSync } = await import('node:fs')
  const dist = `${root}/site/dist`
  for (const name of ['index.html', 'playground.html', 'docs/start.html']) {
    const html = readFileSync(`${dist}/${name}`, 'utf8')
    const tags = html.match(/<(?:link|script)[^>]*>/g)
    for (const tag of tags.filter((each) => /type="module"|preload"/.test(each))) {
      assert.match(tag, /fetchpriority="low"/, `${name}: ${tag}`)
    }
    const needed = tags.filter((tag) => /^<script src|stylesheet/.test(tag))
    const files = needed.map((tag) => tag.match(/(?:src|href)="([^"]+)"/)[1])
    const bytes = files.map((file) => readFileSync(new URL(file, `file://${dist}/${name}`)))
    const size = [Buffer.from(html), ...bytes].reduce((sum, each) => sum + gzipSync(each).length, 0)
    assert.equal(files.length, 2, `${name}: ${files}`)
    assert.ok(size < 36_000, `${name}: ${size} bytes before it is drawn`)
  }
  const assets = readdirSync(`${dist}/assets`, { recursive: true }).map(String)
  assert.deepEqual(
    assets.filter((name) => name.endsWith('.woff2')),
    [],
    'the fonts are the reader’s',
  )
})

test('all that the playground fetches is 350 kB at most', options, async () => {
  const page = await browser.newPage({ serviceWorkers: 'block' })
  await page.goto(`${base}${PLAYGROUND}`)
  await page.waitForFunction(() => document.querySelectorAll('.pg canvas').length === 6)
  await page.waitForLoadState('networkidle')
  const bytes = await page.evaluate(() =>
    ['navigation', 'resource']
      .flatMap((type) => performance.getEntriesByType(type))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
  )
  assert.ok(bytes < 350_000, `${bytes} bytes`)
  await page.close()
})

test('examples/browser: one file, and it throttles', options, async () => {
  const { page, said } = await open('/examples/browser/index.html')
  await page.waitForFunction(() => document.querySelectorAll('#dots i').length > 3)
  await page.getByText(/The throttle sends \d/).waitFor()
  assert.deepEqual(
    said.filter((text) => !/favicon|404/.test(text)),
    [],
  )
  await page.close()
})
