/**
 * Eight processes behind one limit, with faults: `npm run test:shared`. nginx limits to 10 a second and
 * tells nobody; what was served and refused is read from its own log.
 *
 * `--way local|redis` (both, where `npm install --prefix tests/shared` was run and there is a redis-server),
 * `--only TEXT` the cases whose name contains it, `--seconds N` shortens them all: then bars mean little.
 * Everything takes about twelve minutes a way. It ends with 1 if a bar is missed.
 *
 * The trap is a bar for a busy machine: *one process alone* runs beside each case, against a zone of its own,
 * and is what it is compared with.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort, RedisServer, SERVERS } from '../../tests/shared/server.mjs'
import { countsOf, median } from './counts.mjs'

const COUNT = 8
const RATE = 10

function option(name, fallback) {
  const at = process.argv.indexOf(name)
  return at > 0 ? process.argv[at + 1] : fallback
}

const hasRedis = SERVERS.length > 0 && existsSync('tests/shared/node_modules/ioredis')
const ways = option('--way') ? [option('--way')] : ['local', ...(hasRedis ? ['redis'] : [])]
const only = option('--only', '')
const most = Number(option('--seconds', Number.POSITIVE_INFINITY))

/** What to do to whom, and when in seconds. */
const FAULTS = [
  [20, 'kill the writer'],
  [40, 'kill a member'],
  [60, 'stop the writer'],
  [85, 'restart the store'],
]

/** `bar` says what is asked for of the counts, beside those of one process alone. */
const CASES = [
  {
    name: '120 s, burst 20, second minute',
    ...{ seconds: 120, burst: 20, from: 60 },
    bar: ({ util, refusedPct }) => util >= 0.97 && refusedPct <= 0.5,
  },
  {
    name: '60 s cold, burst 20',
    ...{ seconds: 60, burst: 20 },
    bar: ({ util, refused }, alone) => util >= 0.95 && refused <= alone.refused + 3,
  },
  {
    name: '60 s cold, burst 0',
    ...{ seconds: 60, burst: 0 },
    bar: ({ util, refused }, alone) => util >= alone.util - 0.03 && refused <= alone.refused + 3,
  },
  {
    name: 'writer and member killed, writer stopped, store restarted',
    ...{ seconds: 110, burst: 20, faults: FAULTS },
    bar: ({ util, refusedPct, silence }) => util >= 0.95 && refusedPct <= 1 && silence <= 2.5,
  },
  {
    name: 'clocks an hour apart',
    ...{ seconds: 60, burst: 20, skew: 3_600_000 },
    bar: ({ util, refused }, alone) => util >= 0.95 && refused <= alone.refused + 3,
  },
  {
    name: 'shares, least ÷ most, burst 20',
    ...{ seconds: 60, burst: 20 },
    bar: ({ fair }) => fair >= 0.9,
  },
  {
    name: 'four slots, answers of 30 s, writer killed',
    ...{ seconds: 75, upstream: 30_000, slots: 4, faults: [[15, 'kill the writer']] },
    bar: ({ mostAtOnce }) => mostAtOnce <= 4,
  },
]

function worker(settings) {
  const file = fileURLToPath(new URL('worker.mjs', import.meta.url))
  const child = spawn(process.execPath, [file, JSON.stringify(settings)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  child.on('message', (message) => {
    if ('isWriter' in message) child.isWriter = message.isWriter
  })
  return child
}

async function nginx({ burst, slots }, upstream) {
  const folder = mkdtempSync(join(tmpdir(), 'autothrottle-shared-'))
  const ports = [await freePort(), await freePort()]
  const zone = (name) => `limit_req_zone $server_port zone=${name}:1m rate=${RATE}r/s;`
  const limit = (name) => `limit_req zone=${name}${burst > 0 ? ` burst=${burst} nodelay` : ''};`
  const server = (port, index) => `server { listen 127.0.0.1:${port};
    location / { ${slots ? '' : limit(`z${index}`)} proxy_pass http://127.0.0.1:${upstream};
      proxy_read_timeout 90s; proxy_http_version 1.1; proxy_set_header Connection ""; } }`
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; pid ${folder}/pid; error_log ${folder}/error.log crit; worker_processes 1;
events { worker_connections 1024; }
http {
  log_format plain '$server_port $status $msec $http_x_who';
  access_log ${folder}/access.log plain;
  client_body_temp_path ${folder}/a; proxy_temp_path ${folder}/b; fastcgi_temp_path ${folder}/c;
  uwsgi_temp_path ${folder}/d; scgi_temp_path ${folder}/e;
  limit_req_status 429;
  ${zone('z0')} ${zone('z1')}
  ${ports.map(server).join('\n')}
}`,
  )
  const child = spawn('nginx', ['-p', folder, '-c', file], { stdio: 'ignore' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  await sleep(400)
  const stop = async () => {
    child.kill()
    await ended
    const log = readFileSync(join(folder, 'access.log'), 'utf8')
    rmSync(folder, { recursive: true, force: true })
    return log
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
  }
  return { ports, stop }
}

async function play(what, way) {
  const seconds = Math.min(what.seconds, most)
  let [now, mostAtOnce] = [0, 0]
  const upstream = createServer((request, response) => {
    if (request.headers['x-who'] !== 'alone') mostAtOnce = Math.max(mostAtOnce, ++now)
    const timer = setTimeout(() => response.end('page'), what.upstream ?? 200)
    response.on('close', () => {
      clearTimeout(timer)
      if (request.headers['x-who'] !== 'alone') now--
    })
  })
  await new Promise((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  const server = await nginx({ burst: 0, ...what }, upstream.address().port)
  const store = way === 'redis' ? await new RedisServer(await freePort()).start() : undefined
  const name = `bench-${process.pid}-${Date.now()}`
  const slots = { delay: 0, slotDelay: 0, jitter: false, concurrency: what.slots }
  const options = { concurrency: 256, defaults: what.slots ? slots : { rampup: true } }
  const told = (port, who, index) => ({
    ...{ way, name, options, who, store: store?.port, skew: (index - COUNT / 2) * (what.skew ?? 0) },
    url: `http://127.0.0.1:${port}/`,
  })
  const all = Array.from({ length: COUNT }, (_, index) => worker(told(server.ports[0], `p${index}`, index)))
  const alone = worker({ ...told(server.ports[1], 'alone', 0), way: 'alone', loops: 4 * COUNT })
  for (const [at, fault] of what.faults ?? []) {
    if (at >= seconds) continue
    sleep(at * 1000).then(async () => {
      const living = all.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
      const writer = living.find(({ isWriter }) => isWriter) ?? living[0]
      if (fault === 'kill the writer') writer.kill('SIGKILL')
      if (fault === 'kill a member') living.find((child) => child !== writer)?.kill('SIGKILL')
      if (fault === 'stop the writer') {
        writer.kill('SIGSTOP')
        await sleep(5000)
        writer.kill('SIGCONT')
      }
      if (fault === 'restart the store' && store) {
        await store.kill()
        await store.start()
      }
    })
  }
  await sleep(seconds * 1000)
  for (const child of [...all, alone]) child.kill('SIGKILL')
  const lines = await server.stop()
  upstream.closeAllConnections()
  upstream.close()
  await store?.stop()
  const of = (port, from = 0) =>
    countsOf(
      lines.filter(([line]) => line === String(port)),
      { rate: RATE, seconds, from: Math.min(from, seconds / 2) },
    )
  const shared = { ...of(server.ports[0], what.from), mostAtOnce }
  return { shared, alone: of(server.ports[1], what.from) }
}

const isQuick = Number.isFinite(most)
let missed = 0
for (const way of ways)
  for (const what of CASES.filter(({ name }) => name.includes(only))) {
    const { shared, alone } = await play(what, way)
    const isMet = what.bar(shared, alone)
    if (!isMet) missed++
    console.log(`${isMet ? '✓' : '✗'} ${way}: ${what.name}`)
    console.log('   shared', JSON.stringify(shared))
    console.log('   alone ', JSON.stringify(alone))
  }
if (!only) console.log(`ask → grant over a socket: ${await median()}`)
process.exit(missed > 0 && !isQuick ? 1 : 0)
