/**
 * The command on 100,000 URLs of 1,000 hosts: how long it takes and how much memory, sampled while it goes
 * on. `npm run bench:command`, or with other numbers: `node benches/command.mjs 100000 1000`.
 *
 * Honest means: a server in a process of its own, so that its memory is not ours; hosts are addresses of
 * 127.0.0.0/8, each with its own connections; the memory is what the system counts (RSS), its peak with it;
 * bodies and the index are written, and the state is kept. The server refuses what comes faster than 20 a
 * second to a host, so the pace matters.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const self = fileURLToPath(import.meta.url)
const [, , first = '100000', second = '1000'] = process.argv

if (first === 'serve') serve()
else await bench(Number(first), Number(second))

function serve() {
  const seen = new Map()
  let refused = 0
  const server = createServer((request, response) => {
    const { host } = request.headers
    const now = Date.now()
    const bucket = seen.get(host) ?? { left: 20, at: now }
    bucket.left = Math.min(20, bucket.left + (now - bucket.at) / 50)
    bucket.at = now
    seen.set(host, bucket)
    if (bucket.left < 1) {
      refused++
      response.writeHead(429, { 'retry-after': '1' }).end()
      return
    }
    bucket.left--
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<p>${request.url}</p>${'x'.repeat(2000)}`)
  })
  server.listen(0, '0.0.0.0', () => process.send({ port: server.address().port }))
  process.on('message', () => process.send({ hosts: seen.size, refused }))
}

async function bench(urls, hosts) {
  const folder = mkdtempSync(join(tmpdir(), 'autothrottle-bench-'))
  const server = spawn(process.execPath, [self, 'serve'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const { port } = await new Promise((resolve) => server.once('message', resolve))
  const lines = []
  for (let index = 0; index < urls; index++) {
    const host = index % hosts
    lines.push(`http://127.0.${1 + (host >> 8)}.${host & 255}:${port}/page/${index}`)
  }
  writeFileSync(join(folder, 'list.txt'), lines.join('\n'))
  const bin = fileURLToPath(new URL('../dist/bin.js', import.meta.url))
  const usual = ['--out', join(folder, 'out'), '--state', join(folder, 'state'), '--ignore-robots', '--json']
  const pace = ['--rate', '15', '--total', '128']
  const args = ['get', join(folder, 'list.txt'), ...usual, ...pace]
  const start = performance.now()
  const child = spawn(process.execPath, [bin, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (part) => {
    said = (said + part).slice(-4000)
  })
  const rss = () => {
    const file = `/proc/${child.pid}/status`
    const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
    return {
      now: Number(/VmRSS:\s+(\d+)/.exec(text)?.[1]) / 1024,
      peak: Number(/VmHWM:\s+(\d+)/.exec(text)?.[1]) / 1024,
    }
  }
  console.log(`${urls} URLs of ${hosts} hosts\n  seconds     done   RSS MB  peak MB`)
  let peak = 0
  const show = () => {
    const { now, peak: most } = rss()
    if (!(most > 0)) return
    peak = most
    const done = /"pages":(\d+)[^\n]*\n?$/.exec(said.trimEnd().split('\n').at(-1) ?? '')?.[1] ?? '0'
    const row = [((performance.now() - start) / 1000).toFixed(0), done, now.toFixed(0), most.toFixed(0)]
    console.log(row.map((each) => each.padStart(8)).join(' '))
  }
  const timer = setInterval(show, 5000)
  const exact = setInterval(() => {
    peak = Math.max(peak, rss().peak || 0)
  }, 200)
  const code = await new Promise((resolve) => child.on('close', resolve))
  clearInterval(timer)
  clearInterval(exact)
  const seconds = (performance.now() - start) / 1000
  const { summary } = JSON.parse(said.trim().split('\n').at(-1))
  const index = readFileSync(join(folder, 'out/index.jsonl'), 'utf8').trim().split('\n')
  const unique = new Set(index.map((line) => JSON.parse(line).url)).size
  server.send('figures')
  const { refused } = await new Promise((resolve) => server.once('message', resolve))
  server.kill()
  const state = statSync(join(folder, 'state')).size / 1e6
  console.log(
    `exit code ${code}; ${summary.pages} pages, ${unique} URLs in the index, ${refused} refused by the server`,
  )
  console.log(
    `${seconds.toFixed(0)} s, ${(urls / seconds).toFixed(0)} a second; journal ${state.toFixed(1)} MB`,
  )
  console.log(`peak RSS ${peak.toFixed(0)} MB`)
  rmSync(folder, { recursive: true, force: true })
}
