/**
 * A real nginx that allows so many requests per second and says nothing about it: `npm run bench:nginx`
 * (needs nginx).
 *
 * `limit_req` 10 r/s (for rampup also 7 and 133), burst 0 and 20 without delay, 429 without headers, before
 * an upstream that takes 200 ms; 60 s each, from cold. Utilisation is what was accepted ÷ what the limit
 * allows. `--seconds N` makes it shorter, `--policy rampup` leaves the others out.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { load } from './load.mjs'

const at = process.argv.indexOf('--seconds')
const SECONDS = at > 0 ? Number(process.argv[at + 1]) : 60

const only = process.argv.indexOf('--policy')
const ONLY = only > 0 ? process.argv[only + 1] : undefined

if (spawnSync('nginx', ['-v']).error) {
  console.error("nginx is not installed (Debian's nginx-light will do)")
  process.exit(1)
}

function upstream() {
  const server = createServer((_, response) => setTimeout(() => response.end('page'), 200))
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

async function withNginx(rate, burst, upstreamPort, work) {
  const folder = mkdtempSync(join(tmpdir(), 'autothrottle-nginx-'))
  const port = await freePort()
  const limit = burst === 0 ? 'limit_req zone=z;' : `limit_req zone=z burst=${burst} nodelay;`
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid ${folder}/pid; error_log ${folder}/error.log crit; worker_processes 1;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path ${folder}/a; proxy_temp_path ${folder}/b; fastcgi_temp_path ${folder}/c;
  uwsgi_temp_path ${folder}/d; scgi_temp_path ${folder}/e;
  limit_req_zone $server_name zone=z:1m rate=${rate}r/s;
  limit_req_status 429;
  server {
    listen 127.0.0.1:${port};
    server_name x;
    location / { ${limit} proxy_pass http://127.0.0.1:${upstreamPort}; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}`,
  )
  const nginx = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'inherit' })
  const ended = new Promise((resolve) => nginx.on('exit', resolve))
  await new Promise((resolve) => setTimeout(resolve, 500))
  try {
    return await work(`http://127.0.0.1:${port}/`)
  } finally {
    nginx.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true })
  }
}

const free = { delay: 0, slotDelay: 0, concurrency: 16, jitter: false }
const policies = (rate) => ({
  rampup: { defaults: { rampup: true } },
  'backoff alone, delay 0': { defaults: free },
  'AutoThrottle, target 8': {
    defaults: { ...free, backoff: false, autothrottle: { targetConcurrency: 8, startDelay: 1000 } },
  },
  'fixed delay, told the limit': { defaults: { ...free, backoff: false, delay: 1000 / rate } },
})

/** What Scrapy did on the same set-up, as the issue has it. */
const SCRAPY = {
  0: ['AutoThrottle 0.64 (51 % refused), fixed delay told the limit 0.89 (9.5 %)'],
  20: ['AutoThrottle 0.85 (34 % refused)'],
}

const server = await upstream()
async function measure(rate, burst, name, options) {
  const run = (url) => load({ concurrency: 32, ...options }, url, SECONDS)
  const { ok, refused } = await withNginx(rate, burst, server.address().port, run)
  const share = ((100 * refused) / (ok + refused)).toFixed(1)
  const cells = [String(ok).padStart(8), String(refused).padStart(8), share.padStart(10)]
  const utilisation = (ok / (rate * SECONDS)).toFixed(3).padStart(12)
  console.log(
    `${String(rate).padStart(4)} ${String(burst).padStart(5)}  ${name.padEnd(28)} ${cells.join(' ')} ${utilisation}`,
  )
}

console.log('rate burst  policy                             ok  refused  refused %  utilisation')
for (const burst of [0, 20]) {
  for (const [name, options] of Object.entries(policies(10))) {
    if (!ONLY || name === ONLY) await measure(10, burst, name, options)
  }
  console.log(`            Scrapy: ${SCRAPY[burst]}`)
}
for (const rate of [7, 133]) {
  for (const burst of [0, 20]) await measure(rate, burst, 'rampup', policies(rate).rampup)
}
server.closeAllConnections()
server.close()
