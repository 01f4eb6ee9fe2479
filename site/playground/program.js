/**
 * The screen, as plain data: a program. A link carries it, and shows every reader the same.
 *
 * The state is one object, from which the simulations are made and to which every change is added with its
 * time.
 */
import { storyOf } from './stories.js'

/** A program of a story, at its beginning. */
export function programOf(name) {
  const { program } = storyOf(name)
  return { story: name, now: 0, seed: 1, clients: 1, ...structuredClone(program) }
}

/** The title of a program in a tab and on a picture. */
export const titleOf = ({ story }) => storyOf(story)?.title ?? 'Your own server and policies'

/** The argument of `createSimulation` for one of the policies. */
export function simulationOptions({ options, policies, seed, clients }, index) {
  return { ...options, seed, clients, throttle: policies[index].throttle }
}

/** The settings in force at an instant: what it began with, and what was changed since. */
export function currentOf({ options, policies, changes }, now) {
  let { server, network } = options
  const shown = policies.map((policy) => policy)
  for (const { at, server: other, network: way, throttle, policy, scope = 'server' } of changes) {
    if (at > now) break
    if (other && scope === 'server') server = other.model ? other : { ...server, ...other }
    if (way) network = { ...network, ...way }
    if (throttle) {
      const old = shown[policy]
      shown[policy] = {
        ...old,
        throttle: { ...old.throttle, defaults: { ...old.throttle.defaults, ...throttle } },
      }
    }
  }
  return { server, network, policies: shown }
}

/** The program as the text after `#`: short for an untouched story. */
export function toHash(program) {
  const fresh = program.story && storyOf(program.story) ? programOf(program.story) : undefined
  const isFresh = fresh && JSON.stringify({ ...program, now: 0 }) === JSON.stringify(fresh)
  if (isFresh) return program.now === 0 ? program.story : `${program.story}@${program.now}`
  const bytes = new TextEncoder().encode(JSON.stringify(program))
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
  return `p=${text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`
}

/** The program behind a hash; `undefined` for none, and for one that was cut. */
export function fromHash(hash) {
  const text = hash.replace(/^#/, '')
  const [name, now = '0'] = text.split('@')
  if (storyOf(name)) return { ...programOf(name), now: Math.min(Number.parseInt(now, 10) || 0, FARTHEST) }
  if (!text.startsWith('p=')) return undefined
  try {
    const binary = atob(text.slice(2).replaceAll('-', '+').replaceAll('_', '/'))
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0))
    return checked(JSON.parse(new TextDecoder().decode(bytes)))
  } catch {
    return undefined
  }
}

/** A link may come from anywhere: only the keys of a program count, and numbers in their range. */
function checked({ story, options, policies, changes, span, speed, now, seed, clients }) {
  const isFine =
    typeof options === 'object' &&
    Array.isArray(policies) &&
    policies.length > 0 &&
    policies.length <= 2 &&
    policies.every(({ kind, throttle }) => typeof kind === 'string' && typeof throttle === 'object') &&
    Array.isArray(changes) &&
    [span, speed, now, seed, clients].every((number) => Number.isFinite(number) && number >= 0)
  if (!isFine || now > FARTHEST) throw new Error('no program')
  return { story, now, seed, clients, options, policies, changes, span, speed }
}

/** An hour of simulated time is the most that a link makes a browser run. */
const FARTHEST = 3_600_000
