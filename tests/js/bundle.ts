/** The command as one file for tests that start it often: as in `dist/bin.js`, the package inside. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Makes it in a folder, and gives its path. */
export async function bundled(folder: string): Promise<string> {
  const outfile = join(folder, 'bin.mjs')
  await build({
    entryPoints: [`${root}/js/command/bin.ts`],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    tsconfig: `${root}/tsconfig.json`,
    banner: { js: "import { createRequire as r } from 'node:module';const require = r(import.meta.url);" },
    logLevel: 'error',
  })
  return outfile
}
