/** Everything, in the order in which it is cheapest to fail: `npm test`. Does all of its own set-up. */
import { existsSync, readdirSync } from 'node:fs'
import { build, setUp } from './build.mjs'
import { main, root, run, step } from './lib.mjs'

await main(async () => {
  await setUp()
  await step('rustfmt', () => run('cargo', ['fmt', '--all', '--check']))
  await step('clippy', () =>
    run('cargo', ['clippy', '--locked', '--workspace', '--all-targets', '--', '-D', 'warnings']),
  )
  await step('native tests', () => run('cargo', ['test', '--locked']))
  await build()
  await step('lint', () => run('npx', ['--no-install', 'biome', 'check', '.']))
  await step('types', () => run('npx', ['--no-install', 'tsc', '--noEmit']))
  const tests = readdirSync(`${root}/tests/js`).filter((name) => name.endsWith('.test.ts'))
  const files = tests.map((name) => `tests/js/${name}`)
  await step('TypeScript tests', () => run('node', ['--import', 'tsx', '--test', ...files]))
  if (process.env.CI === 'true' && !existsSync(`${root}/tests/runtimes/node_modules`)) {
    // Not `npm ci`: it refuses a lock file without the platform packages of Deno that some registries lack.
    const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', 'tests/runtimes']
    await step('runtimes', () => run('npm', args))
  }
  const packed = readdirSync(`${root}/tests/package`).map((name) => `tests/package/${name}`)
  await step('packed package', () => run('node', ['--test', ...packed]))
})
