/**
 * Makes a site that was built for one base work at any: links in pages become relative, and scripts learn
 * their base from where `base.js` lies.
 *
 * The traps: replacing text in scripts, where a quote may be part of another string (so they are parsed);
 * pages with scripts inside them, which a Content-Security-Policy without `unsafe-inline` forbids (so those
 * become files).
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseAst } from 'vite'
import { BASE } from './base.mjs'

/** Rewrites all files below a folder. */
export function relocate(folder) {
  const found = readdirSync(folder, { recursive: true }).map(String)
  writeFileSync(
    join(folder, 'base.js'),
    "globalThis.__base = new URL('.', document.currentScript.src).pathname\n",
  )
  for (const path of found.filter((name) => name.endsWith('.html'))) page(folder, path)
  for (const path of readdirSync(folder, { recursive: true }).map(String)) {
    if (path.endsWith('.js')) rewrite(join(folder, path), script)
    if (path.endsWith('.css')) {
      const up = `${relative(dirname(path), '.') || '.'}/`
      rewrite(join(folder, path), (text) => text.replaceAll(BASE, up))
    }
  }
}

function page(folder, path) {
  const up = path === '404.html' ? '' : relative(dirname(path), '.')
  const prefix = up === '' ? './' : `${up}/`
  rewrite(join(folder, path), (text) => {
    const outside = text.replaceAll(/<script([^>]*)>([^<]+)<\/script>/g, (whole, attributes, code) => {
      if (/type="(?!module|text\/javascript)/.test(attributes)) return whole
      const name = `assets/inline-${createHash('sha256').update(code).digest('hex').slice(0, 8)}.js`
      writeFileSync(join(folder, name), code)
      return `<script${attributes} src="${prefix}${name}"></script>`
    })
    return outside
      .replaceAll(BASE, prefix)
      .replace('<head>', `<head>\n    <script src="${prefix}base.js"></script>`)
  })
}

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
