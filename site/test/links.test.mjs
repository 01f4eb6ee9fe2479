/**
 * The things that you can take away from the pages, in Chromium: links that show, pictures, frames; the race
 * with real requests; and the scenes of *How it works*, with and without motion.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { skipUnless } from '../../tests/required.mjs'
import { listen } from '../../tests/serve.mjs'
import { head, placeOf } from '../links.mjs'
import { programOf } from '../playground/program.js'
import { serveFolder } from '../serve.mjs'

const CHROME = '/usr/bin/chromium'
const dist = fileURLToPath(new URL('../dist', import.meta.url))
const skip = skipUnless(
  existsSync(CHROME) && existsSync(`${dist}/race.html`),
  'no Chromium, or no built site',
)
const options = { skip }

let browser
let server
let base

before(async () => {
  if (skip) return
  const { chromium } = await import('playwright-core')
  browser = await chromium.launch({ executablePath: CHROME, args: ['--no-sandbox', '--disable-gpu'] })
  server = await listen(serveFolder(dist))
  base = server.url
})
after(async () => {
  await browser?.close()
  server?.stop()
})

async function open(path, preferences = {}) {
  const context = await browser.newContext(preferences)
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const page = await context.newPage()
  const said = []
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && said.push(message.text()))
  page.on('pageerror', ({ message }) => said.push(message))
  await page.goto(`${base}${path}`)
  return { page, said }
}

const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText())
const CALM = { reducedMotion: 'reduce' }

test('each page and story has a title, a sentence and a picture for links', options, () => {
  for (const name of ['index', 'race', 'playground', 'how-it-works', 'docs/start', 'story/hidden-limit']) {
    const html = readFileSync(`${dist}/${name}.html`, 'utf8')
    const tag = (property) => html.match(new RegExp(`property="${property}" content="([^"]+)"`))?.[1]
    assert.ok(tag('og:title') && tag('og:description'), name)
    const image = tag('og:image').replace(placeOf(process.env) ?? '?', `file://${dist}/`)
    const picture = readFileSync(new URL(image, `file://${dist}/${name}.html`))
    assert.equal(picture.subarray(1, 4).toString(), 'PNG', name)
    assert.deepEqual([picture.readUInt32BE(16), picture.readUInt32BE(20)], [1200, 630], name)
    assert.ok(picture.length > 15_000 && picture.length < 300_000, `${name}: ${picture.length} bytes`)
  }
})

test('the place of the site is what you say, else what a host of pages tells its builds', () => {
  assert.equal(placeOf({}), undefined)
  assert.equal(placeOf({ SITE_URL: 'https://a.example/docs', NETLIFY: 'true' }), 'https://a.example/docs/')
  assert.equal(placeOf({ GITHUB_REPOSITORY: 'owner/name' }), 'https://owner.github.io/name/')
  assert.equal(placeOf({ GITHUB_REPOSITORY: 'owner/owner.github.io' }), 'https://owner.github.io/')
  assert.equal(placeOf({ NETLIFY: 'true', URL: 'https://b.example' }), 'https://b.example/')
  assert.equal(placeOf({ URL: 'https://not-ours.example' }), undefined)
  assert.throws(
    () => placeOf({ SITE_URL: 'a.example' }),
    /SITE_URL wants https:\/\/host\/path, got a\.example/,
  )
})

test('a page names its address where the place is known, and none where it is not', () => {
  const { title, description } = { title: 'Start', description: 'Begin.' }
  const of = head({ pageData: { relativePath: 'docs/start.md' }, title, description })
  const canonical = of.find(([, { rel }]) => rel === 'canonical')?.[1].href
  const place = placeOf(process.env)
  assert.equal(canonical, place && `${place}docs/start.html`)
})

test('My API says how to install what it shows, from the one table that says it', async () => {
  const { install } = await import('../pages.mjs')
  const { codeOf } = await import('../playground/my-api.js')
  const lines = install()
  for (const { name } of codeOf({ api: 'unknown' })) assert.match(lines[name], /\.\.\/autothrottle/, name)
})

test('no link of the guides leads to a place that is not there', {
  skip: skipUnless(existsSync(`${dist}/race.html`), 'no built site'),
}, () => {
  const pages = readdirSync(dist, { recursive: true }).filter((name) => /^(?:docs\/)?[^/]+\.html$/.test(name))
  const text = (name) => readFileSync(`${dist}/${name}`, 'utf8')
  const dead = pages.flatMap((page) =>
    [...text(page).matchAll(/<a [^>]*?href="([^"#:]*)#([^"]+)"/g)]
      .map(([, path, id]) => [path ? join(dirname(page), path) : page, decodeURIComponent(id)])
      // The text behind the `#` of these is theirs.
      .filter(([path]) => !/^(?:playground|my-api|race)\.html$/.test(path))
      .filter(([path, id]) => !existsSync(`${dist}/${path}`) || !text(path).includes(` id="${id}"`))
      .map((link) => `${page}: ${link.join('#')}`),
  )
  assert.ok(pages.length > 30, `${pages.length} pages`)
  assert.deepEqual([...new Set(dead)], [])
})

test('a story’s link leads to the playground at its instant', options, async () => {
  const { page, said } = await open('/story/hidden-limit.html#400000')
  await page.waitForURL(/playground\.html#hidden-limit@400000$/)
  await page.waitForFunction(() => document.querySelector('.pg-clock')?.textContent === '6:40')
  assert.match(await page.title(), /^Finding a hidden limit: \d+ served, \d+ refused/)
  await page.getByRole('button', { name: 'Copy link' }).click()
  await page.getByText('Link copied').waitFor()
  assert.equal(await clipboard(page), `${base}/story/hidden-limit.html#400000`)
  await page.getByRole('button', { name: 'Picture' }).click()
  await page.getByText('Picture copied').waitFor()
  const type = await page.evaluate(async () => (await navigator.clipboard.read())[0].types)
  assert.deepEqual(type, ['image/png'])
  assert.deepEqual(said, [])
  await page.context().close()
})

test('a story’s link without an instant shows how it ends', options, async () => {
  const { page, said } = await open('/story/quota.html')
  await page.waitForURL(/playground\.html#quota@\d+$/)
  const { span } = programOf('quota')
  await page.waitForFunction((end) => location.hash === `#quota@${end}`, span)
  await page.locator('.pg-verdict').waitFor()
  assert.deepEqual(said, [])
  await page.context().close()
})

test('a link that is cut says so; a good one does not', options, async () => {
  for (const [hash, isCut] of [
    ['#p=abc', true],
    ['#no-such-story', true],
    ['#playground', false],
    ['', false],
  ]) {
    const { page } = await open(`/playground.html${hash}`)
    await page.waitForFunction(() => document.querySelectorAll('.pg canvas').length >= 5)
    await page.waitForFunction(() => !/^0:00$/.test(document.querySelector('.pg-clock').textContent))
    const alert = page.getByText('This link is cut')
    if (isCut) await alert.waitFor()
    else assert.equal(await alert.count(), 0, hash)
    assert.equal(await page.locator('.race').isVisible(), !isCut, 'a link opens without the race')
    await page.context().close()
  }
})

test('the race opens the page, ends with a verdict, and gives it away', options, async () => {
  const { page, said } = await open('/playground.html', CALM)
  await page.locator('.race-verdict').waitFor()
  await page.getByRole('button', { name: 'Copy the sentence' }).click()
  await page.getByText('Copied').waitFor()
  assert.match(await clipboard(page), /^autothrottle got 490 of 500 pages/)
  const race = page.locator('.race')
  await race.getByRole('button', { name: 'Embed' }).click()
  await page.getByText('HTML for a frame copied').waitFor()
  const html = await clipboard(page)
  const framed = await open('/race.html')
  await framed.page.setContent(html)
  await framed.page.frameLocator('iframe').getByText('autothrottle got 490').waitFor()
  assert.equal(await framed.page.frameLocator('iframe').locator('.VPNav').isVisible(), false)
  assert.deepEqual([...said, ...framed.said], [])
  await page.context().close()
  await framed.page.context().close()
})

test('the race plays once by itself where it is in sight, and stops when asked', options, async () => {
  const { page, said } = await open('/race.html')
  const stop = page.getByRole('button', { name: 'Stop' })
  await stop.waitFor()
  await page.waitForFunction(() =>
    /^11 served/.test(document.querySelector('.race-figures').textContent.trim()),
  )
  await page.locator('.race-verdict').waitFor()
  assert.match(await page.locator('.race-verdict').textContent(), /autothrottle got 490 of 500 pages/)
  await page.getByRole('button', { name: 'Once more' }).click()
  await stop.click()
  await page.getByRole('button', { name: 'Start the race' }).waitFor()
  assert.deepEqual(said, [])
  await page.context().close()
  const still = await open('/race.html', CALM)
  await still.page.locator('.race-verdict').waitFor()
  assert.match(await still.page.locator('.race-figures').first().textContent(), /0 waiting/)
  await still.page.context().close()
})

test('the race for real: requests leave, are refused and served', options, async () => {
  const { page } = await open('/race.html')
  await page.getByRole('button', { name: 'Do it for real' }).click()
  const figures = page.locator('.race-figures')
  // All of them leave at once, and what the server refuses is refused: a real 503 for each.
  await page.waitForFunction(
    () => / 0 waiting/.test(document.querySelector('.race-figures').textContent),
    null,
    {
      timeout: 60_000,
    },
  )
  await page.waitForFunction(
    () => !/^0 served/.test(document.querySelectorAll('.race-figures')[2].textContent.trim()),
  )
  const [, served, refused] = (await figures.first().textContent())
    .match(/(\d+) served, (\d+) refused/)
    .map(Number)
  assert.ok(served >= 5 && refused > 400, `${served} served, ${refused} refused`)
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('button', { name: 'Start the race' }).waitFor()
  await page.context().close()
})

const drawn = (page) => page.evaluate(() => document.querySelector('.essay canvas').toDataURL())

test(
  'how it works: a scene plays where it is read, stops when asked, and is told in words',
  options,
  async () => {
    const { page, said } = await open('/how-it-works.html')
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    await page.locator('#retry-after').scrollIntoViewIfNeeded()
    await page.evaluate(() => document.querySelector('#retry-after').scrollIntoView())
    await page.getByText('3 of 6').waitFor()
    const first = await drawn(page)
    await page.waitForFunction((was) => document.querySelector('.essay canvas').toDataURL() !== was, first)
    await page.getByRole('button', { name: 'Pause' }).click()
    const still = await drawn(page)
    await page.waitForTimeout(300)
    assert.ok((await drawn(page)) === still, 'paused, it stands')
    assert.match(await page.locator('.essay canvas').getAttribute('aria-label'), /Retry-After.*21 of 30/)
    assert.deepEqual(said, [])
    await page.context().close()
  },
)

test(
  'how it works: with less motion asked for, it stands still and can be moved by hand',
  options,
  async () => {
    const { page, said } = await open('/how-it-works.html', CALM)
    await page.getByRole('button', { name: 'Play' }).waitFor()
    await page.waitForFunction(() => document.querySelector('.essay canvas').width > 300)
    const before = await drawn(page)
    await page.waitForTimeout(300)
    assert.ok((await drawn(page)) === before, 'it stands still')
    await page.getByRole('slider', { name: 'Time in the simulation' }).focus()
    await page.keyboard.press('Home')
    assert.ok((await drawn(page)) !== before, 'it was moved')
    assert.deepEqual(said, [])
    await page.context().close()
  },
)

test('the new pages are no wider than a screen', options, async () => {
  for (const path of ['/race.html', '/how-it-works.html', '/playground.html']) {
    for (const width of [320, 390, 768, 1440]) {
      const { page } = await open(path, { viewport: { width, height: 800 } })
      await page.locator('main h1').first().waitFor({ state: 'attached' })
      assert.equal(
        await page.evaluate(() => document.documentElement.scrollWidth),
        width,
        `${path} at ${width}`,
      )
      assert.equal(await page.locator('h1').count(), 1, path)
      await page.context().close()
    }
  }
})
