/**
 * The packed interceptor beside each undici: 6 reads what is needed, 7 and 8 work. A request must not wait
 * for ever because no code calls the handler that it has.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { skipUnless } from '../required.mjs'
import { packed } from './install.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const runtimes = join(root, 'tests/runtimes/node_modules')
const { scratch, tarball, remove } = packed()
after(remove)

const PROGRAM = `
import { createServer } from 'node:http'
import { createThrottle } from 'autothrottle'
import { throttle } from 'autothrottle/undici'
import undici from 'UNDICI'
const { Agent, request, fetch } = undici
const server = createServer((request, response) => response.end('page')).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const url = 'http://127.0.0.1:' + server.address().port
const shared = createThrottle({ defaults: { slotDelay: 0, delay: 0 } })
const dispatcher = new Agent().compose(throttle(shared))
const said = async (work) => {
  try {
    return await work()
  } catch (error) {
    const isOurs = (each) => each instanceof TypeError && /undici/.test(each.message)
    return [error, error.cause].find(isOurs)?.message
  }
}
const lines = [
  await said(async () => (await request(url, { dispatcher })).body.text()),
  await said(async () => (await fetch(url, { dispatcher })).text()),
]
const { inFlight, waiting, settled } = shared.stats()
console.log(JSON.stringify({ lines, inFlight, waiting, settled }))
process.exit()
`
const NEEDS = /autothrottle\/undici needs undici 7 or newer; the request comes from undici 6/

for (const [name, folder, node] of [
  ['undici 6', 'undici6', process.execPath],
  ['undici 7', 'undici7', process.execPath],
  ['undici 8', 'undici8', join(runtimes, 'node24/bin/node')],
]) {
  const isThere = existsSync(join(runtimes, folder)) && existsSync(node)
  const skip = skipUnless(isThere)
  test(name, { skip }, () => {
    assert.ok(isThere, `${name} is missing: npm install --prefix tests/runtimes`)
    const file = join(scratch, `${folder}.mjs`)
    writeFileSync(file, PROGRAM.replace('UNDICI', join(runtimes, folder, 'index.js')))
    const { stdout, stderr } = spawnSync(node, [file], { cwd: scratch, encoding: 'utf8', timeout: 20_000 })
    assert.notEqual(stdout, '', `it hangs, or ends without a word\n${stderr}`)
    const { lines, ...stats } = JSON.parse(stdout)
    if (folder === 'undici6') {
      for (const line of lines) assert.match(line ?? '', NEEDS)
      assert.deepEqual(stats, { inFlight: 0, waiting: 0, settled: 0 })
    } else {
      assert.deepEqual(lines, ['page', 'page'])
      assert.deepEqual(stats, { inFlight: 0, waiting: 0, settled: 2 })
    }
  })
}

test('npm installs it beside undici 6 without a word', (t) => {
  const old = join(runtimes, 'undici6')
  if (skipUnless(existsSync(old))) return t.skip('not installed')
  const dependencies = { autothrottle: `file:${tarball}`, undici: `file:${old}` }
  writeFileSync(
    join(scratch, 'package.json'),
    JSON.stringify({ private: true, type: 'module', dependencies }),
  )
  const args = [
    'install',
    '--strict-peer-deps',
    '--no-audit',
    '--no-fund',
    '--offline',
    '--install-links',
    '--ignore-scripts',
  ]
  const { status, stderr } = spawnSync('npm', args, { cwd: scratch, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.doesNotMatch(stderr, /ERESOLVE|peer/)
  const program = "import { createThrottle } from 'autothrottle'; console.log(typeof createThrottle().fetch)"
  const ran = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: scratch,
    encoding: 'utf8',
  })
  assert.equal(ran.stdout, 'function\n', ran.stderr)
})
