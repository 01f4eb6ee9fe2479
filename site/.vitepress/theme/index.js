/** VitePress's own theme, with colours a little calmer, a picture that is true, and the playground. */
import DefaultTheme from 'vitepress/theme'
import { defineAsyncComponent, h } from 'vue'
import HeroChart from './HeroChart.vue'
import './style.css'

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'home-hero-image': () => h(HeroChart) }),
  enhanceApp({ app }) {
    app.component(
      'Playground',
      defineAsyncComponent(() => import('../../playground/Playground.vue')),
    )
  },
}
