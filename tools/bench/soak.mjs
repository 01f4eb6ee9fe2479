/**
 * Ten real minutes with ten thousand hosts: does memory stay flat, and does the spacing drift? Each host has
 * a request waiting all the time, is sent one every twenty seconds, and answers after a few milliseconds.
 *
 * `npm run soak` writes its figures and the curve of memory into RESULTS.md (`-- --seconds 60 --hosts 1000`
 * to try it: that writes no file). On a busy event loop work begins later than it was permitted, so the gap
 * after it looks too short. Each start is held against the first permission and the number of gaps since; the
 * drift is the last start against the first.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { build, createThrottle } from '../../dist/index.js'

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '600' }, hosts: { type: 'string', default: '10000' } },
})
const [seconds, hosts] = [Number(values.seconds), Number(values.hosts)]
if (!(seconds >= 10 && hosts >= 1)) throw new Error('want --seconds from 10 on and --hosts from 1 on')
/** A gap of milliseconds: so that every host is sent several in the time. */
const GAP = Math.min(20_000, (seconds * 1000) / 5)

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')
const memory = () => {
  collect()
  const { heapUsed, external, rss } = process.memoryUsage()
  return { used: (heapUsed + external) / 1e6, rss: rss / 1e6 }
}

const throttle = createThrottle({
  maxInFlight: 100_000,
  maxScopes: 2 * hosts,
  warnThreshold: 1e8,
  defaults: { delay: GAP, slotDelay: 0, jitter: false },
})
const last = new Float64Array(hosts)
const first = new Float64Array(hosts)
const sent = new Uint32Array(hosts)
let [tooEarly, latest, isOver] = [0, 0, false]
const errors = []

const started = performance.now()
async function visit(host) {
  const options = { scopes: `h${host}` }
  while (!isOver) {
    await throttle.run(options, async () => {
      const now = performance.now()
      if (sent[host] === 0) first[host] = now
      else latest = Math.max(latest, now - last[host] - GAP)
      if (now < started + sent[host]++ * GAP - 1) tooEarly++
      last[host] = now
      await new Promise((resolve) => setTimeout(resolve, 3 + (host % 20)))
    })
  }
}

const cpu = process.cpuUsage()
for (let host = 0; host < hosts; host++) visit(host).catch((error) => errors.push(error))
const curve = []
while (performance.now() - started < 1000 * seconds) {
  await new Promise((resolve) => setTimeout(resolve, (1000 * seconds) / 20))
  const { used, rss } = memory()
  const at = ((performance.now() - started) / 1000).toFixed(0).padStart(4)
  const total = sent.reduce((sum, count) => sum + count, 0)
  curve.push({ at: at.trim(), used, rss, total })
  console.log(`${at} s  ${used.toFixed(1)} MB used, ${rss.toFixed(0)} MB resident, ${total} sent`)
}
isOver = true
if (errors.length > 0) throw errors[0]

const { user, system } = process.cpuUsage(cpu)
const total = sent.reduce((sum, count) => sum + count, 0)
let drift = 0
for (let host = 0; host < hosts; host++) {
  const exact = (sent[host] - 1) * GAP
  if (exact > 0) drift = Math.max(drift, (last[host] - first[host]) / exact - 1)
}
// The first measurements are of hosts that are not all there yet.
const used = curve.map((point) => point.used)
const [early, late] = [Math.max(...used.slice(3, 8)), Math.min(...used.slice(-5))]
const said =
  `${hosts} hosts, ${total} sent in ${seconds} s: ${tooEarly} too early, ` +
  `latest by ${latest.toFixed(0)} ms, drift at most ${(100 * drift).toFixed(2)} %; memory ${early.toFixed(1)} MB, then ${late.toFixed(1)} MB; ` +
  `${((user + system) / total).toFixed(0)} µs CPU a request`
console.log(said)
const isFlat = late <= 1.05 * early + 1
if (values.seconds === '600' && values.hosts === '10000') {
  const lines = curve.map(
    ({ at, used, rss, total }) => `| ${at} | ${used.toFixed(1)} | ${rss.toFixed(0)} | ${total} |`,
  )
  const section = `## Ten real minutes with ten thousand hosts

\`npm run soak\`, autothrottle ${build.revision.slice(0, 9)}, Node ${process.version.slice(1)}:
${said.replace(/; /g, ';\n').replace(/: /, ':\n')}.

| s | MB used | MB resident | sent |
| ---: | ---: | ---: | ---: |
${lines.join('\n')}
`
  // It is the last one there.
  const file = new URL('RESULTS.md', import.meta.url)
  writeFileSync(
    file,
    readFileSync(file, 'utf8').replace(/## Ten real minutes[\s\S]*$/, () => section),
  )
}
if (tooEarly > 0 || !isFlat) throw new Error(isFlat ? 'sent too early' : 'memory grows')
process.exit(0)
