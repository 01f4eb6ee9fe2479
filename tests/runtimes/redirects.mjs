/**
 * Redirects hop by hop against a real server, in any runtime that shows them. `check(createThrottle, base)`
 * gives one line.
 */
export async function check(createThrottle, base) {
  const sends = []
  const throttle = createThrottle({
    defaults: { delay: 0, slotDelay: 0, jitter: false },
    redirects: 'throttle',
    release: 'body',
  })
  throttle.addEventListener('send', ({ scopes }) => sends.push(scopes[0]))
  const other = base.replace('127.0.0.1', 'localhost')
  const to = (path) => encodeURIComponent(path)
  const moved = await throttle.fetch(`${base}/302?to=${to(`${other}/301?to=${to('/seen')}`)}`, {
    method: 'POST',
    body: 'body',
    headers: { authorization: 'secret', 'x-own': 'kept' },
  })
  const seen = await moved.json()
  const kept = await (
    await throttle.fetch(`${base}/307?to=${to('/seen')}`, { method: 'PUT', body: 'body' })
  ).json()
  const manual = await throttle.fetch(`${base}/302?to=/seen`, { redirect: 'manual' })
  await manual.body?.cancel()
  const { inFlight, waiting } = throttle.stats()
  const hosts = [...sends].map((host) => host.split(':')[0])
  return JSON.stringify([
    seen,
    kept,
    moved.redirected,
    moved.url.endsWith('/seen'),
    manual.status,
    hosts,
    inFlight,
    waiting,
  ])
}

/** The expected output. */
export const WANTED = JSON.stringify([
  { method: 'GET', body: '', own: 'kept' },
  { method: 'PUT', body: 'body' },
  true,
  true,
  302,
  ['127.0.0.1', 'localhost', 'localhost', '127.0.0.1', '127.0.0.1', '127.0.0.1'],
  0,
  0,
])
