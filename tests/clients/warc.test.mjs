/** WARC, by the library warcio, written by a crawl that is killed twenty times. */
import { existsSync } from 'node:fs'
import { survives } from '../js/kills.ts'

const isHere = existsSync(new URL('node_modules/warcio', import.meta.url)) || process.env.CI === 'true'
survives(
  'WARC',
  ['--warc', 'crawl.warc.gz'],
  isHere ? false : 'not installed: npm install --prefix tests/clients',
)
