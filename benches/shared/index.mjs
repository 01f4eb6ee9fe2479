/**
 * Processes that share a limit, with faults: `npm run test:shared`. Behind nginx, which limits to 10 a second
 * and does not say so, what was served and refused is read from its own log; `outages.mjs` has a server that
 * counts.
 *
 * `--way local|redis` (both, where `npm install --prefix tests/shared` was run and there is a redis-server),
 * `--case NAME` one of those in `play.mjs` or `outages.mjs` (`outages`: all of those), or `permits`,
 * `takeover`; `--seconds N` shortens the cases behind nginx: then bars mean little. Everything takes about 35
 * minutes. It ends with 1 if a bar is missed, and says how busy the machine was.
 *
 * *One process alone* runs beside each case, against a zone of its own, and is what it is compared with: a
 * machine may be busy.
 */
import { existsSync } from 'node:fs'
import { loadavg } from 'node:os'
import { SERVERS } from '../../tests/shared/server.mjs'
import { OUTAGES } from './outages.mjs'
import { permits, takeover } from './own.mjs'
import { CASES, play } from './play.mjs'

function option(name, fallback) {
  const at = process.argv.indexOf(name)
  return at > 0 ? process.argv[at + 1] : fallback
}

const hasRedis = SERVERS.length > 0 && existsSync('tests/shared/node_modules/ioredis')
const ways = option('--way') ? [option('--way')] : ['local', ...(hasRedis ? ['redis'] : [])]
const chosen = option('--case')
const most = Number(option('--seconds', Number.POSITIVE_INFINITY))
const names = [...Object.keys(CASES), ...Object.keys(OUTAGES), 'outages', 'permits', 'takeover']
if (chosen !== undefined && !names.includes(chosen)) {
  console.error(`--case: want one of ${names.join(', ')}; got ${chosen}`)
  process.exit(2)
}

let missed = 0
const shown = ({ util, refused, refusedPct, silence, fair }) =>
  `util ${util}, ${refused} refused (${refusedPct} %), silence ${silence} s, shares ${fair}`

function row(way, name, isMet, said) {
  if (!isMet) missed++
  const load = loadavg()[0].toFixed(1)
  console.log(`| ${way} | ${name} | ${said} | ${load} | ${isMet ? 'yes' : '**no**'} |`)
}

console.log('| way | case | counts | load | bar met |\n|---|---|---|---|---|')
for (const way of ways)
  for (const [key, what] of Object.entries(CASES)) {
    if (chosen !== undefined && chosen !== key) continue
    if (what.ways && !what.ways.includes(way)) continue
    const { shared, ...others } = await play(what, way, most)
    const said = [`${shown(shared)}, at most ${shared.mostAtOnce} at a time`]
    for (const [who, counts] of Object.entries(others)) said.push(`${who}: ${shown(counts)}`)
    row(way, what.name, what.bar(shared, others), said.join('<br>'))
  }
for (const [key, [name, plays]] of Object.entries(OUTAGES)) {
  if (!ways.includes('redis') || (chosen !== undefined && chosen !== key && chosen !== 'outages')) continue
  const { isMet, said } = await plays()
  row('redis', name, isMet, said)
}
for (const way of ways) {
  if (chosen !== undefined && chosen !== 'takeover') continue
  const { isMet, said } = await takeover(way)
  row(way, 'another takes over with 100,000 hosts', isMet, said)
}
for (const way of ways) {
  if (chosen !== undefined && chosen !== 'permits') continue
  const { isMet, said } = await permits(way)
  row(way, 'permits', isMet, said)
}
process.exit(missed > 0 && !Number.isFinite(most) ? 1 : 0)
