/** Builds the service worker: one classic script, because Firefox takes no module there. */

import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const here = fileURLToPath(new URL('.', import.meta.url))

export const worker = () =>
  build({
    root: here,
    configFile: false,
    logLevel: 'warn',
    publicDir: false,
    resolve: { alias: { 'autothrottle/simulate': `${here}../dist/simulate.js` } },
    build: {
      outDir: `${here}public`,
      emptyOutDir: false,
      lib: { entry: `${here}playground/sw.js`, formats: ['iife'], name: 'sw', fileName: () => 'sw.js' },
    },
  })
