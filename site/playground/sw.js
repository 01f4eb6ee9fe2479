/**
 * The service worker: it plays the server for real requests of the playground, and keeps the site for a time
 * without a network.
 *
 * The traps: a worker that is ended between two requests forgets its server (the page says with every request
 * what it is like, and time is counted from the epoch, so a new one goes on); a cache that outlives a release
 * (the network comes first, the cache is for when there is none).
 */
import { playServer } from 'autothrottle/simulate'

const CACHE = 'autothrottle-site'
const servers = new Map()

addEventListener('install', (event) => event.waitUntil(skipWaiting()))
addEventListener('activate', (event) => event.waitUntil(clients.claim()))

addEventListener('fetch', (event) => {
  const url = new URL(event.request.url)
  if (url.origin !== location.origin) return
  if (url.pathname.includes('/simulated/')) event.respondWith(answer(url, url.pathname))
  else if (event.request.method === 'GET') event.respondWith(fromNetwork(event.request))
})

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
