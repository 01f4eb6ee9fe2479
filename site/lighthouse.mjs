/**
 * Measures the built site: Lighthouse's four scores for a phone and a desktop, and when the first charts of
 * the playground are there: drawn with the page, and live. `node site/lighthouse.mjs`, two minutes, after
 * `npm run site -- --build`.
 */
import { fileURLToPath } from 'node:url'
import { launch } from 'chrome-launcher'
import lighthouse, { desktopConfig } from 'lighthouse'
import { chromium } from 'playwright-core'
import { listen } from '../tests/serve.mjs'
import { serveFolder } from './serve.mjs'

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-background-networking',
]
const CHROME = '/usr/bin/chromium'
const PAGES = [
  '',
  'playground.html',
  'race.html',
  'how-it-works.html',
  'my-api.html',
  'docs/start.html',
  'reference/simulate.html',
]

const server = await listen(serveFolder(fileURLToPath(new URL('./dist', import.meta.url))))
const base = `${server.url}/`

const only = process.argv[2]
const chrome = await launch({ chromePath: CHROME, chromeFlags: FLAGS })
for (const path of PAGES.filter((each) => only === undefined || each.startsWith(only))) {
  for (const [name, config] of [
    ['phone', undefined],
    ['desktop', desktopConfig],
  ]) {
    const { lhr } = await lighthouse(base + path, { port: chrome.port, logLevel: 'error' }, config)
    const scores = Object.values(lhr.categories).map(
      ({ title, score }) => `${title} ${Math.round(score * 100)}`,
    )
    console.log(`${(path || 'index.html').padEnd(24)} ${name.padEnd(8)} ${scores.join('  ')}`)
    for (const { auditRefs } of Object.values(lhr.categories)) {
      for (const { id, weight } of auditRefs) {
        const { score, title, displayValue = '', details } = lhr.audits[id]
        if (weight === 0 || score === null || score >= 0.9) continue
        console.log(`    ${score}  ${title} ${displayValue}`)
        for (const { node } of details?.items ?? []) if (node) console.log(`        ${node.selector}`)
      }
    }
  }
}
await chrome.kill()

const browser = await chromium.launch({ executablePath: CHROME, args: FLAGS })
for (const round of [1, 2, 3]) {
  const page = await browser.newPage()
  await page.goto(`${base}playground.html`)
  const handle = await page.waitForFunction(() => performance.getEntriesByName('first-chart')[0]?.startTime)
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime)
  const [drawn, live] = [paint, await handle.jsonValue()].map(Math.round)
  console.log(`first charts, round ${round}: drawn with the page after ${drawn} ms, live after ${live} ms`)
  await page.close()
}
await browser.close()
server.close()
