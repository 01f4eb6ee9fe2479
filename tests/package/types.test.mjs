/**
 * The packed declarations in the compilers that people have: every file of them is checked (`skipLibCheck:
 * false`), with the DOM's types, with Node's, with Cloudflare's, and with none at all; in every way in which
 * TypeScript finds a package.
 *
 * A declaration that names `Request` or `Symbol.dispose` compiles where some library declares them, and not
 * everywhere.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isAll, skipUnless } from '../required.mjs'
import { packed } from './install.mjs'
import { ENTRIES } from './sizes.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { scratch, remove } = packed()
after(remove)
const runtimes = join(root, 'tests/runtimes/node_modules')
/** `npm run test:all` leaves them to `npm run test:nightly`. */
const OLDER = {
  'TypeScript 5.2': join(runtimes, 'typescript52'),
  'TypeScript 5.9': join(runtimes, 'typescript59'),
}
const COMPILERS = {
  'this TypeScript': join(root, 'node_modules/typescript'),
  'TypeScript 6': join(runtimes, 'typescript6'),
  ...(!isAll && OLDER),
}
const WAYS = {
  nodenext: { module: 'nodenext', moduleResolution: 'nodenext' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
  node10: { module: 'commonjs', moduleResolution: 'node10' },
}

/** Entries whose types name the platform's. */
const WITH_PLATFORM = ['llm', 'opentelemetry', 'durable-object']
const imports = ENTRIES.filter((name) => !WITH_PLATFORM.includes(name)).map(
  (name, place) =>
    `import * as entry${place} from '${name === 'index' ? 'autothrottle' : `autothrottle/${name}`}'`,
)

/** No type of the platform's is needed here. */
const PLAIN = `
${imports.join('\n')}
export const all = [${imports.map((_, place) => `entry${place}`).join(', ')}]
import { createThrottle, build, ConfigError, WasmBlockedError } from 'autothrottle'
import type { Permit, ThrottleOptions } from 'autothrottle'
import { Engine, parseHints } from 'autothrottle/engine'
import { rules } from 'autothrottle/robots'
import { byRegistrableDomain } from 'autothrottle/domains'
import { simulate } from 'autothrottle/simulate'
import { FakeClock } from 'autothrottle/testing'
import { throttle as undici } from 'autothrottle/undici'
import { throttleAdapter, type ClientRequestOptions } from 'autothrottle/axios'
import { local } from 'autothrottle/local'
import { redis } from 'autothrottle/redis'
import { presets } from 'autothrottle/presets'
import { throttlePage, type PageLike } from 'autothrottle/playwright'
const robots = { userAgent: 'x', rules }
const options: ThrottleOptions = { clock: new FakeClock(), robots, getScopes: byRegistrableDomain }
export const throttle = createThrottle(options)
const sent = async (permit: Permit) => permit.sentAt
export const ran: Promise<number> = throttle.run('https://a.example/', sent)
export const status: Promise<number> = throttle.fetch('https://a.example/').then(({ status }) => status)
throttle.addEventListener('settle', (event) => event.status satisfies number | undefined)
throttle.addEventListener('stall', (event) => event.type satisfies string)
export const asked: number | null = parseHints({ 'Retry-After': '1' }).delayMs
export const engine = new Engine()
export const code: 'ERR_WASM_BLOCKED' = new WasmBlockedError().code
export const made = [simulate, redis, local, undici({}), build.version, ConfigError]
export const known = createThrottle({ scopes: presets('crates.io') })
export const said: ClientRequestOptions = { priority: 1 }
export const adapter = throttleAdapter
export const page = (page: PageLike) => throttlePage(page, throttle, { resourceTypes: ['document'] })
// @ts-expect-error: no kind has this name
void ((page: PageLike) => throttlePage(page, throttle, { resourceTypes: ['documents'] }))
// @ts-expect-error: a number cannot be fetched
void throttle.fetch(7)
// @ts-expect-error: unknown options are an error to the compiler too
createThrottle({ concurency: 1 })
`
/** Where the platform has types, they are the ones. */
const WITH_FETCH = `import { instrument } from 'autothrottle/opentelemetry'
import { llmFetch, llmMiddleware, type LlmOptions } from 'autothrottle/llm'
${PLAIN}
// The types of OpenTelemetry need a console.
export const stop: () => void = instrument(throttle, { meter: false })
const llmOptions: LlmOptions = { limits: { '*': { rpm: 60, tpm: 30_000 } } }
export const llm: typeof fetch = llmFetch(throttle, llmOptions).client.fetch
export const middleware = [llmMiddleware(throttle)]
const { signal } = new AbortController()
const request = new Request('https://a.example/')
export const response: Promise<Response> = throttle.fetch(request, { method: 'POST', signal })
export const url: Promise<Response> = throttle.fetch(new URL('https://a.example/'))
createThrottle({ fetch, getResponseDelay: (response) => Number((response satisfies Response).headers.get('x')) })
export const fetching: typeof fetch = throttle.fetch
// @ts-expect-error: a method is a string
void throttle.fetch('https://a.example/', { method: 7 })
`
const PLATFORMS = {
  none: { lib: ['es2022'], types: [], program: PLAIN },
  DOM: { lib: ['es2022', 'dom', 'dom.iterable'], types: [], program: WITH_FETCH },
  Node: { lib: ['es2022'], types: ['node'], program: WITH_FETCH },
  Workers: { lib: ['es2022'], types: ['@cloudflare/workers-types'], program: WITH_FETCH },
}
const scopes = { '@types': join(root, 'node_modules/@types'), '@cloudflare': join(runtimes, '@cloudflare') }
for (const [name, target] of Object.entries({
  ...scopes,
  'undici-types': join(root, 'node_modules/undici-types'),
  '@opentelemetry': join(root, 'node_modules/@opentelemetry'),
}))
  if (existsSync(target)) symlinkSync(target, join(scratch, 'node_modules', name))

/** Options of ky and axios have ours, also beside another version's generics. */
const CLIENTS = `
import axios from 'axios'
import ky from 'ky'
import { createThrottle } from 'autothrottle'
import { throttleAdapter } from 'autothrottle/axios'
const throttle = createThrottle()
const client = ky.create({ fetch: throttle.fetch })
void client('https://a.example/', { throttle: { priority: 1 } })
// @ts-expect-error: misspelt
void client('https://a.example/', { throttle: { prority: 1 } })
const other = axios.create({ adapter: throttleAdapter(throttle, axios) })
void other.get('https://a.example/', { throttle: { priority: 1, maxWait: 1000 } })
// @ts-expect-error: misspelt
void other.get('https://a.example/', { throttle: { prority: 1 } })
`
test('throttle is among the options of ky and axios', () => {
  const links = ['axios', 'ky'].map((name) => join(scratch, 'node_modules', name))
  for (const link of links) symlinkSync(join(root, 'node_modules', basename(link)), link)
  const lib = ['es2022', 'dom', 'dom.iterable']
  for (const way of ['nodenext', 'bundler']) {
    const rules = { noEmit: true, strict: true, target: 'es2022', lib, types: [], skipLibCheck: false }
    const options = { ...rules, ...WAYS[way], preserveSymlinks: true }
    writeFileSync(join(scratch, 'program.ts'), CLIENTS)
    writeFileSync(
      join(scratch, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: options, files: ['program.ts'] }),
    )
    const bin = join(root, 'node_modules/typescript/bin/tsc')
    const { stdout } = spawnSync(process.execPath, [bin], { cwd: scratch, encoding: 'utf8' })
    assert.equal(stdout, '', way)
  }
  for (const link of links) rmSync(link)
})

for (const [compiler, folder] of Object.entries(COMPILERS)) {
  const isThere = existsSync(folder)
  const isNative = compiler === 'this TypeScript'
  for (const [platform, { lib, types, program }] of Object.entries(PLATFORMS)) {
    // The older compilers take ten seconds for each of the large libraries: one of them is enough.
    if (!isNative && !['none', 'DOM'].includes(platform)) continue
    const isKnown = platform !== 'Workers' || existsSync(scopes['@cloudflare'])
    const skip = skipUnless(isThere && isKnown, 'not installed: npm install --prefix tests/runtimes')
    test(`${compiler}, types of the platform: ${platform}`, { skip }, () => {
      assert.ok(isThere && isKnown, `${compiler}, ${platform}: npm install --prefix tests/runtimes`)
      for (const [way, found] of Object.entries(WAYS)) {
        const isGone = isNative && way === 'node10'
        const isSeen = platform !== 'none' && way !== 'nodenext'
        if (isGone || isSeen) continue
        const old = way === 'node10' && compiler === 'TypeScript 6' ? { ignoreDeprecations: '6.0' } : {}
        const compilerOptions = {
          ...{ noEmit: true, strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
          ...{ target: 'es2022', lib, types, ...found, ...old },
        }
        writeFileSync(join(scratch, 'program.ts'), program)
        writeFileSync(
          join(scratch, 'tsconfig.json'),
          JSON.stringify({ compilerOptions, files: ['program.ts'] }),
        )
        const tsc = spawnSync(process.execPath, [join(folder, 'bin/tsc')], { cwd: scratch, encoding: 'utf8' })
        assert.equal(tsc.stdout, '', `${way}\n${tsc.stdout}`)
        assert.equal(tsc.status, 0, `${way}: ${tsc.stderr}`)
      }
    })
  }
}
