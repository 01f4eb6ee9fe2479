/**
 * The look of a link to the site elsewhere: a title, a sentence and a picture for each page (`head`). Each
 * story of the playground gets a page, too (`covers`): its own link is behind a `#` that other sites never
 * see.
 *
 * Sites that show links want whole addresses, and this one is built for any place. The addresses are whole
 * where the place is known: `SITE_URL` says it, or the host that builds the site. Otherwise the build says
 * what to do.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire, register } from 'node:module'

register('./test/resolve.mjs', import.meta.url)

/** The base that the site is built for. No file of it names it in the end: `relocate.mjs` takes it out. */
export const BASE = '/__base__/'

function isOnTheWeb(text) {
  try {
    return /^https?:$/.test(new URL(text).protocol)
  } catch {
    return false
  }
}

/** Where the site will stand, with a slash at its end: as you say, or as a host of pages tells its builds. */
export function placeOf(env) {
  const [owner, name] = env.GITHUB_REPOSITORY?.split('/') ?? []
  const vercel = env.VERCEL_PROJECT_PRODUCTION_URL
  const said = [
    env.SITE_URL,
    env.CF_PAGES_URL,
    env.NETLIFY && env.URL,
    vercel && `https://${vercel}`,
    name && `https://${owner}.github.io/${name === `${owner}.github.io` ? '' : name}`,
  ].find(Boolean)
  if (said === undefined) return undefined
  if (!isOnTheWeb(said)) throw new Error(`SITE_URL wants https://host/path, got ${said}`)
  return said.replace(/\/*$/, '/')
}

const site = placeOf(process.env)
const address = (path) => `${site ?? BASE}${path}`

/** Pages with a picture of their own. */
const PICTURES = {
  'index.md': 'race',
  'race.md': 'race',
  'playground.md': 'race',
  'how-it-works.md': 'how-it-works',
}

/** The tags of a page, as pairs of name and content. */
const tags = ({ title, description, picture, path }) => [
  ['og:type', 'website'],
  ['og:site_name', 'autothrottle'],
  ['og:title', title],
  ['og:description', description],
  ['og:image', address(`og/${picture}.png`)],
  ['og:image:width', '1200'],
  ['og:image:height', '630'],
  ...(site ? [['og:url', address(path)]] : []),
  ['twitter:card', 'summary_large_image'],
]

/** For VitePress's `transformHead`. */
export function head({ pageData, title, description }) {
  const path = pageData.relativePath.replace(/(?:index)?\.md$/, (end) => (end === '.md' ? '.html' : ''))
  const picture = PICTURES[pageData.relativePath] ?? 'autothrottle'
  return [
    ...(site ? [['link', { rel: 'canonical', href: address(path) }]] : []),
    ...tags({ title, description, picture, path }).map(([property, content]) => [
      'meta',
      { property, content },
    ]),
  ]
}

const NO_PLACE = `  The site's address is not known: other sites show its links without pictures, and pages have no canonical
  address. If you publish it: SITE_URL=https://host/path npm run site -- --build`

/** Writes the pictures and the pages of the stories. */
export async function covers(folder) {
  console.log(site ? `  links show their pictures at ${site}` : NO_PLACE)
  const { pageCard, raceCard, storyCard } = await import('./playground/card.js')
  const { simulate } = await import('../dist/simulate.js')
  const { race } = await import('./playground/race.js')
  const { programOf } = await import('./playground/program.js')
  const { Stage } = await import('./playground/stage.js')
  const { STORIES } = await import('./playground/stories.js')
  const draw = await painter()
  for (const name of ['og', 'story']) mkdirSync(`${folder}/${name}`, { recursive: true })
  const put = (name, svg) => writeFileSync(`${folder}/og/${name}.png`, draw(svg))
  put('race', raceCard(race(simulate)))
  put(
    'how-it-works',
    pageCard({
      title: 'How it works, one request at a time',
      about:
        'Watch requests wait, travel, and come back: served or refused. Six screens, from a burst to many processes.',
    }),
  )
  put(
    'autothrottle',
    pageCard({
      title: 'autothrottle',
      about: 'Rate limits for HTTP clients, decided by what you allow and what the server says.',
      code: 'createThrottle({ rate: 5 })',
    }),
  )
  writeFileSync(`${folder}/story.js`, STORY)
  for (const { name, title, about } of STORIES) {
    const stage = new Stage(programOf(name))
    stage.advance(stage.program.span)
    put(`story-${name}`, storyCard(stage, { title, about }))
    writeFileSync(`${folder}/story/${name}.html`, cover({ name, title, about, end: stage.now }))
  }
}

/** Draws an SVG as PNG, with letters that every machine has: these. */
async function painter() {
  const { initWasm, Resvg } = await import('@resvg/resvg-wasm')
  const { resolve } = createRequire(import.meta.url)
  await initWasm(readFileSync(resolve('@resvg/resvg-wasm/index_bg.wasm')))
  const fontBuffers = ['DejaVuSans', 'DejaVuSans-Bold', 'DejaVuSansMono'].map((name) =>
    readFileSync(resolve(`dejavu-fonts-ttf/ttf/${name}.ttf`)),
  )
  const font = { fontBuffers, loadSystemFonts: false, defaultFontFamily: 'DejaVu Sans' }
  return (svg) => new Resvg(svg, { font }).render().asPng()
}

const safe = (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')

/** A page that shows itself where it is linked, and opens the playground for a reader. */
const cover = ({ name, title, about, end }) => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <title>${safe(title)} | autothrottle</title>
    <meta name="description" content="${safe(about)}">
${tags({ title, description: about, picture: `story-${name}`, path: `story/${name}.html` })
  .map(([property, content]) => `    <meta property="${property}" content="${safe(content)}">`)
  .join('\n')}
    <script src="${BASE}story.js" data-story="${name}" data-end="${end}"></script>
  </head>
  <body>
    <main>
      <h1>${safe(title)}</h1>
      <p>${safe(about)}</p>
      <p><a href="${BASE}playground.html#${name}@${end}">Open it in the playground</a></p>
    </main>
  </body>
</html>
`

/** The text behind the `#` of a story's link is its instant. Without one it shows how it ends. */
const STORY = `const { story, end } = document.currentScript.dataset
const at = /^#\\d+$/.test(location.hash) ? location.hash.slice(1) : end
location.replace(\`../playground.html#\${story}@\${at}\`)
`
