/**
 * The plug-ins of the site's bundler: they make pages answer early on a phone.
 *
 * A page comes alive in parts, not in one long task. A module of WebAssembly is not unpacked and compiled on
 * the thread that draws. Libraries do not say again what a page says already. The service worker is a bundle
 * of its own.
 */
import { fileURLToPath } from 'node:url'

/** Which components have which parts; none is handed anything that changes before it came alive. */
const PARTS = {
  'Layout.vue': /\/(?:VPNav|VPLocalNav|VPSidebar|VPContent|VPFooter)\.vue$/,
  'VPNavBar.vue': /\/VPNavBar(?:Search|Menu|Appearance|Extra|SocialLinks)\.vue$/,
  'VPHome.vue': /\/VPHome(?:Hero|Features)\.vue$/,
  // Its outline hears of the content, which comes alive with it: so it is none of the parts.
  'VPDoc.vue': /\/VPDocFooter\.vue$/,
  'VPSidebar.vue': /\/VPSidebarGroup\.vue$/,
  'VPSidebarGroup.vue': /\/VPSidebarItem\.vue$/,
  'Playground.vue': /\/(?:TimelineBox|ChartBox|FiguresTable|ServerPanel|PolicyPanel)\.vue$/,
  'ServerPanel.vue': /\/RangeField\.vue$/,
}

/** The parts of a page come alive one after the other, each in a task of its own. */
export const partByPart = (later) => ({
  name: 'part-by-part',
  enforce: 'pre',
  async resolveId(source, importer) {
    const [, name] =
      importer?.match(/\/(?:theme-default(?:\/components)?|playground)\/(\w+\.vue)(?:\?|$)/) ?? []
    if (!name || !PARTS[name]?.test(source)) return undefined
    const { id } = await this.resolve(source, importer, { skipSelf: true })
    return `\0later:${id}.js`
  },
  load(id) {
    if (!id.startsWith('\0later:')) return undefined
    const part = JSON.stringify(id.slice('\0later:'.length, -'.js'.length))
    return `import part from ${part}
      import { later } from ${JSON.stringify(later)}
      export default later(part)`
  },
})

/**
 * A `.wasm` that is imported is a file, fetched and compiled beside the page's own thread. It does not run
 * where pages are rendered.
 */
export const compiledBeside = {
  name: 'compiled-beside',
  enforce: 'pre',
  load(id, { ssr } = {}) {
    // `?module` is how the package imports one for Workers, whose condition the site's bundle has.
    if (!/\.wasm(?:\?module)?$/.test(id)) return undefined
    if (ssr) return 'export default undefined'
    return `import url from ${JSON.stringify(`${id.replace('?module', '')}?url`)}
      // A host that says another type has it compiled once it is there.
      const fetched = fetch(url)
      const streamed = WebAssembly.compileStreaming(fetched.then((response) => response.clone()))
      const whole = async () => WebAssembly.compile(await (await fetched).arrayBuffer())
      export default await streamed.catch(whole)`
  },
}

/**
 * Code of libraries that runs as a page comes up, and costs more than it looks; and what readers of pages
 * aloud miss.
 */
const EDITS = {
  // The language that is there already, set again, has every element of a page styled anew.
  '/vitepress/dist/client/app/index.js': [
    ['document.documentElement.lang = lang.value;', "setRoot('lang', lang.value)"],
    ['document.documentElement.dir = dir.value;', "setRoot('dir', dir.value)"],
    [
      'export async function',
      `function setRoot(name, value) {
      if (document.documentElement[name] !== value) document.documentElement[name] = value
    }
    export async function`,
    ],
  ],
  // The first page has a main part like all others, and a key beside a button's name is no part of the name.
  '/theme-default/components/VPHome.vue': [
    ['<div \n    class="VPHome"', '<main\n    class="VPHome"'],
    ['<Content v-else />\n  </div>', '<Content v-else />\n  </main>'],
  ],
  '/theme-default/components/VPNavBarSearchButton.vue': [
    ['<kbd class="DocSearch-Button-Key">K</kbd>', '<kbd class="DocSearch-Button-Key search-key"></kbd>'],
  ],
  '/theme-default/components/VPSwitchAppearance.vue': [
    ["const switchTitle = ref('')", "const switchTitle = ref('Switch to dark theme')"],
  ],
  // Formats of languages, which no chart of ours asks for, take longer than all the rest of uPlot.
  '/uplot/dist/uPlot.esm.js': [
    ['const numFormatter = new', 'let numFormatter\nconst makeFormatter = () => new'],
    ['numFormatter.format(', '(numFormatter ??= makeFormatter()).format('],
    ['const localTz =', 'const localTz = () =>'],
    ['tz == localTz', 'tz == localTz()'],
  ],
}

/** Libraries as they are, but for these lines; a release that has others is an error. */
export const frugal = {
  name: 'frugal',
  enforce: 'pre',
  transform(code, id) {
    const [path, query = ''] = id.split('?')
    // Parts of a component come from its source, which was here before.
    if (query.startsWith('vue')) return undefined
    const edits = Object.entries(EDITS).find(([end]) => path.endsWith(end))?.[1]
    return edits?.reduce((text, [from, to]) => {
      if (text.split(from).length !== 2) throw new Error(`${id} has not one \`${from}\``)
      return text.replace(from, () => to)
    }, code)
  },
}

/** Builds the service worker: one classic script, because Firefox takes no module there. */
export async function worker() {
  const { build } = await import('vite')
  const here = fileURLToPath(new URL('.', import.meta.url))
  const entry = { entry: `${here}playground/sw.js`, formats: ['iife'], name: 'sw', fileName: () => 'sw.js' }
  await build({
    root: here,
    configFile: false,
    logLevel: 'warn',
    publicDir: false,
    resolve: { alias: { 'autothrottle/simulate': `${here}../dist/simulate.js` } },
    build: { outDir: `${here}public`, emptyOutDir: false, lib: entry },
  })
}
