/**
 * What the site's bundler does beside what it always does: it makes pages answer early on a phone.
 *
 * The traps: one long task in which a whole page comes alive; a module of WebAssembly that is unpacked and
 * compiled on the thread that draws.
 */

/** Which components of VitePress' theme have which parts; none is handed anything that changes by itself. */
const PARTS = {
  'Layout.vue': /\/(?:VPNav|VPLocalNav|VPSidebar|VPContent|VPFooter)\.vue$/,
  'VPNavBar.vue': /\/VPNavBar(?:Search|Menu|Appearance|Extra|SocialLinks)\.vue$/,
  'VPHome.vue': /\/VPHome(?:Hero|Features)\.vue$/,
  'VPDoc.vue': /\/VPDoc(?:Aside|Footer)\.vue$/,
  'VPSidebar.vue': /\/VPSidebarGroup\.vue$/,
}

/** The parts of VitePress' layout come alive one after the other, each in a task of its own. */
export const partByPart = (later) => ({
  name: 'part-by-part',
  enforce: 'pre',
  async resolveId(source, importer) {
    const [, name] = importer?.match(/\/theme-default\/(?:components\/)?(\w+\.vue)(?:\?|$)/) ?? []
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
 * A `.wasm` that is imported is a file, fetched and compiled beside the page's own thread. Nothing of it runs
 * where pages are rendered.
 */
export const compiledBeside = {
  name: 'compiled-beside',
  enforce: 'pre',
  load(id, { ssr } = {}) {
    if (!id.endsWith('.wasm')) return undefined
    if (ssr) return 'export default undefined'
    return `import url from ${JSON.stringify(`${id}?url`)}
      const response = await fetch(url)
      export default await WebAssembly.compile(await response.arrayBuffer())`
  },
}
