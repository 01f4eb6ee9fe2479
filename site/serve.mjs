/** Serves a folder of static files, as any host would: for a look at the site, and for its tests. */
import { readFileSync, statSync } from 'node:fs'
import { extname, join, normalize } from 'node:path'
import { gzipSync } from 'node:zlib'

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
  '.woff2': 'font/woff2',
  '.png': 'image/png',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
}
const PACKED = new Set(['.woff2', '.png', '.gif', '.webp'])

/**
 * A listener for `http.createServer`.
 *
 * @param under the path at which the folder lies: `/some/where/`
 * @param headers what each answer says beside its type
 */
export function serveFolder(folder, { under = '/', headers = {} } = {}) {
  const zipped = new Map()
  return (request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://x').pathname)
    const inside = path.startsWith(under) ? normalize(`/${path.slice(under.length)}`) : undefined
    let file = inside === undefined ? undefined : join(folder, inside)
    let stats = file && statSync(file, { throwIfNoEntry: false })
    if (stats?.isDirectory()) {
      file = join(file, 'index.html')
      stats = statSync(file, { throwIfNoEntry: false })
    }
    const isMissing = !stats
    if (isMissing) {
      // As static hosts do.
      file = join(folder, '404.html')
      stats = statSync(file, { throwIfNoEntry: false })
      if (!stats) return response.writeHead(404, headers).end('not found')
    }
    const type = extname(file)
    const isHashed = /\.[\w-]{8}\.(?:lean\.)?\w+$/.test(file)
    const cache = { 'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache' }
    const all = { 'content-type': TYPES[type] ?? 'application/octet-stream', ...cache, ...headers }
    const wantsZip = request.headers['accept-encoding']?.includes('gzip') && !PACKED.has(type)
    const key = `${file} ${stats.mtimeMs}`
    if (wantsZip && !zipped.has(key)) zipped.set(key, gzipSync(readFileSync(file)))
    const status = isMissing ? 404 : 200
    if (wantsZip) response.writeHead(status, { ...all, 'content-encoding': 'gzip' }).end(zipped.get(key))
    else response.writeHead(status, all).end(readFileSync(file))
  }
}
