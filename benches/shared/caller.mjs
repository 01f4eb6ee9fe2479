/**
 * One of the processes of the outages: asks for each scope of its options, a number at a time, until it is
 * killed. It says whether it decides, and what it was warned of.
 */
import { createThrottle } from 'autothrottle'
import { redis } from 'autothrottle/redis'
import { CLIENTS } from '../../tests/shared/clients.mjs'

const { client, port, url, options, atOnce, ...shared } = JSON.parse(process.argv[2])
process.on('disconnect', () => process.exit())
const throttle = createThrottle({ ...options, shared: redis(await CLIENTS[client](port), shared) })
process.send?.({ ready: true })
throttle.addEventListener('warning', ({ code }) => process.send?.({ warning: code }))
throttle.addEventListener('shared', ({ shared }) => process.send?.({ shared }))
for (const scope of Object.keys(options.scopes))
  for (let loop = 0; loop < atOnce; loop++)
    (async () => {
      for (;;) {
        const ask = () => fetch(`${url}${scope}`, { headers: { 'x-who': String(process.pid) } })
        const response = await throttle.run({ scopes: scope }, ask).catch(() => undefined)
        await response?.arrayBuffer().catch(() => {})
      }
    })()
