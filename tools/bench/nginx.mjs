/**
 * Real servers that limit and do not say so: `npm run bench:nginx` (needs nginx; HAProxy too, or its lines
 * are left out).
 *
 * Rampup, which does not know the limit, beside clients that do: p-queue in two ways (a number per second;
 * one per gap) and a fixed delay. All of them run at once, each in a process of its own and against a zone of
 * its own. A busy machine is then as bad for one as for the other. The server's own log counts the requests
 * that were served and refused; *settled* leaves out the first ten seconds.
 *
 * `--only NAME` runs the set-ups whose name contains it, and `--seconds N` (60) makes it shorter. `--status
 * 503` is what limit_req refuses with (429), and with `--delayed` it queues what is within the burst. With
 * `--gaps 1,1.2,2` fixed delays of this many gaps of the limit run in place of the clients that know it: what
 * a constant rate could do.
 *
 * `--share 4` plays strangers instead. Four processes with rampup share one zone of 20 a second. It refuses
 * with 429, 503 or 403 and has a burst of 0 or 20. The table is of the second half of `--seconds` (1200):
 * Jain's index of their shares, the least share, and how much was served and refused.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listen } from '../../tests/serve.mjs'
import { freePorts, has, limitConn, limitReq, listening, startNginx } from './nginx-server.mjs'

function option(name, fallback) {
  const at = process.argv.indexOf(name)
  return at > 0 ? process.argv[at + 1] : fallback
}

const SECONDS = Number(option('--seconds', 60))
const START = 10
const STATUS = Number(option('--status', 429))

const PLAIN = { slotDelay: 0, jitter: false, backoff: false }

/** A delay of this many gaps of a rate. */
const fixed = (gaps, rate) => ({
  throttle: { maxInFlight: 256, defaults: { ...PLAIN, delay: (1000 * gaps) / rate, concurrency: 256 } },
})

/** Each client's knowledge of the limit: `rate` per second, or `slots` at a time. */
const TOLD = {
  'p-queue, per second': ({ rate, slots }) => ({
    queue: slots === undefined ? { intervalCap: rate, interval: 1000 } : { concurrency: slots },
  }),
  'p-queue, per gap': ({ rate, slots }) =>
    slots === undefined ? { queue: { intervalCap: 1, interval: 1000 / rate } } : undefined,
  'fixed delay': ({ rate, slots }) =>
    slots === undefined
      ? fixed(1, rate)
      : { throttle: { defaults: { ...PLAIN, delay: 0, concurrency: slots } } },
}
const gaps = option('--gaps')?.split(',').map(Number)
const ofGap = (gap) => [
  `a request each ${gap} gaps`,
  ({ rate }) => (rate === undefined ? undefined : fixed(gap, rate)),
]
const CLIENTS = {
  rampup: () => ({ throttle: { defaults: { rampup: true } } }),
  ...(gaps === undefined ? TOLD : Object.fromEntries(gaps.map(ofGap))),
}

const req = (rate, burst, upstream) => ({
  name: `limit_req ${rate}/s, burst ${burst}, upstream ${upstream} ms`,
  program: 'nginx',
  rate,
  limit: rate,
  upstream,
  directives: limitReq(rate, burst, STATUS, process.argv.includes('--delayed')),
})
const SETUPS = [
  req(10, 0, 200),
  req(10, 20, 200),
  req(10, 0, 5),
  req(10, 20, 1000),
  req(7, 0, 200),
  req(133, 0, 200),
  req(500, 0, 5),
  {
    name: 'limit_conn 2, upstream 200 ms',
    program: 'nginx',
    slots: 2,
    limit: 10,
    upstream: 200,
    directives: limitConn(2),
  },
  { name: 'HAProxy, 100 per 10 s, upstream 200 ms', program: 'haproxy', rate: 10, limit: 10, upstream: 200 },
]

async function work({ url, seconds, throttle, queue, who }) {
  const headers = who === undefined ? {} : { 'x-who': String(who) }
  let send
  if (throttle !== undefined) {
    const { createThrottle } = await import('autothrottle')
    const made = createThrottle(throttle)
    send = (target) => made.fetch(target, { headers })
  } else {
    const { default: PQueue } = await import('p-queue')
    const made = new PQueue(queue)
    send = (target) => made.add(() => fetch(target))
  }
  const end = performance.now() + seconds * 1000
  const one = async () => {
    while (performance.now() < end) {
      const response = await send(url)
      await response.arrayBuffer()
    }
  }
  for (let index = 0; index < 256; index++) one().catch(() => {})
  setTimeout(() => process.exit(0), seconds * 1000)
}

/** HAProxy, which counts the requests of the last ten seconds, as `startNginx` does it. */
async function startHaproxy(upstream, count) {
  const folder = mkdtempSync(join(tmpdir(), 'autothrottle-haproxy-'))
  const ports = await freePorts(count)
  const fronts = ports.map(
    (port, index) => `frontend f${index}
  bind 127.0.0.1:${port}
  stick-table type integer size 10 expire 60s store http_req_rate(10s)
  http-request deny deny_status 429 if { int(1),table_http_req_rate(f${index}) ge 100 }
  http-request track-sc0 int(1)
  default_backend b`,
  )
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(
    file,
    `global
  log stdout format raw local0
  maxconn 4096
defaults
  mode http
  log global
  log-format "%fp %ST %Ts.%ms"
  timeout connect 5s
  timeout client 60s
  timeout server 60s
${fronts.join('\n')}
backend b
  server s 127.0.0.1:${upstream}
`,
  )
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  child.stdout.on('data', (data) => {
    text += data
  })
  return { ports, stop: await listening(child, folder, () => text) }
}

async function measure({ name: setupName, program, limit, upstream: ms, directives, ...told }) {
  const upstream = await listen((_, response) => setTimeout(() => response.end('page'), ms))
  const clients = Object.entries(CLIENTS)
    .map(([name, optionsFor]) => ({ name, options: optionsFor(told) }))
    .filter(({ options }) => options !== undefined)
  const { port } = upstream
  const { ports, stop } =
    program === 'nginx'
      ? await startNginx(directives, port, clients.length)
      : await startHaproxy(port, clients.length)
  await Promise.all(
    clients.map(({ options }, index) =>
      begin({ url: `http://127.0.0.1:${ports[index]}/`, seconds: SECONDS + 1, ...options }),
    ),
  )
  const settled = SECONDS > 2 * START ? START : 0
  const lines = (await stop()).map((words) => words.map(Number))
  clients.forEach(({ name }, index) => {
    const mine = lines.filter(([port]) => port === ports[index])
    // From its first request on: processes take their time to start.
    const start = Math.min(...mine.map(([, , at]) => at))
    const span = SECONDS - settled - 2
    const late = mine.filter(([, , at]) => at >= start + settled && at < start + settled + span)
    const served = late.filter(([, status]) => status === 200).length
    const isRefused = ([, status]) => status === STATUS || status === 429
    const refused = late.filter(isRefused).length
    const all = mine.filter(isRefused).length
    const utilisation = served / (limit * span)
    const share = (100 * refused) / Math.max(1, served + refused)
    const perMinute = (refused / span) * 60
    console.log(
      `| ${setupName} | ${name} | ${utilisation.toFixed(3)} | ${share.toFixed(2)} % | ${perMinute.toFixed(1)} | ${all} |`,
    )
  })
  upstream.stop()
}

/** A process that sends, until it ends. */
function begin(job) {
  const me = fileURLToPath(import.meta.url)
  const worker = spawn(process.execPath, [me, '--work', JSON.stringify(job)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return new Promise((resolve) => worker.on('exit', resolve))
}

/** Strangers at one zone; gives a line of the table. */
async function share(count, seconds, status, burst) {
  const rate = 20
  const upstream = await listen((_, response) => setTimeout(() => response.end('page'), 50))
  const { ports, stop } = await startNginx(limitReq(rate, burst, status), upstream.port, 1)
  const job = { url: `http://127.0.0.1:${ports[0]}/`, seconds, ...CLIENTS.rampup() }
  await Promise.all(Array.from({ length: count }, (_, who) => begin({ ...job, who })))
  const lines = (await stop()).map((words) => words.map(Number))
  upstream.stop()
  const half = Math.min(...lines.map(([, , at]) => at)) + seconds / 2
  const late = lines.filter(([, , at]) => at >= half && at < half + seconds / 2 - 2)
  const served = Array.from(
    { length: count },
    (_, who) => late.filter(([, code, , by]) => code === 200 && by === who).length,
  )
  const sum = served.reduce((a, b) => a + b, 0)
  const jain = sum ** 2 / (count * served.reduce((a, b) => a + b * b, 0))
  const refused = (100 * late.filter(([, code]) => code !== 200).length) / late.length
  const utilisation = sum / (rate * (seconds / 2 - 2))
  const least = (Math.min(...served) * count) / sum
  return `| ${status}, burst ${burst} | ${jain.toFixed(2)} | ${least.toFixed(2)} | ${utilisation.toFixed(3)} | ${refused.toFixed(2)} % |`
}

const job = option('--work')
const strangers = Number(option('--share', 0))
if (job !== undefined) {
  await work(JSON.parse(job))
} else {
  if (!has('nginx')) {
    console.error("nginx is not installed (Debian's nginx-light will do)")
    process.exit(1)
  }
  if (strangers > 0) {
    console.log('| refused with | Jain | least share, of an even one | served of the limit | refused |')
    console.log('|---|---|---|---|---|')
    const seconds = Number(option('--seconds', 1200))
    const kinds = [429, 503, 403].flatMap((status) => [0, 20].map((burst) => [status, burst]))
    const lines = await Promise.all(kinds.map((kind) => share(strangers, seconds, ...kind)))
    for (const line of lines) console.log(line)
    process.exit(0)
  }
  console.log(
    '| server | client | utilisation, settled | share refused, settled | refusals a minute | refused in all |',
  )
  console.log('|---|---|---|---|---|---|')
  for (const setup of SETUPS.filter(({ name }) => name.includes(option('--only', '')))) {
    if (has(setup.program)) await measure(setup)
  }
}
