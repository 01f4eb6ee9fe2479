/**
 * The things that you can take away from a page: its link, a picture of its result, a frame for another page.
 *
 * Where a browser has no clipboard for pictures, or refuses it, the picture is a file, and the page says so.
 * The drawing loads no file, or a canvas would give no pixels: ours are text alone.
 */
import { ref } from 'vue'
import { HEIGHT, WIDTH } from './card.js'
import { base } from './worker-of-page.js'

/** A word that stands for four seconds, and how to say it. */
export function useSaid() {
  const said = ref('')
  let timer
  const say = (text) => {
    said.value = text
    clearTimeout(timer)
    timer = setTimeout(() => {
      said.value = ''
    }, 4000)
  }
  return { said, say }
}

/**
 * `name` of files, `page` that is linked and framed with its `hash()` (`title` and `height` for the frame), and
 * `picture(theme)`: an SVG.
 */
export function useSharing({ name, page, title, height, hash, picture, link, say }) {
  const address = (query = '') => {
    const url = new URL(`${base()}${page}${query}`, location.href)
    url.hash = hash()
    return url.href
  }

  const copyText = async (text, what = 'Copied') => {
    try {
      await navigator.clipboard.writeText(text)
      say(what)
      return true
    } catch {
      say('This browser does not let the page copy')
      return false
    }
  }

  const copyLink = () => copyText(link?.() ?? address(), 'Link copied')

  const copyEmbed = () =>
    copyText(
      `<iframe src="${address('?embed')}" title="${title}" width="100%" height="${height}" loading="lazy"></iframe>`,
      'HTML for a frame copied',
    )

  const copyPicture = async () => {
    const theme = document.documentElement.classList.contains('dark') ? 'dark' : 'light'
    const blob = pixels(picture(theme))
    try {
      await navigator.clipboard.write([new ClipboardItem({ 'image/png': blob })])
      say('Picture copied')
    } catch {
      save(await blob, `${name}.png`)
      say('Picture saved as a file')
    }
  }

  return { copyText, copyLink, copyEmbed, copyPicture }
}

/** Gives a blob to the reader as a file. */
export function save(blob, name) {
  const anchor = document.createElement('a')
  anchor.href = URL.createObjectURL(blob)
  anchor.download = name
  anchor.click()
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000)
}

/** An SVG as PNG. */
async function pixels(svg) {
  const image = new Image()
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`
  await image.decode()
  const canvas = document.createElement('canvas')
  canvas.width = WIDTH
  canvas.height = HEIGHT
  canvas.getContext('2d').drawImage(image, 0, 0, WIDTH, HEIGHT)
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('no picture'))), 'image/png'),
  )
}
