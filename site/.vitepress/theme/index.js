/**
 * VitePress's own theme, with colours a little calmer, and a picture that is true. The fonts are the reader's:
 * those of the theme are as large as all else that a first page needs.
 */
import DefaultTheme from 'vitepress/theme-without-fonts'
import { h } from 'vue'
import { keepSite } from '../../playground/worker-of-page.js'
import HeroChart from './HeroChart.vue'
import './style.css'

export default {
  extends: DefaultTheme,
  enhanceApp: () => {
    if (!import.meta.env.SSR && import.meta.env.PROD) keepSite()
  },
  Layout: () => h(DefaultTheme.Layout, null, { 'home-hero-image': () => h(HeroChart) }),
}
