/**
 * The service worker: it plays the server for real requests of the playground, and keeps the site for a time
 * without a network: what was seen, and the guides, their search and the playground also if they were not
 * (`relocate.mjs` writes their list into this file).
 *
 * A worker may end between two requests, and forget its server. Each request therefore says what the server
 * is like, and time counts from the epoch: a new worker goes on. The network comes first, the cache is for
 * when there is none, and what a new release lacks goes. Files are fetched when a page says so: a page does
 * not wait for an activation that waits for a megabyte.
 */
import { playServer } from 'autothrottle/simulate'

const CACHE = 'autothrottle-site'
/** Its text is the list of what was kept last. */
const DONE = 'kept.json'
const servers = new Map()

addEventListener('install', (event) => event.waitUntil(skipWaiting()))
addEventListener('activate', (event) => event.waitUntil(clients.claim()))
addEventListener('message', (event) => event.waitUntil(keep().catch(() => undefined)))

addEventListener('fetch', (event) => {
  const url = new URL(event.request.url)
  if (url.origin !== location.origin) return
  if (url.pathname.includes('/simulated/')) event.respondWith(answer(url, url.pathname))
  else if (event.request.method === 'GET') event.respondWith(fromNetwork(event.request))
})

/** Fetches what shall be there without a network, one file after the other: once for each release. */
async function keep() {
  const list = JSON.stringify(globalThis.kept ?? [])
  const cache = await caches.open(CACHE)
  const done = await cache.match(DONE)
  if ((await done?.text()) === list) return
  const wanted = new Set(JSON.parse(list).map((path) => new URL(path, location.href).href))
  for (const { url } of await cache.keys()) {
    // The name of a script says what is in it: it is there already, or no page asks for it any more.
    if (url.includes('/assets/') && !wanted.delete(url)) await cache.delete(url)
  }
  for (const url of wanted) {
    const response = await fetch(url)
    if (response.ok) await cache.put(url, response)
  }
  await cache.put(DONE, new Response(list))
}

/** A server for each key, untouched; another description is another server. */
function serverOf(key, description) {
  const known = servers.get(key)
  if (known?.description === description) return known
  if (servers.size > 100) servers.clear()
  const made = { description, server: playServer(JSON.parse(description)), start: Date.now() }
  servers.set(key, made)
  return made
}

async function answer(url, key) {
  const latency = Number(url.searchParams.get('latency')) || 0
  await sleep(latency / 2)
  const { server, start } = serverOf(key, url.searchParams.get('server'))
  const now = Date.now() - start
  const { status, headers, afterMs } = server.answer(now)
  await sleep(afterMs + latency / 2)
  const fields = { ...headers, 'x-limit': String(server.limit(now)), 'content-type': 'text/plain' }
  return new Response(status === 200 ? 'page' : 'no', { status, headers: fields })
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function fromNetwork(request) {
  try {
    const response = await fetch(request)
    if (response.ok) (await caches.open(CACHE)).put(request, response.clone())
    return response
  } catch (error) {
    const kept = await caches.match(request, { ignoreSearch: true })
    if (kept) return kept
    throw error
  }
}
