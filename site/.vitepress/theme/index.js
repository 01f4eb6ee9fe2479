/** VitePress's own theme, with colours a little calmer and the playground as a component. */
import DefaultTheme from 'vitepress/theme'
import { defineAsyncComponent } from 'vue'
import './style.css'

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('Playground', defineAsyncComponent(() => import('../../playground/Playground.vue')))
  },
}
