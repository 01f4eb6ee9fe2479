/**
 * How evenly hosts spread over writers: `node benches/shared/shards.mjs`. A million hosts, whose traffic
 * falls as 1 ÷ rank (Zipf) as that of sites does, are asked for by a hundred processes, each of which has a
 * throttle for each part. Hosts go to parts by a hash of their names. No host is asked for oftener than once
 * a second, so the traffic of the largest is cut there.
 */
const HOSTS = 1_000_000
const PROCESSES = 100
/** What all processes ask for in a second. */
const ASKED = 200_000
/** What one writer gives in a second: see `npm run test:shared -- --case permits`. */
const GIVES = 40_000

/** FNV-1a, with its bits mixed once more. */
function hashOf(name) {
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return (hash ^ (hash >>> 16)) >>> 0
}

let sum = 0
for (let rank = 1; rank <= HOSTS; rank++) sum += 1 / rank
console.log(
  '| parts | hosts in the largest | permits/s of the busiest | its share of the mean | of one writer |',
)
console.log('|---|---|---|---|---|')
for (const parts of [1, 4, 16, 64]) {
  const hosts = new Uint32Array(parts)
  const traffic = new Float64Array(parts)
  for (let rank = 1; rank <= HOSTS; rank++) {
    const part = hashOf(`host-${rank}.example`) % parts
    hosts[part]++
    traffic[part] += Math.min(ASKED / (rank * sum), 1)
  }
  const [most, busiest] = [Math.max(...hosts), Math.max(...traffic)]
  const mean = traffic.reduce((all, one) => all + one, 0) / parts
  const cells = [parts, most, Math.round(busiest), (busiest / mean).toFixed(2)]
  console.log(`| ${cells.join(' | ')} | ${((100 * busiest) / GIVES).toFixed(0)} % |`)
}
const connections = (1 + 16) * PROCESSES
console.log(`Connections to the store with 16 parts, one client in each process: ${connections}.`)
