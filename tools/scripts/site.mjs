/**
 * The site: `npm run site` builds it and serves it; `npm run site -- --build` only builds. Static files for
 * any host lie in `site/dist` afterwards.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { serveFolder } from '../../site/serve.mjs'
import { build } from './build.mjs'
import { main, root, run, step } from './lib.mjs'

const site = `${root}/site`

/** The tools of the site lie in its folder; fetched once. */
export async function fetchSite() {
  const { devDependencies } = JSON.parse(readFileSync(`${site}/package.json`, 'utf8'))
  if (Object.keys(devDependencies).every((name) => existsSync(`${site}/node_modules/${name}`))) return
  // Not `npm ci`: it refuses a lock file without the packages of other platforms, which some registries lack.
  const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', 'site']
  await step('site: packages', () => run('npm', args))
}

/** Builds `site/dist`. */
export async function buildSite() {
  const { gather } = await import('../../site/pages.mjs')
  const { relocate } = await import('../../site/relocate.mjs')
  const { worker } = await import('../../site/vite-plugins.mjs')
  const { covers } = await import('../../site/links.mjs')
  await step('site: guides and reference', gather)
  rmSync(`${site}/dist`, { recursive: true, force: true })
  await step('site: service worker', worker)
  const vitepress = `${site}/node_modules/vitepress/bin/vitepress.js`
  await step('site: pages', () => run('node', [vitepress, 'build', '.'], { cwd: site }))
  await step('site: pictures for links', () => covers(`${site}/dist`))
  relocate(`${site}/dist`)
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await main(async () => {
    await build()
    await fetchSite()
    await buildSite()
    if (process.argv.includes('--build')) return
    const server = createServer(serveFolder(`${site}/dist`))
    const port = Number(process.env.PORT ?? 4173)
    server.listen(port, '127.0.0.1', () => console.log(`\n  http://127.0.0.1:${server.address().port}/`))
  })
