/** Scrapy's settings as options: every name, its unit, and what is not known. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ConfigError, createThrottle, fromScrapySettings, type ScrapySettings } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

test('every setting goes where it belongs, in milliseconds', () => {
  const options = fromScrapySettings({
    CONCURRENT_REQUESTS: 32,
    CONCURRENT_REQUESTS_PER_DOMAIN: 8,
    DOWNLOAD_DELAY: 0.3,
    DOWNLOAD_DELAY_PER_SLOT: 1.1,
    RANDOMIZE_DOWNLOAD_DELAY: 0.2,
    THROTTLING_SCOPES: {
      'api.example': {
        concurrency: 2,
        delay: 5,
        jitter: [-0.1, 0.3],
        rampup: true,
        quota: 500,
        window: 30,
        ignore_robots_txt: true,
        backoff: {
          http_codes: [429, 503],
          exceptions: ['builtins.IOError'],
          delay_factor: 1.2,
          max_delay: 180,
          min_delay: 5,
          jitter: [0.01, 0.33],
          concurrency_factor: 0.8,
          window: 20,
        },
      },
    },
    DOWNLOAD_SLOTS: {
      'quotes.toscrape.com': { concurrency: 1, delay: 2, randomize_delay: false, throttle: false },
    },
    BACKOFF_HTTP_CODES: ['429', 503],
    BACKOFF_EXCEPTIONS: ['twisted.internet.error.TCPTimedOutError', 'twisted.web.client.ResponseFailed'],
    BACKOFF_DELAY_FACTOR: 3,
    BACKOFF_MIN_DELAY: 2,
    BACKOFF_MAX_DELAY: 200,
    BACKOFF_WINDOW: 30,
    BACKOFF_JITTER: 0.1,
    BACKOFF_CONCURRENCY_FACTOR: 0.25,
    RAMPUP_BACKOFF_TARGET: [1, 3],
    THROTTLING_WINDOW: 10,
    ROBOTSTXT_OBEY: true,
    USER_AGENT: 'foobot/1.0',
    THROTTLING_ROBOTSTXT_MAX_DELAY: 30,
    DELAYED_REQUESTS_WARN_THRESHOLD: 100,
    AUTOTHROTTLE_ENABLED: true,
    AUTOTHROTTLE_START_DELAY: 2,
    AUTOTHROTTLE_MAX_DELAY: 30,
    AUTOTHROTTLE_TARGET_CONCURRENCY: 1.5,
    RETRY_TIMES: 4,
    RETRY_HTTP_CODES: [500, 503],
  })
  const throttle = createThrottle(options)
  assert.deepEqual(options as object, {
    maxInFlight: 32,
    defaults: {
      concurrency: 8,
      delay: 300,
      slotDelay: 1100,
      downAfter: 60_000,
      jitter: 0.2,
      window: 10_000,
      autothrottle: { startDelay: 2000, maxDelay: 30_000, targetConcurrency: 1.5 },
      backoff: {
        statusCodes: [429, 503],
        errors: ['timeout', 'connection'],
        factor: 3,
        minDelay: 2000,
        maxDelay: 200_000,
        maxHold: 200_000,
        window: 30_000,
        jitter: 0.1,
        concurrencyFactor: 0.25,
      },
    },
    scopes: {
      'quotes.toscrape.com': { concurrency: 1, delay: 2000, jitter: false, autothrottle: false },
      'api.example': {
        concurrency: 2,
        delay: 5000,
        jitter: [-0.1, 0.3],
        rampup: { backoffTarget: [1, 3] },
        quota: 500,
        window: 30_000,
        ignoreRobotsTxt: true,
        backoff: {
          statusCodes: [429, 503],
          errors: ['connection'],
          factor: 1.2,
          maxDelay: 180_000,
          maxHold: 180_000,
          minDelay: 5000,
          jitter: [0.01, 0.33],
          concurrencyFactor: 0.8,
          window: 20_000,
        },
      },
    },
    robots: { obey: true, userAgent: 'foobot/1.0', maxDelay: 30_000 },
    warnThreshold: 100,
    retry: { limit: 4, statusCodes: [500, 503] },
  })
  assert.equal(throttle.scope('quotes.toscrape.com').stats.delayMs, 2000)
  assert.equal(throttle.scope('other.example').stats.delayMs, 2000, "AutoThrottle's start delay")
})

/** The draft's defaults, where the engine's own are others. */
const draft = {
  backoff: { statusCodes: [429, 502, 503, 504, 520, 521, 522, 523, 524], maxHold: 300_000 },
  downAfter: 60_000,
}

const defaultsOf = (settings: ScrapySettings) => {
  const { backoff: _, downAfter: __, ...defaults } = fromScrapySettings(settings).defaults ?? {}
  return defaults
}

test('a setting that is left out has the default of the draft, and one that is off is off', () => {
  const defaults = draft
  assert.deepEqual(fromScrapySettings({}), { defaults })
  const off: ScrapySettings[] = [
    { AUTOTHROTTLE_START_DELAY: 1, AUTOTHROTTLE_ENABLED: false },
    { ROBOTSTXT_OBEY: true, THROTTLING_ROBOTSTXT_OBEY: false },
    { RETRY_ENABLED: false, RETRY_TIMES: 3 },
  ]
  for (const settings of off) assert.deepEqual(fromScrapySettings(settings), { defaults })
  assert.deepEqual(fromScrapySettings({ RETRY_ENABLED: true }), { defaults, retry: { limit: 2 } })
  const on = { ...defaults, autothrottle: true, delay: 0, slotDelay: 0, concurrency: 8 }
  assert.deepEqual(fromScrapySettings({ AUTOTHROTTLE_ENABLED: 'True' }), { defaults: on })
  const jitter = fromScrapySettings({ RANDOMIZE_DOWNLOAD_DELAY: true })
  assert.deepEqual(jitter, { defaults: { ...defaults, jitter: true } })
})

test("every name of Scrapy's in the table of settings is known here", () => {
  const page = readFileSync(new URL('../../docs/settings.md', import.meta.url), 'utf8')
  const table = page.slice(page.indexOf("## Scrapy's names"))
  const names = [...new Set(table.match(/\b[A-Z]+(?:_[A-Z]+)+\b/g))]
  assert.ok(names.length > 30, `${names.length} names`)
  const unknown = names.filter((name) => {
    try {
      fromScrapySettings({ [name]: 1 })
      return false
    } catch (error) {
      return /want a known setting/.test((error as Error).message)
    }
  })
  assert.deepEqual(unknown, [])
})

test('a slot rests for a second where the delay is shorter, as in the draft', () => {
  assert.deepEqual(defaultsOf({ DOWNLOAD_DELAY: 0.3 }), { delay: 300, slotDelay: 1000 })
  assert.deepEqual(defaultsOf({ DOWNLOAD_DELAY: 2 }), { delay: 2000 })
  const exact = { DOWNLOAD_DELAY: 0, DOWNLOAD_DELAY_PER_SLOT: 0 }
  assert.deepEqual(defaultsOf(exact), { delay: 0, slotDelay: 0 })
  const slots = fromScrapySettings({ DOWNLOAD_SLOTS: { a: { delay: 0.2 } } })
  const scopes = { a: { delay: 200, slotDelay: 0 } }
  assert.deepEqual(slots, { defaults: { ...draft, slotDelay: 1000 }, scopes })
})

test('a delay above the longest backoff raises that', () => {
  const throttle = createThrottle(fromScrapySettings({ DOWNLOAD_DELAY: 600 }))
  assert.equal(throttle.scope('a.example').stats.delayMs, 600_000)
})

test('DOWNLOAD_TIMEOUT counts from the send', () => {
  const options = fromScrapySettings({ DOWNLOAD_TIMEOUT: 180 })
  assert.deepEqual(options, { defaults: draft, requestTimeout: 180_000 })
  createThrottle(options)
})

// scrapy/core/downloader: a slot's delay is where it begins; scrapy/extensions/throttle.py: the least is
// DOWNLOAD_DELAY.
test('with AutoThrottle a slot only starts at its own delay', async () => {
  const clock = new FakeClock()
  const options = fromScrapySettings({
    AUTOTHROTTLE_ENABLED: true,
    DOWNLOAD_DELAY: 0.5,
    RANDOMIZE_DOWNLOAD_DELAY: false,
    DOWNLOAD_DELAY_PER_SLOT: 0,
    DOWNLOAD_SLOTS: { a: { delay: 3 }, b: { delay: 3, throttle: false } },
  })
  const throttle = createThrottle({ clock, ...options })
  const delays = ['a', 'b', 'other'].map((name) => throttle.scope(name).stats.delayMs)
  assert.deepEqual(delays, [3000, 3000, 5000])
  for (let count = 0; count < 20; count++) {
    for (const name of ['a', 'b']) {
      const run = throttle.run({ scopes: name }, async () => ({ status: 200, latency: 100 }))
      await clock.advance(4000)
      await run
    }
  }
  const learned = ['a', 'b'].map((name) => throttle.scope(name).stats.delayMs)
  assert.deepEqual(learned, [500, 3000], 'AutoThrottle goes down to DOWNLOAD_DELAY, not to the slot’s delay')
})

test('unknown names are errors with the nearest that is known, wrong values with what is wanted', () => {
  assert.throws(
    () =>
      fromScrapySettings({
        DOWNLOAD_DELEY: 1,
        DOWNLOAD_DELAY: 'soon',
        CONCURRENT_REQUESTS_PER_IPP: 4,
        THROTTLING_MANAGER: 'myproject.throttling.MyThrottlingManager',
        THROTTLING_SCOPE_MANAGER: {},
        BACKOFF_EXCEPTIONS: ['builtins.OSError', 'builtins.ValueError'],
        AUTOTHROTTLE_ENABLED: 'perhaps',
        THROTTLING_SCOPES: { a: { dellay: 1, delay: -1, backoff: { colour: 2 } }, b: 3 },
        __proto__: null,
        constructor: 1,
      }),
    (error: ConfigError) => {
      assert.ok(error instanceof ConfigError)
      assert.deepEqual(error.message.split('\n'), [
        'DOWNLOAD_DELEY: want a known setting (did you mean DOWNLOAD_DELAY?); got 1',
        'DOWNLOAD_DELAY: want a number; got "soon"',
        'CONCURRENT_REQUESTS_PER_IPP: want a known setting (did you mean CONCURRENT_REQUESTS_PER_IP?); got 4',
        'THROTTLING_MANAGER: want an object with getScopes, getResponseBackoff, getErrorBackoff, getResponseDelay; got "myproject.throttling.MyThrottlingManager"',
        'THROTTLING_SCOPE_MANAGER: want a function that makes a manager for each scope; got {}',
        'BACKOFF_EXCEPTIONS[1]: want an exception that is a timeout or a failed connection; got "builtins.ValueError"',
        'AUTOTHROTTLE_ENABLED: want True or False; got "perhaps"',
        'THROTTLING_SCOPES."a".dellay: want a known setting (did you mean delay?); got 1',
        'THROTTLING_SCOPES."a".delay: want seconds from 0; got -1',
        'THROTTLING_SCOPES."a".backoff.colour: want a known setting; got 2',
        'THROTTLING_SCOPES."b": want an object; got 3',
        'constructor: want a known setting; got 1',
      ])
      return true
    },
  )
  assert.throws(() => fromScrapySettings(null as never), ConfigError)
})

test('by address, redirects and managers', async () => {
  const options = fromScrapySettings({ CONCURRENT_REQUESTS_PER_IP: 4, REDIRECT_MAX_DELAY: 30 })
  assert.deepEqual(
    [options.defaults, options.redirects, options.redirectMaxDelay],
    [{ ...draft, concurrency: 4, delay: 1000, slotDelay: 1000 }, 'throttle', 30_000],
  )
  assert.match(
    String(await options.getScopes?.({ url: 'http://localhost/', method: 'GET', headers: new Headers() })),
    /^(?:127|::1)/,
  )
  assert.equal(fromScrapySettings({ CONCURRENT_REQUESTS_PER_IP: 0 }).getScopes, undefined)
  const getScopes = () => 'one'
  const manager = () => ({ delay: 5 })
  const managed = fromScrapySettings({
    THROTTLING_MANAGER: { getScopes },
    THROTTLING_SCOPE_MANAGER: manager,
    THROTTLING_SCOPES: { one: { manager } },
  })
  assert.deepEqual(managed, { getScopes, defaults: { ...draft, manager }, scopes: { one: { manager } } })
})

test('the file of scrapy startproject is taken as it is, and RETRY_HTTP_CODES alone retries', () => {
  const started = {
    BOT_NAME: 'quotes',
    SPIDER_MODULES: ['quotes.spiders'],
    NEWSPIDER_MODULE: 'quotes.spiders',
    ADDONS: {},
    ROBOTSTXT_OBEY: true,
    CONCURRENT_REQUESTS_PER_DOMAIN: 1,
    DOWNLOAD_DELAY: 1,
    FEED_EXPORT_ENCODING: 'utf-8',
  }
  const { BOT_NAME, SPIDER_MODULES, NEWSPIDER_MODULE, ADDONS, FEED_EXPORT_ENCODING, ...paced } = started
  assert.deepEqual(fromScrapySettings(started as ScrapySettings), fromScrapySettings(paced))
  assert.throws(() => fromScrapySettings({ BOT_NAMES: 'x' } as ScrapySettings), /BOT_NAMES: want a known/)
  // Scrapy retries twice unless RETRY_ENABLED or RETRY_TIMES says otherwise.
  const codes = { RETRY_HTTP_CODES: [500, 502] }
  assert.deepEqual(fromScrapySettings(codes).retry, { limit: 2, statusCodes: [500, 502] })
  assert.equal(fromScrapySettings({ ...codes, RETRY_ENABLED: false }).retry, undefined)
  assert.equal(fromScrapySettings({ ...codes, RETRY_TIMES: 0 }).retry, undefined)
})

interface Vector {
  name: string
  settings: ScrapySettings
  /** The engine's options, without what the draft has of backoff. */
  root?: object
  defaults?: { backoff?: unknown }
  scopes?: object
  driver?: { debug?: boolean; redirectMaxDelay?: number; robotsMaxDelay?: number }
  /** Or the places of what is wrong. */
  problems?: (string | number)[][]
}

const vectors: Vector[] = readFileSync(new URL('../vectors/scrapy.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line))

test('the vectors are all there', () => assert.equal(vectors.length, 53))

/** `THROTTLING_SCOPES."a".codes[1]`: names of scopes in quotation marks, places in a list in brackets. */
function placeOf([setting, ...keys]: (string | number)[]) {
  const isNamed = setting === 'THROTTLING_SCOPES' || setting === 'DOWNLOAD_SLOTS'
  const words = keys.map((key, index) =>
    typeof key === 'number' ? `[${key}]` : `.${isNamed && index === 0 ? JSON.stringify(key) : key}`,
  )
  return [setting, ...words].join('')
}

for (const { name, settings, root, defaults, scopes, driver, problems } of vectors)
  test(`as in Python: ${name}`, () => {
    if (problems) {
      const wrong = (error: ConfigError) => {
        assert.deepEqual(error.problems.map(({ path }) => path).sort(), problems.map(placeOf).sort())
        return true
      }
      assert.throws(() => fromScrapySettings(settings), wrong)
      return
    }
    const made = fromScrapySettings(settings)
    createThrottle(made)
    const { maxInFlight, warnThreshold, debug, redirectMaxDelay, robots } = made
    const given = (values: object) =>
      Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
    assert.deepEqual(made.defaults as object, { ...draft, ...defaults })
    assert.deepEqual(made.scopes ?? {}, scopes ?? {})
    assert.deepEqual(given({ maxInFlight, warnThreshold }), root ?? {})
    assert.deepEqual(given({ debug, redirectMaxDelay, robotsMaxDelay: robots?.maxDelay }), driver ?? {})
  })
