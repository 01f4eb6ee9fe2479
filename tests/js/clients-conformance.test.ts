/** The clients that are small enough for the package's own tests: each passes `conformance.ts`. */
import http, { type IncomingMessage } from 'node:http'
import { after, before } from 'node:test'
import { Octokit } from '@octokit/core'
import { throttleAdapter } from 'autothrottle/axios'
import { throttleHandler } from 'autothrottle/got'
import { throttle as undiciThrottle } from 'autothrottle/undici'
import axios from 'axios'
import got from 'got'
import ky from 'ky'
import nodeFetch from 'node-fetch'
import { ofetch } from 'ofetch'
import OpenAI from 'openai'
import { Agent, interceptors, request } from 'undici'
import wretch from 'wretch'
import { retry as wretchRetry } from 'wretch/middlewares'
import { BLOCKS, type Client, conforms, isInTable, runs, Site } from './conformance.js'

const site = new Site()
before(() => site.listen())
after(() => site.close())

/** For clients that do not retry by themselves. */
const retry = (limit: number) => (limit > 0 ? { retry: { limit } } : {})
const statusOf = (error: unknown): number => {
  const { status, response } = error as {
    status?: number
    response?: { status?: number; statusCode?: number }
  }
  const found = response?.statusCode ?? response?.status ?? status
  if (found === undefined) throw error
  return found
}

const byFetch: Client['make'] =
  (throttle) =>
  async (url, signal = null as never) =>
    (await throttle.fetch(url, { signal })).status

const CLIENTS: Client[] = [
  {
    name: 'fetch',
    how: '`throttle.fetch`',
    retries: 'the throttle’s',
    redirects: 'each hop',
    options: (limit) => ({ ...retry(limit), redirects: 'throttle' }),
    make: byFetch,
  },
  {
    name: 'node-fetch',
    how: '`createThrottle({ fetch })`',
    retries: 'the throttle’s',
    redirects: 'each hop',
    options: (limit) => ({
      ...retry(limit),
      redirects: 'throttle',
      fetch: nodeFetch as unknown as typeof globalThis.fetch,
    }),
    make: byFetch,
  },
  {
    name: 'ky',
    how: '`ky.create({ fetch: throttle.fetch, timeout: false })`',
    retries: 'its own',
    redirects: 'each hop',
    options: () => ({ redirects: 'throttle' }),
    make: (throttle, limit) => {
      const client = ky.create({
        fetch: throttle.fetch,
        timeout: false,
        retry: { limit, delay: () => 1 },
      })
      return (url, signal) => client(url, signal ? { signal } : {}).then(({ status }) => status, statusOf)
    },
  },
  {
    name: 'ofetch',
    how: '`ofetch.create({}, { fetch: throttle.fetch })`',
    retries: 'its own',
    redirects: 'each hop',
    options: () => ({ redirects: 'throttle' }),
    make: (throttle, limit) => {
      const client = ofetch.create({ retry: limit, retryDelay: 1 }, { fetch: throttle.fetch })
      return (url, signal) => client.raw(url, signal ? { signal } : {}).then(({ status }) => status, statusOf)
    },
  },
  {
    name: 'wretch',
    how: '`wretch().polyfills({ fetch: throttle.fetch })`',
    retries: 'its own',
    redirects: 'each hop',
    options: () => ({ redirects: 'throttle' }),
    make: (throttle, maxAttempts) => {
      // With `maxAttempts: 0` it tries again without end.
      const retrying = maxAttempts > 0 ? [wretchRetry({ maxAttempts, delayTimer: 1 })] : []
      const client = wretch().polyfills({ fetch: throttle.fetch }).middlewares(retrying)
      return (url, signal) =>
        client
          .url(url)
          .options(signal ? { signal } : {})
          .get()
          .res(({ status }) => status)
          .catch(statusOf)
    },
  },
  {
    name: 'axios',
    how: '`autothrottle/axios`',
    retries: 'yours',
    redirects: 'each hop',
    make: (throttle, limit) => {
      const client = axios.create({ adapter: throttleAdapter(throttle, axios) })
      // As axios-retry does it: the same config once more.
      let left = limit
      client.interceptors.response.use(undefined, (error) => {
        if (left-- > 0 && error.response?.status === 503) return client.request(error.config)
        throw error
      })
      return (url, signal) => client.get(url, signal ? { signal } : {}).then(({ status }) => status, statusOf)
    },
  },
  {
    name: 'got',
    how: '`autothrottle/got`',
    retries: 'its own',
    redirects: 'each hop',
    make: (throttle, limit) => {
      const client = got.extend({
        handlers: [throttleHandler(throttle)],
        retry: { limit, backoffLimit: 1 },
      })
      return (url, signal) =>
        client(url, signal ? { signal } : {}).then(({ statusCode }) => statusCode, statusOf)
    },
  },
  {
    name: 'got, streams',
    how: '`autothrottle/got`',
    retries: 'its own',
    redirects: 'each hop',
    make: (throttle, limit) => {
      const client = got.extend({
        handlers: [throttleHandler(throttle)],
        retry: { limit, backoffLimit: 1 },
      })
      const read = (url: string, signal: AbortSignal | undefined, retryStream?: unknown) =>
        new Promise<number>((resolve, reject) => {
          const stream = (retryStream ?? client.stream(url, signal ? { signal } : {})) as ReturnType<
            typeof client.stream
          >
          stream.once('retry', (_count, _error, create) => read(url, signal, create()).then(resolve, reject))
          stream.once('error', reject)
          stream.on('end', () => resolve(stream.response!.statusCode)).resume()
        })
      return (url, signal) => read(url, signal).catch(statusOf)
    },
  },
  {
    name: 'undici',
    how: '`autothrottle/undici`',
    retries: 'its own',
    redirects: 'each hop',
    make: (throttle, maxRetries) => {
      const retrying = { maxRetries, minTimeout: 1, throwOnError: false }
      const agent = new Agent().compose(
        undiciThrottle(throttle),
        ...(maxRetries > 0 ? [interceptors.retry(retrying)] : []),
        interceptors.redirect({ maxRedirections: 5 }),
      )
      return async (url, signal) => {
        const { statusCode, body } = await request(url, { dispatcher: agent, ...(signal ? { signal } : {}) })
        await body.dump()
        return statusCode
      }
    },
  },
  {
    name: '`node:http`',
    how: '`throttle.run`',
    retries: 'yours',
    redirects: 'not followed',
    make: (throttle, limit) => {
      const get = (url: string, signal?: AbortSignal) =>
        throttle.run(
          url,
          () =>
            new Promise<IncomingMessage>((resolve, reject) => {
              const sent = http.get(url, signal ? { signal } : {}, (response) => {
                response.resume()
                resolve(response)
              })
              sent.on('error', reject)
            }),
          signal ? { signal } : {},
        )
      return async (url, signal) => {
        let { statusCode } = await get(url, signal)
        for (let left = limit; left > 0 && statusCode === 503; left--)
          ({ statusCode } = await get(url, signal))
        return statusCode
      }
    },
  },
  {
    name: 'Octokit',
    how: '`request: { fetch: throttle.fetch }`',
    retries: 'the throttle’s',
    redirects: 'each hop',
    options: (limit) => ({ ...retry(limit), redirects: 'throttle' }),
    make: (throttle) => async (url, signal) => {
      const log = { debug() {}, info() {}, warn() {}, error() {} }
      const client = new Octokit({ baseUrl: new URL(url).origin, log, request: { fetch: throttle.fetch } })
      const options = signal ? { request: { signal, fetch: throttle.fetch } } : {}
      return client.request(`GET ${new URL(url).pathname}`, options).then(
        ({ status }: { status: number }) => status,
        (error) => {
          // It says 500 where no server answered.
          if (error.response === undefined) throw error
          return statusOf(error)
        },
      )
    },
  },
  {
    name: 'openai',
    how: '`new OpenAI({ fetch: throttle.fetch })`',
    retries: 'its own',
    redirects: 'each hop',
    options: () => ({ redirects: 'throttle' }),
    make: (throttle, maxRetries) => async (url, signal) => {
      const { origin, pathname } = new URL(url)
      const client = new OpenAI({ apiKey: 'k', maxRetries, baseURL: origin, fetch: throttle.fetch })
      return client
        .get(pathname, signal ? { signal } : {})
        .asResponse()
        .then(({ status }) => status, statusOf)
    },
  },
]

/** The clients of tests/clients, which are installed apart. */
const APART = ['graphql-request', 'Apollo Client', 'AWS SDK', 'Crawlee', 'Playwright and Puppeteer']

for (const client of CLIENTS) conforms(client, site)
isInTable(CLIENTS)
runs(
  [...BLOCKS.keys()].filter((name) => !APART.includes(name)),
  site,
  (name) => import(name),
)
