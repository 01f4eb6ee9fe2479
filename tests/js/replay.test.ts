/**
 * Plays a trace through WebAssembly. The same language as `tests/native/replay.rs`, and the same transcript.
 */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Engine, type Reason, type Ticket, WAIT } from 'autothrottle/engine'

function play(trace: string): string {
  const lines: string[] = []
  let player: Player | undefined
  for (const written of trace.split('\n').filter((line) => /^[>#]/.test(line))) {
    lines.push(written)
    if (written.startsWith('#')) continue
    const line = written.slice(2)
    if (line.startsWith('options ')) {
      try {
        player = new Player(new Engine(JSON.parse(line.slice(8))))
      } catch (error) {
        lines.push((error as Error).message)
      }
    } else if (player) {
      player.line(line)
      lines.push(...player.lines.splice(0))
    }
  }
  return lines.map((line) => `${line}\n`).join('')
}

class Player {
  readonly lines: string[] = []
  readonly #engine: Engine
  readonly #tickets = new Map<string, Ticket>()
  #answers: { at: number; name: string }[] = []
  #server: { latency: number; status: number; headers: [string, string][] } | undefined
  #now = 0
  #rest = ''

  constructor(engine: Engine) {
    this.#engine = engine
  }

  line(line: string): void {
    const words = line.split(/\s+/)
    const argument = (key: string) => words.find((word) => word.startsWith(`${key}=`))?.slice(key.length + 1)
    const number = (key: string) => (argument(key) === undefined ? undefined : Number(argument(key)))
    const json = () => JSON.parse(line.slice(line.indexOf('{')))
    const name = words[1] ?? ''
    const engine = this.#engine
    const scope = () => engine.scope(name)
    switch (words[0]) {
      case 'at':
        this.#now = Number(name)
        break
      case 'run':
        this.#run(Number(name))
        return
      case 'serve':
        this.#server = {
          latency: number('latency')!,
          status: number('status') ?? 200,
          headers: headers(words),
        }
        break
      case 'adopt':
      case 'send':
      case 'submit': {
        const scopes = words[2]!.split(',').map((name) => engine.scope(name))
        const costs = argument('cost')?.split(',').map(Number)
        const cost = costs === undefined ? 1 : costs.length === 1 ? costs[0]! : costs
        const options = { cost, priority: number('priority') ?? 0 }
        const waited = number('waited') ?? 0
        if (words[0] === 'adopt') {
          this.#tickets.set(name, engine.adopt(this.#now, scopes, number('ago')!, { ...options, waited }))
          break
        }
        try {
          const atOnce = words[0] === 'send' ? engine.sendAtOnce(this.#now, scopes, options) : WAIT
          const delay = number('delay') ?? 0
          const submitted = () =>
            waited > 0
              ? engine.submitAgain(this.#now, scopes, waited, { ...options, delay })
              : engine.submit(this.#now, scopes, { ...options, delay })
          const ticket = atOnce === WAIT ? submitted() : atOnce
          this.#tickets.set(name, ticket)
          if (ticket === atOnce) this.#sent(name, ' at once')
        } catch (error) {
          this.#say(`refused ${name}: ${(error as Error).message}`)
        }
        break
      }
      case 'settle': {
        const { status, latencyMs, cost } = {
          status: number('status'),
          latencyMs: number('latency'),
          cost: number('cost'),
        }
        engine.settle(this.#now, this.#tickets.get(name)!, {
          ...(status === undefined ? {} : { status }),
          ...(latencyMs === undefined ? {} : { latencyMs }),
          ...(cost === undefined ? {} : { cost }),
          ...(words.includes('error') ? { error: new Error('no answer') } : {}),
          ...(words.includes('bad') ? { backoff: true } : words.includes('good') ? { backoff: false } : {}),
          ...(argument('retry') === undefined ? {} : { retryDelay: number('retry')! }),
          headers: headers(words),
          wallNowMs: number('wall') ?? Number.NaN,
          adjustDelay: !words.includes('keep'),
        })
        break
      }
      case 'crawl-delay': {
        const outcome = engine.crawlDelay(this.#now, scope(), words[2] === '-' ? undefined : Number(words[2]))
        this.#say(`crawl-delay ${outcome}`)
        break
      }
      case 'prioritize':
        engine.prioritize(this.#now, this.#tickets.get(name)!, Number(words[2]))
        break
      case 'cancel':
        engine.cancel(this.#now, this.#tickets.get(name)!)
        break
      case 'configure':
        try {
          engine.configure(this.#now, scope(), json())
        } catch (error) {
          this.#say((error as Error).message)
        }
        break
      case 'hold':
        engine.hold(this.#now, scope(), Number(words[2]))
        break
      case 'adjust':
        engine.adjust(this.#now, scope(), number('sent')!, number('from')!, number('to')!)
        break
      case 'pause':
        engine.pause(this.#now, words.length === 1 ? undefined : scope())
        break
      case 'resume':
        engine.resume(this.#now, words.length === 1 ? undefined : scope())
        break
      case 'reset':
        engine.reset(this.#now, scope())
        break
      case 'peek': {
        const peek = engine.peek(
          this.#now,
          name.split(',').map((name) => engine.scope(name)),
        )
        const at = peek.at === Number.POSITIVE_INFINITY ? 'unknown' : time(peek.at)
        this.#say(`peek ${at}${because(peek.reason, peek.scope)}`)
        break
      }
      case 'stats': {
        const stats = engine.stats(scope(), this.#now)
        const delay = time(Math.round(stats.delayMs * 1000) / 1000)
        const hold = stats.holdUntil === undefined ? '-' : time(stats.holdUntil)
        const { backoffStep, slots, inFlight, waiting, quotaLeft = '-', reason = '-' } = stats
        this.#say(
          `stats delay=${delay} step=${backoffStep} slots=${slots} inFlight=${inFlight} waiting=${waiting} hold=${hold} quota=${quotaLeft} reason=${reason}`,
        )
        break
      }
      default:
        throw new Error(`no such event: ${words[0]}`)
    }
    this.#drain()
  }

  #run(until: number): void {
    for (;;) {
      const wake = this.#drain()
      const answer = this.#answers.reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY)
      const next = Math.min(wake, answer)
      if (next > until) break
      this.#now = Math.max(this.#now, next)
      if (answer === next) {
        const index = this.#answers.findIndex(({ at }) => at === next)
        const { name } = this.#answers.splice(index, 1)[0]!
        const { latency, status, headers } = this.#server!
        this.#say(`done ${name} ${status}`)
        this.#engine.settle(this.#now, this.#tickets.get(name)!, { status, latencyMs: latency, headers })
      }
    }
    this.#now = Math.max(this.#now, until)
    this.#drain()
  }

  #drain(): number {
    for (;;) {
      const ticket = this.#engine.poll(this.#now)
      const { wakeAt, reason, reasonScope } = this.#engine
      if (ticket >= 0) {
        const name = [...this.#tickets].find(([, known]) => known === ticket)![0]
        this.#sent(name)
      } else if (ticket === WAIT) {
        if (!(wakeAt > this.#now)) throw new Error('a wait must be in the future')
        this.#sayRest(`wait ${time(wakeAt)}${because(reason, reasonScope)}`)
        return wakeAt
      } else {
        this.#sayRest(`idle${because(reason, reasonScope)}`)
        return Number.POSITIVE_INFINITY
      }
    }
  }

  #sent(name: string, how = ''): void {
    this.#say(`send ${name}${how}`)
    if (this.#server) this.#answers.push({ at: this.#now + this.#server.latency, name })
  }

  #sayRest(rest: string): void {
    if (this.#rest === rest) return
    this.#rest = rest
    this.#say(rest)
  }

  #say(what: string): void {
    this.lines.push(`${time(this.#now).padStart(12)} ${what}`)
  }
}

/** The words `header=name:value`; `_` stands for a space. */
function headers(words: readonly string[]): [string, string][] {
  const fields = words.filter((word) => word.startsWith('header='))
  return fields.map((word) => {
    const [name = '', ...value] = word.slice('header='.length).replaceAll('_', ' ').split(':')
    return [name, value.join(':')]
  })
}

function because(reason: Reason | undefined, scope: string | undefined): string {
  return reason === undefined ? '' : ` ${reason} ${scope ?? '-'}`
}

function time(ms: number): string {
  return ms.toFixed(3)
}

/** Every trace through WebAssembly: the transcript must be the native one, byte for byte. */

const folder = new URL('../traces/', import.meta.url)
const stories = readdirSync(folder)
  .filter((name) => name.endsWith('.txt'))
  .flatMap((name) => readFileSync(new URL(name, folder), 'utf8').split('\n== ').slice(1))

test('there are traces', () => assert.ok(stories.length >= 47))

for (const story of stories) {
  const name = story.slice(0, story.indexOf('\n'))
  test(`${name} is played as natively`, () => {
    assert.equal(play(story).trimEnd(), story.slice(name.length).trim())
  })
}
