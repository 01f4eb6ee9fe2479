/** Programs that end while requests wait say so; those that end by themselves are silent. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const WAITS =
  /never-sent: the program ends while requests wait for a\.example: 1; in flight and never settled: 1/

function run(body: string) {
  const listen =
    "throttle.addEventListener('warning', ({ code, message }) => console.log(code + ': ' + message))"
  const script = `import { createThrottle } from 'autothrottle'; const url = 'https://a.example/'
    const throttle = createThrottle({ delay: 0 }); ${listen}; ${body}`
  const args = ['--import', 'tsx', '--input-type=module', '-e', script]
  return spawnSync(process.execPath, args, { encoding: 'utf8', cwd: new URL('../..', import.meta.url) })
}

test('a permit that is never settled: the program says what waits when it ends', () => {
  const top = run('await throttle.acquire(url); await throttle.acquire(url)')
  assert.match(top.stdout, WAITS)
  assert.equal(top.status, 13)
  const inMain = run(
    'async function main() { await throttle.acquire(url); await throttle.acquire(url) }; main()',
  )
  assert.match(inMain.stdout, WAITS)
  assert.equal(inMain.stdout.trim().split('\n').length, 1)
  assert.equal(inMain.status, 0)
})

test('a permit that is never settled, and no request waits for it: the program says so when it ends', () => {
  const one = run(
    'const permit = await throttle.acquire(url); (await throttle.acquire("https://b.example/")).settle()',
  )
  assert.match(
    one.stdout,
    /^permit-lost: the program ends, and 1 request was never settled: use `run`, or `using/,
  )
  assert.equal(one.stdout.trim().split('\n').length, 1)
  assert.equal(one.status, 0)
})

test('what never ends, or is never let go, is told by its name', () => {
  const never = 'new Promise(() => {})'
  const told: [string, RegExp][] = [
    [
      `await throttle.run(url, () => ${never})`,
      /^permit-lost: .* 1 request was never settled: a function of run/,
    ],
    [
      `for await (const one of throttle.map([url], () => ${never})) one`,
      /^permit-lost: .*: a function of run/,
    ],
    [
      'throttle.pause(); await throttle.fetch(url)',
      /^never-sent: .* a\.example: 1; the throttle is paused: resume/,
    ],
    [`await with_({ fetch: () => ${never} })`, /^permit-lost: .* 1 request was never settled/],
    [`await with_({ getScopes: () => ${never} })`, /^never-sent: .* wait for getScopes or robots\.txt: 1$/],
    [`await with_({ robots: { userAgent: 'b' }, fetch: () => ${never} })`, /^never-sent: .* robots\.txt: 1$/],
  ]
  const others = `const with_ = (options) => {
    const other = createThrottle(options)
    other.addEventListener('warning', ({ code, message }) => console.log(code + ': ' + message))
    return other.fetch(url)
  };`
  for (const [body, want] of told) {
    const { stdout, status } = run(`${others}${body}`)
    assert.match(stdout.trim(), want, body)
    assert.equal(stdout.trim().split('\n').length, 1, stdout)
    assert.equal(status, 13, body)
  }
})

test('a program that ends with nothing waiting, or on purpose, says nothing', () => {
  const settled =
    'const permit = await throttle.acquire(url); const next = throttle.acquire(url); permit.settle()'
  for (const body of [
    `${settled}; (await next).settle()`,
    'await throttle.acquire(url); throttle.acquire(url); process.exit()',
    'await throttle.acquire(url); throttle.acquire(url).catch(() => {}); throttle.close()',
  ]) {
    const { stdout, stderr, status } = run(body)
    assert.deepEqual({ stdout, stderr, status }, { stdout: '', stderr: '', status: 0 })
  }
})
