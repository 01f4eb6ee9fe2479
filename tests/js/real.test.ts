/**
 * The few tests with real time and a real server: what a fake clock cannot show is that real fetch, real timers and
 * a real 429 fit together, and that a process ends when it should. No assertion here is about how long it takes.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createThrottle } from 'autothrottle'

const root = fileURLToPath(new URL('../..', import.meta.url))

function run(args: string[], signalAfter?: { text: string; signal: NodeJS.Signals }) {
  return new Promise<{ code: number | null; output: string }>((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root })
    let output = ''
    const hear = (chunk: Buffer) => {
      output += chunk
      if (signalAfter && output.includes(signalAfter.text)) {
        child.kill(signalAfter.signal)
        signalAfter = undefined
      }
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}

test('real fetch against a real server: gaps on the wire are kept', async () => {
  const arrivals: number[] = []
  const server = createServer((_request, response) => {
    arrivals.push(performance.now())
    response.end('ok')
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const sends: number[] = []
  const throttle = createThrottle({
    defaults: { concurrency: 2, delay: 30, slotDelay: 0, jitter: false },
    fetch: (input, init) => {
      sends.push(performance.now())
      return fetch(input, init)
    },
  })
  const bodies = await Promise.all(
    Array.from({ length: 6 }, async () => (await throttle.fetch(`http://127.0.0.1:${port}/`)).text()),
  )
  server.close()
  server.closeAllConnections()
  assert.deepEqual(bodies, Array(6).fill('ok'))
  assert.equal(arrivals.length, 6)
  assert.ok(sends.at(-1)! - sends[0]! >= 5 * 30 - 1, 'five gaps of 30 ms')
})

test('a finished program ends, a waiting one is kept alive, an unref’ed one is not', async () => {
  const program = (options: string, body: string) => [
    '--input-type=module',
    '-e',
    `import { createThrottle } from 'autothrottle'
     const throttle = createThrottle({ defaults: { delay: 120, jitter: false }, ${options} })
     const take = () => throttle.run('https://a.example/', () => console.log('sent'))
     ${body}`,
  ]
  const sent = ({ output }: { output: string }) => output.split('sent').length - 1
  const finished = await run(program('', 'await take()'))
  assert.deepEqual([finished.code, sent(finished)], [0, 1], finished.output)
  const waiting = await run(program('', 'take(); take()'))
  assert.deepEqual([waiting.code, sent(waiting)], [0, 2], waiting.output)
  const unref = await run(program('unref: true', 'take(); take()'))
  assert.deepEqual([unref.code, sent(unref)], [0, 1], unref.output)
})

test('the crawl of the main job: pages, a summary, and a clean end', async () => {
  const { code, output } = await run(['--import', 'tsx', 'examples/crawl.ts', '--max-pages', '8'])
  assert.equal(code, 0, output)
  assert.match(output, /\n8 pages, .* \(as many as asked for\)\n/)
  assert.match(output, /answers {3}200 × \d+/)
})

test('Ctrl-C stops the crawl and keeps what it had', async () => {
  const args = ['--import', 'tsx', 'examples/crawl.ts', '--max-pages', '0', '--min-delay', '50']
  const { code, output } = await run(args, { text: 'in flight', signal: 'SIGINT' })
  assert.equal(code, 0, output)
  assert.match(output, /\n\d+ pages, .* \(stopped\)\n/)
})

test('wrong arguments are explained', async () => {
  for (const [args, text] of [
    [['nonsense'], 'want a URL that starts with http'],
    [['--max-pages', 'many'], '--max-pages: want a number from 0; got "many"'],
    [['--concurrency', '0'], 'defaults.concurrency: want a whole number from 1'],
    [['--what'], "Unknown option '--what'"],
  ] as const) {
    const { code, output } = await run(['--import', 'tsx', 'examples/crawl.ts', ...args])
    assert.equal(code, 2, output)
    assert.ok(output.includes(text), output)
  }
})
