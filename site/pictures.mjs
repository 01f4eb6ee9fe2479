/**
 * Takes the pictures of the playground for the README: `node site/pictures.mjs`, after `npm run site --
 * --build`. It writes `docs/images/playground.png`, and with Python's Pillow the animation `playground.gif`.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { serveFolder } from '../scripts/serve.mjs'

const images = fileURLToPath(new URL('../docs/images', import.meta.url))
const FRAMES = 36
const [STEP, SPAN] = [2500, 90_000]

/** Frames to one picture that moves, the last one for two seconds; and fewer colours, which are a third. */
const ANIMATE = `
import sys
from pathlib import Path
from PIL import Image

def small(path):
    with Image.open(path) as image:
        size = (860, round(image.height * 860 / image.width))
        return image.convert("RGB").resize(size, Image.LANCZOS)

frames = [small(path) for path in sorted(Path(sys.argv[1]).glob("*.png"))]
palette = frames[-1].quantize(48)
first, *rest = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
times = [160] * len(rest) + [2000]
first.save(Path(sys.argv[2]) / "playground.gif", save_all=True, append_images=rest, duration=times, loop=0,
           optimize=True)
shot = Path(sys.argv[2]) / "playground.png"
with Image.open(shot) as image:
    fewer = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
fewer.save(shot, optimize=True)
`

const server = createServer(serveFolder(fileURLToPath(new URL('./dist', import.meta.url))))
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const base = `http://127.0.0.1:${server.address().port}/playground.html`
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic'],
})

/** Goes to an instant of a story, and waits until it is drawn. */
async function goTo(page, story, now) {
  await page.evaluate((hash) => {
    location.hash = hash
  }, `${story}@${now}`)
  const clock = `${Math.floor(now / 60_000)}:${String(Math.floor(now / 1000) % 60).padStart(2, '0')}`
  await page.waitForFunction((text) => document.querySelector('.pg-clock').textContent === text, clock)
  await page.waitForTimeout(250)
}

const page = await browser.newPage({ viewport: { width: 1360, height: 1180 } })
await page.goto(`${base}#hidden-limit@560000`)
await page.waitForFunction(() => document.querySelectorAll('.pg canvas').length === 6)
await goTo(page, 'hidden-limit', 560_000)
await page.screenshot({ path: `${images}/playground.png` })

const folder = mkdtempSync(join(tmpdir(), 'autothrottle-frames-'))
await page.setViewportSize({ width: 1210, height: 1000 })
await goTo(page, 'autothrottle', 0)
const { x, width, top, bottom } = await page.evaluate(() => {
  const box = document.querySelector('.pg-stage').getBoundingClientRect()
  const charts = [...document.querySelectorAll('.pg-stage > .pg-chart')]
  const { y } = document.querySelector('.pg-why').getBoundingClientRect()
  return { x: box.x, width: box.width, top: y, bottom: charts.at(-1).getBoundingClientRect().bottom }
})
const clip = { x: x - 8, y: top - 6, width: width + 16, height: bottom - top + 14 }
for (let frame = 0; frame <= FRAMES; frame++) {
  await goTo(page, 'autothrottle', Math.min(SPAN, frame * STEP))
  await page.screenshot({ clip, path: join(folder, `${String(frame).padStart(3, '0')}.png`) })
}
const { status, error } = spawnSync('python3', ['-c', ANIMATE, folder, images], { stdio: 'inherit' })
if (status !== 0) throw new Error('no animation: is Pillow installed? (pip install pillow)', { cause: error })
rmSync(folder, { recursive: true })
await browser.close()
server.close()
