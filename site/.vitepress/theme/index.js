/**
 * VitePress's own theme, with colours a little calmer, and a picture that is true. The fonts are the reader's:
 * those of the theme are as large as all else that a first page needs.
 */
import { useData, withBase } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import { h, watch } from 'vue'
import hero from '../../.pages/hero.json'
import { keepSite } from '../../playground/worker-of-page.js'
import HeroChart from './HeroChart.vue'
import './style.css'

/** Light and dark change at once: with transitions, each part of a page would change at its own pace. */
function switchAtOnce() {
  const { isDark } = useData()
  const { classList } = document.documentElement
  const change = () => {
    classList.add('switching')
    requestAnimationFrame(() => requestAnimationFrame(() => classList.remove('switching')))
  }
  watch(isDark, change, { flush: 'sync' })
}

const LINES = `const throttle = createThrottle({ rate: 5 })   // five a second to each host
const response = await throttle.fetch(url)     // as fetch`

/** The command to type, and the reason: how the race ends. */
const Verdict = () =>
  h('div', { class: 'home-verdict' }, [
    h('pre', { tabindex: 0 }, h('code', LINES)),
    h('p', [
      h('strong', '500 pages from a server that bans: '),
      `${hero.race.replaceAll('p-queue', 'p\u2011queue')} `,
      h('a', { href: withBase('/race.html') }, 'Watch the race, or run it with real requests'),
      '. ',
      h('a', { href: withBase('/docs/comparison.html') }, 'When to take another library'),
      '.',
    ]),
  ])

/** The theme's own has no main part, and a button whose name is not what stands on it. */
const NotFound = () =>
  h('main', { class: 'vp-doc not-found' }, [
    h('h1', 'There is no page here'),
    h('p', [
      'Search above, or start from ',
      h('a', { href: withBase('/') }, 'the first page'),
      ' or ',
      h('a', { href: withBase('/docs/start.html') }, 'the guide'),
      '.',
    ]),
  ])

export default {
  extends: DefaultTheme,
  enhanceApp: () => {
    if (!import.meta.env.SSR && import.meta.env.PROD) keepSite()
  },
  setup: () => {
    if (!import.meta.env.SSR) switchAtOnce()
  },
  Layout: () =>
    h(DefaultTheme.Layout, null, {
      'home-hero-image': () => h(HeroChart),
      'home-hero-after': () => h(Verdict),
      'not-found': () => h(NotFound),
    }),
}
