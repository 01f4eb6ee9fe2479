/** The service worker, as pages see it: it keeps the site for a time without a network, and plays servers. */

export const base = () => globalThis.__base ?? import.meta.env.BASE_URL

/** The worker, once it answers for this page. */
export async function startWorker() {
  if (!('serviceWorker' in navigator)) throw new Error('this browser has no service workers here')
  await navigator.serviceWorker.register(`${base()}sw.js`, { scope: base() })
  await navigator.serviceWorker.ready
  if (navigator.serviceWorker.controller) return
  await new Promise((resolve) => {
    navigator.serviceWorker.addEventListener('controllerchange', resolve, { once: true })
  })
}

/** Once a page is there and idle: not for those who save data, nor where none may be had. */
export function keepSite() {
  if (!globalThis.isSecureContext || navigator.connection?.saveData) return
  const idle = globalThis.requestIdleCallback ?? ((work) => setTimeout(work, 500))
  const keep = () => navigator.serviceWorker.controller?.postMessage('keep')
  const start = () => idle(() => startWorker().then(keep, () => undefined))
  if (document.readyState === 'complete') start()
  else addEventListener('load', start, { once: true })
}
