/**
 * How hosts are reached: a proxy, certificates of one's own, or any certificate.
 *
 * Node's own fetch goes past the proxy without a word. Node gives no way to set one for its `fetch`, so the
 * package undici does it. Users who need it install it beside this one.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { pathToFileURL } from 'node:url'
import { type Network, UsageError } from './settings.js'

type Fetch = typeof fetch

/** Of undici, what is needed. */
interface Undici {
  readonly fetch: Fetch
  readonly EnvHttpProxyAgent: new (options: object) => object
}

/** Hosts on this machine are never asked for through the environment's proxy. */
const HERE = 'localhost,127.0.0.1,[::1]'

/** A package that is installed beside this one: where the command was started, else where it is. */
export async function installed<T>(name: string, option: string, hint = ''): Promise<T> {
  const places = [join(process.cwd(), 'package.json'), import.meta.url].flatMap((from) => {
    try {
      return [createRequire(from).resolve(name)]
    } catch {
      return []
    }
  })
  const [place] = places
  if (place === undefined)
    throw new UsageError(`${option}: needs the package ${name}: npm install ${name}${hint}`)
  return (await import(pathToFileURL(place).href)) as T
}

/** The `fetch` that reaches hosts as was asked for; `undefined` is the usual one. */
export async function fetchOf(
  { proxy, ca, isInsecure }: Network,
  env = process.env,
): Promise<Fetch | undefined> {
  // Node and undici read it when they connect, and Node warns about it.
  if (isInsecure) env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  const word = (name: string) => env[name.toLowerCase()] || env[name] || ''
  const noProxy = word('NO_PROXY').trim()
  const isOff = proxy === undefined && noProxy === '*'
  const [http, https] = isOff ? ['', ''] : [proxy ?? word('HTTP_PROXY'), proxy ?? word('HTTPS_PROXY')]
  if (http === '' && https === '' && ca === undefined) return undefined
  const typed = proxy !== undefined ? '--proxy' : ca !== undefined ? '--ca' : undefined
  const option = typed ?? (https === '' ? 'HTTP_PROXY' : 'HTTPS_PROXY')
  const hint = typed === undefined ? ' (or go without the proxy: NO_PROXY=*)' : ''
  const { EnvHttpProxyAgent, fetch } = await installed<Undici>('undici', option, hint)
  const tls = ca === undefined ? {} : { ca: [...rootCertificates, ca] }
  const dispatcher = new EnvHttpProxyAgent({
    httpProxy: http,
    httpsProxy: https,
    noProxy: proxy !== undefined ? '' : [noProxy, HERE].filter(Boolean).join(','),
    connect: tls,
    requestTls: tls,
    proxyTls: tls,
  })
  return ((input: string, init?: RequestInit) =>
    fetch(input, { ...init, dispatcher } as RequestInit)) as Fetch
}
