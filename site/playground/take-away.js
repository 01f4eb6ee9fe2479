/** What can be taken away: a link to what is on screen, and the trace for Node. */
import { ref } from 'vue'
import { toHash } from './program.js'

export function useTakeAway(program, stage) {
  const said = ref('')
  let timer
  const say = (text) => {
    said.value = text
    clearTimeout(timer)
    timer = setTimeout(() => {
      said.value = ''
    }, 3000)
  }

  const copyLink = async () => {
    const url = new URL(location.href)
    url.hash = toHash(program.value)
    history.replaceState(history.state, '', url)
    try {
      await navigator.clipboard.writeText(url.href)
      say('Link copied')
    } catch {
      say('The link is in the address bar')
    }
  }

  const download = () => {
    const blob = new Blob([JSON.stringify(stage.value.download())], { type: 'application/json' })
    const link = document.createElement('a')
    link.href = URL.createObjectURL(blob)
    link.download = `autothrottle-${program.value.story ?? 'playground'}.json`
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
    say('Saved')
  }

  return { said, copyLink, download }
}
