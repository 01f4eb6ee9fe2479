/**
 * One seed: processes that nobody told the rate, while their machine has too much to do and their writer
 * dies; then all is well, and the group has to serve nearly what one process alone would.
 *
 * The trap is that no other invariant breaks: a group that has learned something wrong is slow for minutes,
 * but nothing is refused and nothing is lost.
 */
import type { EngineOptions } from 'autothrottle'
import { Dice } from '../dice.js'
import { Process, World } from './world.js'

const OPTIONS: EngineOptions = { concurrency: 256, seed: 1, defaults: { rampup: true } }
/** Of the server, as nginx's `limit_req`: requests a second, and at once. */
const [RATE, BURST] = [10, 20]
const [SERVED_MS, REFUSED_MS] = [200, 3]
/** Each process asks so often at a time. */
const LOOPS = 4
/** All is well for so long before it counts, and then it counts for so long. */
const [WELL_MS, COUNTED_MS] = [15_000, 20_000]

export interface Learned {
  /** What was served at the end, of what the server bears. */
  readonly share: number
  readonly refused: number
  readonly takeovers: number
  readonly faults: readonly string[]
}

/** Plays one seed. */
export async function playLearned(seed: number): Promise<Learned> {
  const world = new World(seed)
  const dice = new Dice(seed ^ 0x2c1b3c6d)
  let [excess, last, refused] = [0, 0, 0]
  const served: number[] = []
  const isServed = () => {
    const now = Math.max(excess - ((world.now - last) * RATE) / 1000, 0)
    last = world.now
    excess = now > BURST ? now : now + 1
    return now <= BURST
  }
  const begin = (process: Process) => {
    const scope = process.host.intern('site')
    const submit = () => process.host.submit(process.clock.now(), [scope])
    process.listen((ticket) => {
      const isGood = isServed()
      const latencyMs = isGood ? SERVED_MS : REFUSED_MS
      if (isGood) served.push(world.now)
      else refused++
      world.after(latencyMs, process, () => {
        process.host.settle(process.clock.now(), ticket, { status: isGood ? 200 : 429, latencyMs })
        submit()
      })
    })
    for (let loop = 0; loop < LOOPS; loop++) world.after(dice.below(300), process, submit)
  }
  const all = Array.from(
    { length: 3 + dice.below(5) },
    (_, index) => new Process(world, `p${index}`, OPTIONS),
  )
  for (const process of all) begin(process)
  world.faults.way = [1, dice.below(20)]
  const faults = faultsOf(world, all, dice)
  const wellAt = Math.max(...faults.map(({ until }) => until), 0)
  await world.run(wellAt + WELL_MS)
  const from = world.now
  await world.run(COUNTED_MS)
  const share = (1000 * served.filter((at) => at >= from).length) / (RATE * COUNTED_MS)
  return { share, refused, takeovers: world.takeovers.length, faults: faults.map(({ what }) => what) }
}

/** Chance's faults, in the first twelve seconds: what happens, and until when. */
function faultsOf(world: World, all: readonly Process[], dice: Dice): { what: string; until: number }[] {
  const writer = () => all.find(({ id, isDead }) => id === world.store.holder && !isDead)
  return Array.from({ length: 1 + dice.below(4) }, () => {
    const at = dice.below(12_000)
    const ms = 1000 + dice.below(6000)
    const what = ['kill', 'stall', 'busy', 'cut'][dice.below(4)]!
    world.after(at, undefined, () => {
      const living = all.filter(({ isDead }) => !isDead)
      const one = writer() ?? living[0]!
      if (what === 'kill' && living.length > 2) one.kill()
      else if (what === 'stall') one.stop(ms)
      else if (what === 'cut') one.cut(ms)
      else if (what === 'busy') world.busy(ms, dice)
    })
    return { what: `${at} ${what} ${ms}`, until: at + ms }
  })
}
