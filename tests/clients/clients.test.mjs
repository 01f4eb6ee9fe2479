/**
 * The clients that are too large for the package's own dependencies: each passes the same conformance test.
 *
 * They are tried where they are installed (`npm install --prefix tests/clients`); in `npm run test:all` a
 * missing one is a failure. The browser is the system's Chromium.
 */
import { existsSync } from 'node:fs'
import { after, before } from 'node:test'
import { throttleHooks } from 'autothrottle/crawlee'
import { throttlePage } from 'autothrottle/playwright'
import { conforms, isInTable, runs, Site } from '../js/conformance.ts'
import { skipUnless } from '../required.mjs'

const isHere = existsSync(new URL('node_modules/graphql-request', import.meta.url))
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
)
const skipped = skipUnless(isHere, 'not installed: npm install --prefix tests/clients')
const noBrowser = skipped || skipUnless(CHROMIUM !== undefined, 'no Chromium')
const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync']

const site = new Site()
let library = {}
const browsers = {}
before(async () => {
  await site.listen()
  if (skipped) return
  process.env.CRAWLEE_STORAGE_DIR = `${process.env.TMPDIR ?? '/tmp'}/autothrottle-crawlee-${process.pid}`
  process.env.CRAWLEE_PURGE_ON_START = '0'
  process.env.CRAWLEE_LOG_LEVEL = 'OFF'
  const [request, apollo, s3, cheerio, crawleePlaywright, playwright, puppeteer] = await Promise.all([
    import('graphql-request'),
    import('@apollo/client'),
    import('@aws-sdk/client-s3'),
    import('@crawlee/cheerio'),
    import('@crawlee/playwright'),
    import('playwright-core'),
    import('puppeteer-core'),
  ])
  library = { ...request, apollo, s3, cheerio, crawleePlaywright, playwright, puppeteer }
  if (CHROMIUM === undefined) return
  browsers.playwright = await playwright.chromium.launch({ executablePath: CHROMIUM, args: ARGS })
  browsers.puppeteer = await puppeteer.launch({ executablePath: CHROMIUM, args: ARGS })
})
after(async () => {
  await browsers.playwright?.close()
  await browsers.puppeteer?.close()
  site.close()
})

const retry = (limit) => (limit > 0 ? { retry: { limit, methods: ['GET', 'POST'] } } : {})
const QUERY = '{ ok }'

/**
 * Requests through a crawler: one crawler each, since a crawler ends with its queue, and one queue each,
 * since crawlers of one process would otherwise take each other's requests.
 */
function crawl(makeCrawler, slack = 1) {
  return async (url, signal) => {
    let status
    let failure
    const id = `request-${++requests}`
    const crawler = makeCrawler({
      requestQueue: await library.cheerio.RequestQueue.open(id),
      requestHandler: ({ response }) => {
        status = typeof response.status === 'function' ? response.status() : response.statusCode
      },
      failedRequestHandler: ({ response }, error) => {
        const code = response?.statusCode ?? response?.status?.()
        // From 590 on it is Crawlee's own proxy that speaks.
        if (code === undefined || code >= 590) failure = error
        else status = code
      },
      // A crawler gives up by its timeouts: one of the navigation, and one over all (both, and ten seconds
      // more), which ends a wait. A page may take long to open, so the wait's is short and the other is not.
      ...(signal ? timeouts(url.endsWith('never') ? slack : 60) : {}),
    })
    await crawler.run([{ url, uniqueKey: id }])
    await crawler.teardown()
    if (failure) throw failure
    return status
  }
}

let requests = 0
const timeouts = (slack) => ({ navigationTimeoutSecs: 0.1, requestHandlerTimeoutSecs: slack - 10 })

/** Longer than a test's clock goes on while Crawlee's own timeout runs: a request put back comes again. */
const LONG = 100_000_000

const crawlerOptions = (retries) => ({
  maxRequestRetries: retries,
  useSessionPool: false,
  maxSessionRotations: 0,
  persistCookiesPerSession: false,
  statisticsOptions: { logIntervalSecs: 3600 },
})

const CLIENTS = [
  {
    name: 'graphql-request',
    how: '`new GraphQLClient(url, { fetch: throttle.fetch })`',
    retries: 'the throttle’s',
    redirects: 'each hop',
    options: (limit) => ({ ...retry(limit), redirects: 'throttle' }),
    make: (throttle) => (url, signal) =>
      new library.GraphQLClient(url, { fetch: throttle.fetch }).rawRequest({ query: QUERY, signal }).then(
        ({ status }) => status,
        (error) => {
          if (error.response === undefined) throw error
          return error.response.status
        },
      ),
  },
  {
    name: 'Apollo Client',
    how: '`new HttpLink({ uri, fetch: throttle.fetch })`',
    retries: 'the throttle’s',
    redirects: 'each hop',
    options: (limit) => ({ ...retry(limit), redirects: 'throttle' }),
    make: (throttle) => async (uri, signal) => {
      const { ApolloClient, gql, HttpLink, InMemoryCache } = library.apollo
      const link = new HttpLink({ uri, fetch: throttle.fetch })
      const client = new ApolloClient({ link, cache: new InMemoryCache() })
      const context = signal ? { fetchOptions: { signal } } : {}
      try {
        await client.query({ query: gql(QUERY), fetchPolicy: 'no-cache', context })
        return 200
      } catch (error) {
        if (error.statusCode === undefined) throw error
        return error.statusCode
      }
    },
  },
  {
    name: 'AWS SDK',
    how: 'a `requestHandler` around its own',
    retries: 'its own',
    redirects: 'not followed',
    make: (throttle, retries) => async (url, abortSignal) => {
      const { GetObjectCommand, S3Client } = library.s3
      const { origin, pathname } = new URL(url)
      const [, Bucket, Key] = pathname.split('/')
      const credentials = { accessKeyId: 'k', secretAccessKey: 's' }
      const place = { endpoint: origin, forcePathStyle: true, region: 'eu-west-1', credentials }
      const client = new S3Client({ ...place, maxAttempts: 1 + retries })
      const { requestHandler } = client.config
      client.config.requestHandler = {
        ...requestHandler,
        handle: async (request, options) => {
          const { protocol, hostname, port, path, method } = request
          const target = { url: `${protocol}//${hostname}:${port}${path}`, method }
          let answer
          await throttle.run(
            target,
            async () => {
              answer = await requestHandler.handle(request, options)
              return answer.response
            },
            { signal: options?.abortSignal },
          )
          return answer
        },
      }
      try {
        const answer = await client.send(new GetObjectCommand({ Bucket, Key }), { abortSignal })
        answer.Body?.destroy?.()
        return answer.$metadata.httpStatusCode
      } catch (error) {
        const status = error.$metadata?.httpStatusCode ?? error.$response?.statusCode
        if (status === undefined) throw error
        return status
      }
    },
  },
  {
    name: 'Crawlee, Cheerio',
    how: '`autothrottle/crawlee`',
    retries: 'its own',
    redirects: 'one permit',
    abort: 'timeout',
    make: (throttle, retries) =>
      crawl(
        (options) =>
          new library.cheerio.CheerioCrawler({
            ...crawlerOptions(retries),
            ...options,
            ...throttleHooks(throttle, { ...options, maxWait: LONG }),
            additionalMimeTypes: ['application/json'],
            additionalHttpErrorStatusCodes: [429],
          }),
      ),
  },
  {
    name: 'Crawlee, Playwright',
    how: '`autothrottle/crawlee`',
    retries: 'its own',
    redirects: 'one permit',
    abort: 'timeout',
    needs: 'browser',
    make: (throttle, retries) =>
      crawl(
        (options) =>
          new library.crawleePlaywright.PlaywrightCrawler({
            ...crawlerOptions(retries),
            ...options,
            ...throttleHooks(throttle, { ...options, maxWait: LONG }),
            launchContext: {
              launcher: library.playwright.chromium,
              launchOptions: { executablePath: CHROMIUM, args: ARGS, headless: true },
            },
            requestHandler: async (context) => {
              const status = context.response.status()
              if (status >= 400) throw new Error(`status ${status}`)
              return options.requestHandler(context)
            },
          }),
        // Opening a page takes some of it.
        8,
      ),
  },
  {
    name: 'Playwright',
    how: '`autothrottle/playwright`',
    retries: 'yours',
    redirects: 'one permit',
    abort: 'page closed',
    needs: 'browser',
    make: (throttle, retries) => async (url, signal) => {
      const page = await browsers.playwright.newPage()
      signal?.addEventListener('abort', () => page.close())
      await throttlePage(page, throttle)
      return visit(page, url, retries)
    },
  },
  {
    name: 'Puppeteer',
    how: '`autothrottle/playwright`',
    retries: 'yours',
    redirects: 'each hop',
    abort: 'page closed',
    needs: 'browser',
    make: (throttle, retries) => async (url, signal) => {
      const page = await browsers.puppeteer.newPage()
      signal?.addEventListener('abort', () => page.close())
      await throttlePage(page, throttle)
      return visit(page, url, retries)
    },
  },
]

/** As a program would that tries again by itself. */
async function visit(page, url, retries) {
  try {
    let response = await page.goto(url, { timeout: 0 })
    for (let left = retries; left > 0 && response.status() === 503; left--)
      response = await page.goto(url, { timeout: 0 })
    return response.status()
  } finally {
    await page.close().catch(() => {})
  }
}

for (const client of CLIENTS) conforms(client, site, client.needs === 'browser' ? noBrowser : skipped)
isInTable(CLIENTS)
const load = (name) => import(name)
runs(['graphql-request', 'Apollo Client', 'AWS SDK', 'Crawlee'], site, load, skipped)
runs(['Playwright and Puppeteer'], site, load, noBrowser)
