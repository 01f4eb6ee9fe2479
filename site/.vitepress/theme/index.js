/** VitePress's own theme, with colours a little calmer, and a picture that is true. */
import DefaultTheme from 'vitepress/theme'
import { h } from 'vue'
import HeroChart from './HeroChart.vue'
import './style.css'

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'home-hero-image': () => h(HeroChart) }),
}
