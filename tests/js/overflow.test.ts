/** A stack overflow that your program caught: the throttle says what became of it, in whichever call. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

const cwd = new URL('../..', import.meta.url)

/** Recursion until a call into the engine is where the stack ends; `then` is what happens next. */
function run(then: string, shared = 'undefined') {
  const script = `
    import { createThrottle, EngineBrokenError } from 'autothrottle'
    import { local } from 'autothrottle/local'
    const free = { delay: 0, slotDelay: 0, concurrency: 2, defaults: { concurrency: 2 }, warnings: false }
    const throttle = createThrottle({ ...free, shared: ${shared} })
    const url = 'https://a.example/'
    process.on('uncaughtException', (error) => console.log('uncaught ' + error.code))
    const held = [await throttle.acquire(url), await throttle.acquire(url)]
    const waits = throttle.acquire(url).then(() => 'went', (error) => error.code)
    const deep = (...pad) => { throttle.scope('a.example').stats; throttle.peek(url); deep(...pad) }
    const probe = () => { try { throttle.stats(); throttle.peek(url); throttle.scope("q").pause(); return true } catch (error) { return error.code } }
    for (let pad = 0; pad < 300 && probe() === true; pad++)
      try { deep(...Array(pad % 97)) } catch {}
    console.log(probe())
    ${then}`
  const args = ['--import', 'tsx', '--input-type=module', '-e', script]
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', cwd, timeout: 60_000 } as const)
  return stdout.trim().split('\n')
}

const CODE = 'ERR_ENGINE_BROKEN'

test('an overflow in a call: what waits is rejected, each later call says so, and another throttle works', () => {
  const lines = run(
    `const heard = await throttle.acquire(url).catch((error) => error)
    console.log(await waits, heard.code, heard instanceof EngineBrokenError, heard.message)
    for (const permit of held) permit.settle({ status: 200 })
    await throttle.idle()
    throttle.close()
    for (const call of ['run', 'fetch', 'wrap'])
      console.log(await throttle[call === 'wrap' ? 'run' : call](url, call === 'fetch' ? {} : () => 1).catch((error) => error.code))
    const other = createThrottle(free)
    console.log(await other.run(url, () => 'works'))`,
  )
  assert.equal(lines[0], CODE)
  assert.match(
    lines[1]!,
    /^ERR_ENGINE_BROKEN ERR_ENGINE_BROKEN true .*end that recursion, and make a new throttle/,
  )
  assert.deepEqual(lines.slice(2), [CODE, CODE, CODE, 'works'])
})

test('nothing is thrown where nobody catches it, and no call is needed to hear of it', () => {
  const lines = run('console.log(await waits)')
  assert.deepEqual(lines, [CODE, CODE])
  const settled = run('held[0].settle(); throttle.close(); console.log(await waits)')
  // Who settles hears it, as who asks does.
  assert.deepEqual(settled, [CODE, `uncaught ${CODE}`])
})

test('so it is in the module of shared limits, and a process that was broken off leaves its group', () => {
  const folder = mkdtempSync(join(tmpdir(), 'overflow-'))
  try {
    const shared = `local({ name: 'broken', folder: ${JSON.stringify(folder)} })`
    const lines = run(
      `console.log(await waits)
      for (const permit of held) permit.settle({ status: 200 })
      console.log(await throttle.run(url, () => 1).catch((error) => error.code))
      await throttle.idle()
      await throttle[Symbol.asyncDispose]()
      const other = createThrottle({ ...free, shared: ${shared} })
      console.log(await other.run(url, () => 'works'))
      other.close()`,
      shared,
    )
    assert.deepEqual(lines, [CODE, CODE, CODE, 'works'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
