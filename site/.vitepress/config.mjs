/**
 * The site: guides as they stand in docs/, the reference as typedoc writes it, the playground. All pages are
 * gathered in `.pages` first (`pages.mjs`), so that one folder is the source of one site.
 *
 * Its base is a placeholder (`/__base__/`), which `relocate.mjs` then takes out again: the files work
 * wherever a host puts them.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BASE, head as headOfLinks } from '../links.mjs'
import { compiledBeside, frugal, partByPart } from '../vite-plugins.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))

/**
 * Guides in the order in which one reads them, with a shorter name where the heading is a sentence; new ones
 * come after, by name.
 */
const ORDER = {
  Begin: ['start', 'which-setting', 'recipes', 'coming-from', 'comparison'],
  Use: ['clients', 'llm', 'presets', 'runtimes', 'shared', 'shared-faults', 'command'],
  'How it decides': ['policies', 'rampup', 'hints'],
  'Look up': ['settings', 'api', 'python-api', 'errors', 'events'],
  'See and test': ['monitoring', 'trace', 'testing', 'simulate'],
  Elsewhere: ['python', 'scrapy', 'component'],
}
const SHORT = {
  start: 'First steps',
  simulate: 'Simulate a server',
  runtimes: 'Where it runs',
  'shared-faults': 'What happens when',
  shared: 'Many processes',
  component: 'Any other language',
  python: 'Python',
}

const heading = (path) =>
  readFileSync(`${root}/${path}`, 'utf8')
    .match(/^# (.+)$/m)?.[1]
    .replaceAll('`', '')
const guide = (name) => ({
  text: SHORT[name] ?? heading(`site/.pages/docs/${name}.md`) ?? name,
  link: `/docs/${name}`,
})
const pages = (folder) =>
  existsSync(`${root}/${folder}`)
    ? readdirSync(`${root}/${folder}`)
        .filter((name) => name.endsWith('.md'))
        .map((name) => name.slice(0, -3))
        .sort()
    : []

function guides() {
  const left = new Set(pages('site/.pages/docs'))
  const groups = Object.entries(ORDER).map(([text, names]) => ({
    text,
    items: names.filter((name) => left.delete(name)).map(guide),
  }))
  if (left.size > 0) groups.push({ text: 'More', items: [...left].map(guide) })
  return groups.filter(({ items }) => items.length > 0)
}

const reference = () => [
  {
    text: 'Reference',
    items: [
      'index',
      'main',
      ...pages('site/.pages/reference').filter((name) => !/^(?:index|main)$/.test(name)),
    ].map((name) => ({
      text: name === 'index' ? 'Entries' : `autothrottle${name === 'main' ? '' : `/${name}`}`,
      link: `/reference/${name}`,
    })),
  },
]

/** Where a link leads that leaves the site: to the repository, if package.json names one. */
const repository = () => {
  const { repository: of } = manifest
  const url = (typeof of === 'string' ? of : of?.url)?.replace(/^git\+|\.git$/g, '')
  return url?.startsWith('https://') ? url : undefined
}

/** Links of guides to files of the repository: they are no pages. */
function outward(md) {
  md.core.ruler.after('inline', 'outward', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let isPlain = false
      for (const token of children ?? []) {
        if (token.type === 'link_close' && isPlain) {
          token.tag = 'span'
          isPlain = false
        }
        if (token.type !== 'link_open') continue
        const href = token.attrGet('href')
        if (/^(?:[a-z]+:|#|\/)/.test(href)) continue
        const path = join(dirname(env.relativePath), href.replace(/#.*/, ''))
        const isPage = /^(?:docs|reference)\/.*\.md$/.test(path)
        if ((isPage || !path.includes('/')) && existsSync(join(root, 'site/.pages', path))) continue
        if (isPage) console.warn(`${env.relativePath}: there is no ${path}`)
        const url = isPage ? undefined : repository()
        if (url) token.attrSet('href', `${url}/blob/main/${path}`)
        else {
          token.tag = 'span'
          token.attrs = []
          isPlain = true
        }
      }
    }
  })
}

/** A header without words is a cell: who reads a table aloud is not told of a header that is not there. */
function quietHeaders(md) {
  md.core.ruler.after('inline', 'quiet-headers', ({ tokens }) => {
    tokens.forEach((token, at) => {
      if (token.type !== 'th_open' || tokens[at + 1].content.trim() !== '') return
      token.tag = 'td'
      tokens[at + 2].tag = 'td'
    })
  })
}

/** A drawing goes sideways on a phone (style.css): keys can move it, too. */
function drawings(md) {
  md.core.ruler.after('inline', 'drawings', ({ tokens }) => {
    tokens.forEach(({ type, children }, at) => {
      if (type === 'inline' && children.length === 1 && children[0].type === 'image')
        tokens[at - 1].attrSet('tabindex', '0')
    })
  })
}

export default {
  title: 'autothrottle',
  description: manifest.description,
  lang: 'en',
  base: BASE,
  srcDir: './.pages',
  outDir: './dist',
  cacheDir: './.vitepress/cache',
  metaChunk: true,
  // Most visitors open one page, and the playground is large.
  router: { prefetchLinks: false },
  head: [
    ['link', { rel: 'icon', href: `${BASE}icon.svg`, type: 'image/svg+xml' }],
    // Inside a frame of another page: without the bar.
    ['script', {}, "document.documentElement.classList.toggle('embed', /[?&]embed/.test(location.search))"],
  ],
  transformHead: headOfLinks,
  // No colour changes while a page comes up: with transitions off for a moment all of it is styled three
  // times.
  appearance: { disableTransition: false },
  // Comments in code are as readable as the rest: the usual themes grey them out.
  markdown: {
    // A heading is called in links what GitHub calls it: the guides are read there, too.
    anchor: {
      slugify: (heading) =>
        heading
          .toLowerCase()
          .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
          .replaceAll(' ', '-'),
    },
    config: (md) => {
      outward(md)
      quietHeaders(md)
      drawings(md)
    },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  // Tables with a sentence in each row get the whole width; on a phone each of their rows is a block.
  transformPageData: ({ relativePath, frontmatter }) => {
    const pageClass = {
      'docs/clients.md': 'wide',
      'docs/settings.md': 'wide rows',
      'docs/errors.md': 'wide rows',
      'docs/api.md': 'wide rows signatures',
      'docs/python-api.md': 'wide rows signatures',
    }[relativePath]
    if (pageClass) Object.assign(frontmatter, { aside: false, pageClass })
  },
  themeConfig: {
    logo: '/icon.svg',
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Guide', link: '/docs/start', activeMatch: '/docs/(?!settings|clients|command)' },
      { text: 'Settings', link: '/docs/settings' },
      { text: 'Clients', link: '/docs/clients' },
      { text: 'Command', link: '/docs/command' },
      { text: 'Reference', link: '/reference/', activeMatch: '/reference/' },
      { text: 'How it works', link: '/how-it-works' },
      { text: 'My API', link: '/my-api' },
      { text: 'Playground', link: '/playground' },
      { text: 'Changes', link: '/changelog' },
    ],
    sidebar: { '/docs/': guides(), '/reference/': reference() },
    socialLinks: repository() ? [{ icon: 'github', link: repository() }] : [],
  },
  vite: {
    publicDir: `${root}/site/public`,
    plugins: [partByPart(`${root}/site/playground/soon.js`), compiledBeside, frugal],
    resolve: {
      alias: [
        // As in Workers, the simulator takes its module as a file.
        { find: 'autothrottle/simulate', replacement: `${root}/dist/edge/simulate.js` },
        { find: /^autothrottle$/, replacement: `${root}/dist/index.js` },
        { find: /^autothrottle\/(.+)$/, replacement: `${root}/dist/$1.js` },
      ],
    },
    build: { chunkSizeWarningLimit: 1000, target: 'es2022' },
    server: { fs: { allow: [root] } },
  },
}
