/** What can be taken away from the playground: a link, a picture and a frame of what is on screen, and the trace. */
import { titleOf, toHash } from './program.js'
import { save, useSharing } from './sharing.js'
import { storyOf } from './stories.js'
import { storyCard } from './story-card.js'
import { base } from './worker-of-page.js'

export function useTakeAway(program, stage) {
  const hash = () => toHash(program.value)
  /** A story has a page of its own for its link: with a title and a picture, which then opens the playground. */
  const link = () => {
    const [name, now] = hash().split('@')
    const url = new URL(location.href)
    history.replaceState(history.state, '', `#${hash()}`)
    const page = storyOf(name) ? `story/${name}.html` : 'playground.html'
    const inside = storyOf(name) ? (now ?? '0') : hash()
    const made = new URL(`${base()}${page}`, url)
    made.hash = inside
    return made.href
  }
  const picture = (theme) => storyCard(stage.value, { title: titleOf(program.value), theme })
  const sharing = useSharing({
    name: 'autothrottle',
    page: 'playground.html',
    title: 'Rate limits, simulated in the page',
    height: 1100,
    hash,
    link,
    picture,
  })

  const download = () => {
    const blob = new Blob([JSON.stringify(stage.value.download())], { type: 'application/json' })
    save(blob, `autothrottle-${program.value.story ?? 'playground'}.json`)
    sharing.say('Saved')
  }

  return { ...sharing, download }
}
