/**
 * Walks through the playground or the race as a person would, in any browser, and posts what it saw. It is
 * served beside the page by the test, because Firefox has no driver here.
 */
const seen = { errors: [], stories: [], policies: [] }
for (const kind of ['error', 'warn']) {
  const original = console[kind]
  console[kind] = (...words) => {
    seen.errors.push(`console.${kind}: ${words.join(' ')}`)
    original.apply(console, words)
  }
}
addEventListener('error', ({ message }) => seen.errors.push(`error: ${message}`))
addEventListener('unhandledrejection', ({ reason }) => seen.errors.push(`rejected: ${reason}`))
addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  seen.errors.push(`policy: ${violatedDirective} ${blockedURI}`),
)

/** Downloads come here. */
let saved
const createObjectURL = URL.createObjectURL
URL.createObjectURL = (blob) => {
  saved = blob.text()
  return createObjectURL.call(URL, blob)
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function until(what, test, most = 800) {
  for (let tries = 0; tries < most; tries++) {
    const found = test()
    if (found) return found
    await wait(25)
  }
  throw new Error(`never: ${what}`)
}

const all = (selector) => [...document.querySelectorAll(selector)]
const one = (selector) => document.querySelector(selector)
const text = (selector) => one(selector)?.textContent.trim() ?? ''
const button = (name) => all('.pg button').find((each) => each.textContent.trim().endsWith(name))
const fetched = () => performance.getEntriesByType('resource').map(({ name }) => name)
const clock = () => text('.pg-clock')

async function press(name) {
  const found = await until(`a button ${name}`, () => button(name))
  found.click()
  await wait(30)
}

function choose(selector, value) {
  const select = one(selector)
  select.value = value
  select.dispatchEvent(new Event('change', { bubbles: true }))
  return wait(50)
}

async function download() {
  saved = undefined
  await press('Download trace')
  return JSON.parse(await until('a download', () => saved))
}

/** Whether a canvas has been drawn on. */
const isDrawn = (canvas) =>
  canvas.width > 0 &&
  new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer).some(
    (pixel) => pixel !== 0,
  )

const TIMES = { draft: 2000, 'hidden-limit': 400_000 }

async function stories() {
  for (const story of await until(
    'stories',
    () => all('.pg-stories button').length > 0 && all('.pg-stories button'),
  )) {
    story.click()
    await until('the story is chosen', () => story.getAttribute('aria-pressed') === 'true')
    const name = location.hash.slice(1).split('@')[0]
    const now = TIMES[name] ?? 60_000
    location.hash = `#${name}@${now}`
    const minutes = `${Math.floor(now / 60_000)}:${String(Math.floor(now / 1000) % 60).padStart(2, '0')}`
    const wanted = name === 'draft' ? '2.0 s' : minutes
    await until(`${name} at ${wanted}`, () => clock() === wanted && button('Play'))
    await until(`${name} is drawn`, () => all('.pg canvas').length >= 6 && all('.pg canvas').every(isDrawn))
    seen.stories.push({
      name,
      now,
      says: text('.pg-says'),
      notes: all('.pg-notes button').map(({ textContent }) => textContent),
      drawn: all('.pg canvas').map(isDrawn),
      figures: all('.pg-figures tbody tr').map((row) => [...row.children].map((cell) => cell.textContent)),
      ...(await download()),
    })
  }
}

/** At its end a story says what it showed; *Play* starts it anew. A note opens its rule. */
async function ends() {
  location.hash = '#retry-after@59990'
  await until('nearly the end', () => clock() === '0:59' && button('Play'))
  await press('Play')
  await until('the verdict', () => text('.pg-verdict'))
  const verdict = all('.pg-verdict p').map(({ textContent }) => textContent)
  const opened = location.hash
  await press('Play')
  await until('it began anew', () => clock() === '0:01' || clock() === '0:02')
  await press('Pause')
  location.hash = '#retry-after@20000'
  await until('notes', () => clock() === '0:20' && all('.pg-notes button').length > 0)
  one('.pg-notes button').click()
  const rule = await until('the rule', () => text('.pg-rule'))
  seen.ends = { verdict, opened, rule }
}

/** Everything that can be touched is touched once; the engine's own errors are shown. */
async function controls() {
  location.hash = '#autothrottle@10000'
  await until('the story', () => clock() === '0:10')
  await press('Step')
  const stepped = location.hash
  const slider = one('.pg-field input')
  slider.value = Number(slider.value) + 1
  slider.dispatchEvent(new Event('input', { bubbles: true }))
  slider.dispatchEvent(new Event('change', { bubbles: true }))
  await wait(50)
  const moved = await download()
  const link = location.hash
  location.hash = '#draft'
  await until('another story', () => clock() === '0.0 s')
  location.hash = link
  await until('what was linked', () => clock() !== '0.0 s')
  const linked = await download()
  seen.controls = { stepped, moved, linked }
  for (const { value } of [...one('#pg-model').options]) {
    await choose('#pg-model', value)
    await press('Step')
    seen.policies.push({ model: value, problem: text('.pg-stage > .pg-problem') })
  }
  for (const { value } of [...one('#pg-policy-0').options]) {
    await choose('#pg-policy-0', value)
    await press('Step')
    seen.policies.push({ policy: value, problem: text('.pg-stage > .pg-problem') })
  }
  const area = one('#pg-code-0')
  area.value = 'createThrottle({ delai: 1, defaults: { delay: -1 } })'
  area.dispatchEvent(new Event('input', { bubbles: true }))
  await wait(30)
  await press('Apply')
  seen.problem = text('#pg-problem-0')
  area.value = "{ rate: '90/min' } // a comment"
  area.dispatchEvent(new Event('input', { bubbles: true }))
  await wait(30)
  await press('Apply')
  await press('Play')
  await wait(300)
  await press('Pause')
  seen.pasted = await download()
}

/** Requests that really leave, to the server that the worker plays. */
async function real() {
  location.hash = '#retry-after'
  await until('the story', () => clock() === '0:00')
  await press('Do it for real')
  const count = (column) => Number(text(`.pg-figures tbody td:nth-of-type(${column})`))
  await until('a refusal, and why nothing leaves', () => count(3) > 0 && /Retry-After/.test(text('.pg-why')))
  seen.real = { sent: count(1), served: count(2), refused: count(3), why: text('.pg-why') }
  seen.real.notes = text('.pg-notes')
  await press('Pause')
  await press('Simulate again')
  await until('the simulation again', () => clock() === '0:00')
}

/** Waits for the end of the race, which plays by itself, and tells what stands there. */
async function race() {
  await until('the end of the race', () => one('.race-verdict p'), 4000)
  const texts = (selector) =>
    all(selector).map(({ textContent }) => textContent.replaceAll(/\s+/g, ' ').trim())
  Object.assign(seen, { verdict: texts('.race-verdict p'), figures: texts('.race-figures') })
}

async function playground() {
  await until('the first story', () => all('.pg-stage canvas').length === 6 && clock() === '1:00')
  await real()
  // A reader who comes near to typing has the code for it, also without a network.
  one('#pg-code-0').dispatchEvent(new FocusEvent('focusin', { bubbles: true }))
  await until('the reader of options', () => fetched().filter((name) => /\/dist\./.test(name)).length >= 2)
  await wait(500)
  // From here on there is no network: the server hangs up.
  await fetch('offline', { method: 'PUT' })
  seen.isOffline = await fetch(`nothing-${Date.now()}`).then(
    ({ ok }) => !ok,
    () => true,
  )
  await stories()
  await ends()
  await controls()
}

try {
  await (location.pathname.endsWith('race.html') ? race() : playground())
} catch (error) {
  seen.errors.push(`driver: ${error.message}\n${error.stack}`)
}
await fetch('result', { method: 'POST', body: JSON.stringify(seen) })
