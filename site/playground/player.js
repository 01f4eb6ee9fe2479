/**
 * Plays a program: the clock of the page, what is on screen, and the link to it.
 *
 * A frame that came late is worth a tenth of a second at most. Text changes four times a second, so it can be
 * read. For those who asked for no motion charts are drawn twice a second. Only a chosen story plays before
 * you ask for it.
 */
import { computed, onMounted, onUnmounted, ref, shallowRef } from 'vue'
import { figuresOf, linesOf } from './figures.js'
import { currentOf, fromHash, programOf, titleOf, toHash } from './program.js'
import { soon } from './soon.js'
import { OPENING } from './stories.js'

/** An hour of simulated time is the most. */
const LONGEST = 3_600_000

export const SPEEDS = [0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]

/** The simulator: it is fetched and compiled while the page is drawn. */
let Stage
const bringStage = async () => {
  Stage ??= (await import('./stage.js')).Stage
}
if (!import.meta.env.SSR) bringStage().catch(() => undefined)

const CUT = 'This link is cut, or of another version. Below is the first story.'
/** Whether the address names a program that cannot be read. A place of the page is none. */
const isCut = () => location.hash.length > 1 && !document.getElementById(location.hash.slice(1))

/** `say` tells a word about something that is no problem. */
export function usePlayer(say) {
  const program = shallowRef(programOf(OPENING.story))
  const stage = shallowRef()
  const view = shallowRef()
  const isPlaying = ref(false)
  const isReal = ref(false)
  const frame = ref(0)
  const message = ref('')
  let wantsCalm = false
  let request = 0
  let last = 0
  let carry = 0
  let lastText = 0
  let lastDraw = 0

  /** Says what the texts say; `isFull` also what takes longer to work out. */
  const look = () => {
    const { value: on } = stage
    if (on) view.value = { now: on.now, states: on.states(), isOver: isOver() }
    frame.value++
  }

  /** Runs what may throw; the message is the engine's own. */
  const trying = (work) => {
    try {
      message.value = ''
      work()
      return true
    } catch (error) {
      message.value = error.message
      return false
    }
  }

  /** Does it once the simulator is there. */
  const bring = (work) => {
    bringStage().then(work, (error) => {
      message.value = error.message
    })
  }

  const load = (next, { play = false } = {}) => {
    if (!Stage) return bring(() => load(next, { play }))
    pause()
    const wasReal = isReal.value
    leaveReal()
    const until = next.now
    const isFine = trying(() => {
      const made = new Stage({ ...next, now: 0 })
      made.advance(until)
      stage.value = made
      program.value = made.program
    })
    look()
    link()
    if (isFine && wasReal) enterReal()
    else if (isFine && play) start()
    return isFine
  }

  /** The same server, played by a service worker, and real requests to it. */
  const enterReal = async () => {
    pause()
    const { server, network, policies } = current.value
    const options = { ...program.value.options, server, network }
    message.value = ''
    try {
      const { RealStage } = await import('./real.js')
      const span = Math.min(program.value.span, 60_000)
      stage.value = await RealStage.open({ ...program.value, span, options, policies })
      isReal.value = true
      look()
      start()
    } catch (error) {
      message.value = error.message
    }
  }

  const leaveReal = () => {
    if (!isReal.value) return
    isReal.value = false
    stage.value.close()
  }

  const setReal = (wanted) => {
    if (wanted === isReal.value) return
    if (wanted) return enterReal()
    pause()
    leaveReal()
    load(program.value)
  }

  const story = (name) => load(programOf(name), { play: !wantsCalm })

  const start = () => {
    if (isPlaying.value || !stage.value) return
    // A play that is over begins anew.
    if (isOver()) return load({ ...program.value, now: 0 }, { play: true })
    isPlaying.value = true
    stage.value.resume?.()
    last = 0
    request = requestAnimationFrame(tick)
  }

  const pause = () => {
    cancelAnimationFrame(request)
    if (!isPlaying.value) return
    isPlaying.value = false
    stage.value.pause?.()
    look()
    link()
  }

  const tick = (time) => {
    const passed = last === 0 ? 0 : Math.min(100, time - last)
    last = time
    carry += passed * program.value.speed
    const whole = Math.floor(carry)
    carry -= whole
    const isFine = trying(() => stage.value.advance(Math.min(whole, left())))
    if (!isFine || isOver()) return pause()
    if (time - lastText > 250) {
      lastText = time
      look()
    } else if (time - lastDraw > (wantsCalm ? 500 : 40)) {
      lastDraw = time
      frame.value++
    }
    request = requestAnimationFrame(tick)
  }

  /** Where it ends: a story, and what has a last request, at its width; all else after an hour. */
  const end = () => {
    const { story, options, span } = program.value
    return story || options.load?.requests !== undefined ? span : LONGEST
  }
  const left = () => (isReal.value ? Number.POSITIVE_INFINITY : Math.max(0, end() - stage.value.now))
  const isOver = () => stage.value !== undefined && left() === 0

  const step = () => {
    if (isOver()) return restart()
    pause()
    trying(() => stage.value.step(left()))
    look()
    link()
  }

  const restart = () => {
    const wasPlaying = isPlaying.value
    load({ ...program.value, now: 0 }, { play: wasPlaying })
  }

  const setSpeed = (speed) => {
    program.value.speed = speed
    link()
  }

  /** Something that the simulations take while they run. */
  const change = (made) => {
    if (!trying(() => stage.value.change({ ...made, mine: true }))) return
    const { story: _, ...mine } = program.value
    program.value = mine
    if (isReal.value) {
      const later = mine.changes.findIndex(({ at }) => at > mine.now)
      mine.changes.splice(later < 0 ? mine.changes.length : later, 0, { at: mine.now, ...made, mine: true })
    } else stage.value.program = mine
    look()
    link()
  }

  /** The server and the policies as they are now. */
  const current = computed(() =>
    currentOf(program.value, isReal.value ? program.value.now : (view.value?.now ?? 0)),
  )

  /** Something that only a fresh start takes. */
  const rebuild = (edit) => {
    const next = structuredClone({ ...program.value, now: 0 })
    edit(next)
    delete next.story
    const isFine = load(next, { play: isPlaying.value })
    if (isFine) say('Started anew')
    return isFine
  }

  const link = () => {
    if (!stage.value || isReal.value) return
    history.replaceState(history.state, '', `#${toHash(program.value)}`)
    const { served, refused } = figuresOf(stage.value, linesOf(program.value)[0])
    document.title = `${titleOf(program.value)}: ${served} served, ${refused} refused | autothrottle`
  }

  /** Lets a story happen up to an instant, some milliseconds of work a task, and shows it when it is there. */
  const opening = (next, until, onEnd) => {
    trying(() => {
      const made = new Stage(next)
      stage.value = made
      program.value = made.program
      const go = () => {
        if (stage.value !== made || isPlaying.value) return
        const end = performance.now() + 4
        while (made.now < until && performance.now() < end) made.advance(Math.min(500, until - made.now))
        if (made.now < until) return soon(go)
        look()
        onEnd?.()
      }
      soon(go)
    })
  }

  const fromLink = () => {
    const linked = fromHash(location.hash)
    if (linked) load(linked)
    else if (isCut()) message.value = CUT
  }

  onMounted(() => {
    wantsCalm = matchMedia('(prefers-reduced-motion: reduce)').matches
    const linked = fromHash(location.hash)
    // It goes on when asked to.
    const open = () =>
      opening(programOf(OPENING.story), OPENING.at, () => {
        if (isCut()) message.value = CUT
      })
    bring(() => soon(() => (linked ? load(linked) : open())))
    addEventListener('hashchange', fromLink)
  })
  onUnmounted(() => {
    cancelAnimationFrame(request)
    leaveReal()
    removeEventListener('hashchange', fromLink)
  })

  return {
    program,
    current,
    stage,
    view,
    isPlaying,
    isReal,
    setReal,
    frame,
    message,
    story,
    start,
    pause,
    step,
    restart,
    setSpeed,
    change,
    rebuild,
  }
}
