/**
 * VitePress's own theme, with colours a little calmer, and a picture that is true. The fonts are the reader's:
 * those of the theme are as large as all else that a first page needs.
 */
import { useData } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import { h, watch } from 'vue'
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

export default {
  extends: DefaultTheme,
  enhanceApp: () => {
    if (!import.meta.env.SSR && import.meta.env.PROD) keepSite()
  },
  setup: () => {
    if (!import.meta.env.SSR) switchAtOnce()
  },
  Layout: () => h(DefaultTheme.Layout, null, { 'home-hero-image': () => h(HeroChart) }),
}
