/**
 * Makes a site that was built for one base work at any: links in pages become relative, and scripts learn
 * their base from where `base.js` lies.
 *
 * Scripts are parsed, since a quote may be part of another string. Scripts inside pages become files, since a
 * Content-Security-Policy without `unsafe-inline` forbids them.
 */
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseAst } from 'vite'
import { BASE } from './links.mjs'

/** Rewrites all files below a folder. */
export function relocate(folder) {
  oneStyle(folder)
  const all = () => readdirSync(folder, { recursive: true }).map((path) => path.replaceAll('\\', '/'))
  const found = all()
  const early = new Set(["globalThis.__base = new URL('.', document.currentScript.src).pathname", LATER])
  for (const path of found.filter((name) => name.endsWith('.html'))) page(folder, path, early)
  writeFileSync(join(folder, 'base.js'), [...early, ''].join(';\n'))
  for (const path of all()) {
    if (path.endsWith('.js')) rewrite(join(folder, path), script)
    if (path.endsWith('.css')) {
      const up = `${relative(dirname(path), '.') || '.'}/`
      rewrite(join(folder, path), (text) => text.replaceAll(BASE, up))
    }
  }
  const kept = JSON.stringify(['./', ...found.filter(isKept), 'base.js'])
  rewrite(join(folder, 'sw.js'), (text) => `globalThis.kept=${kept};\n${text}`)
}

/** Icons come in a file of their own: that is one less to wait for. */
function oneStyle(folder) {
  const style = readdirSync(join(folder, 'assets')).find((name) => /^style\..*\.css$/.test(name))
  const icons = join(folder, 'vp-icons.css')
  appendFileSync(join(folder, 'assets', style), readFileSync(icons))
  rmSync(icons)
}

/**
 * The files that the service worker keeps for a time without a network. The reference and pictures: once
 * seen.
 */
const isKept = (path) =>
  /\.(?:html|js|css|wasm|svg)$/.test(path) && !/(?:^|\/)(?:sw\.js|404\.html|reference[/_].*)$/.test(path)

/** The script that runs before a page is drawn (its base, light or dark) is one file for all pages. */
function page(folder, path, early) {
  const up = path === '404.html' ? '' : relative(dirname(path), '.')
  const prefix = up === '' ? './' : `${up}/`
  rewrite(join(folder, path), (text) => {
    const outside = text
      .replaceAll(/<script([^>]*)>([^<]+)<\/script>/g, (whole, attributes, code) => {
        if (/type="/.test(attributes))
          throw new Error(`${path}: a script inside a page: ${whole.slice(0, 80)}`)
        early.add(code.trim())
        return ''
      })
      .replace(/<link[^>]*vp-icons\.css[^>]*>/, '')
    const links = path === 'playground.html' ? preloads(folder) : []
    return (
      outside
        .replaceAll(BASE, prefix)
        .replace('</head>', `${links.join('')}</head>`)
        // Pages are read before their scripts run: those shall not take the line from what draws.
        .replaceAll(/<(?:script type="module"|link rel="(?:module)?preload")/g, '$& fetchpriority="low"')
        .replace('<head>', `<head>\n    <script src="${prefix}base.js"></script>`)
    )
  })
}

/**
 * The playground's own parts would be asked for last, by scripts that were asked for by others. They are
 * asked for once the page is drawn: what draws it comes first.
 */
function preloads(folder) {
  const found = (inside, pattern, link) =>
    readdirSync(join(folder, inside))
      .filter((name) => pattern.test(name))
      .map((name) => `<link data-later=${link} fetchpriority="low" href="./${inside}/${name}">`)
  return [
    ...found('assets/chunks', /^(?:stage|uPlot\.\w+)\..*\.js$/, '"modulepreload"'),
    ...found('assets', /\.wasm$/, '"preload" as="fetch" crossorigin'),
  ]
}

/** Makes them links that fetch, after the first picture. */
const LATER = `addEventListener('DOMContentLoaded', () => requestAnimationFrame(() => setTimeout(() => {
  for (const link of document.querySelectorAll('link[data-later]')) link.rel = link.dataset.later
})))`

/** Every string of a script that names the base asks for it at run time instead. */
function script(text) {
  if (!text.includes(BASE)) return text
  const edits = []
  const visit = (node) => {
    if (Array.isArray(node)) return node.forEach(visit)
    if (typeof node?.type !== 'string') return
    if (node.type === 'Literal' && typeof node.value === 'string' && node.value.includes(BASE)) {
      const parts = node.value.split(BASE).map((part) => JSON.stringify(part))
      edits.push([node.start, node.end, `(${parts.join('+globalThis.__base+')})`])
    } else if (node.type === 'TemplateElement' && node.value.raw.includes(BASE)) {
      const code = text
        .slice(node.start, node.end)
        .split(BASE)
        .join('$' + '{globalThis.__base}')
      edits.push([node.start, node.end, code])
    } else for (const value of Object.values(node)) visit(value)
  }
  visit(parseAst(text).body)
  let out = text
  for (const [start, end, code] of edits.sort((a, b) => b[0] - a[0])) {
    out = out.slice(0, start) + code + out.slice(end)
  }
  if (out.includes(BASE)) throw new Error('a script names the base outside of its strings')
  return out
}

function rewrite(file, change) {
  const before = readFileSync(file, 'utf8')
  const after = change(before)
  if (after !== before) writeFileSync(file, after)
}
