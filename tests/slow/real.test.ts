/**
 * The few tests with real time and a real server: a fake clock cannot show that real fetch, real timers and a
 * real 429 fit together, and that a process ends when it should. No assertion here is about how long anything
 * takes, only that no request is early.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createThrottle } from 'autothrottle'
import { llmFetch } from 'autothrottle/llm'
import { deadOrigin, serve } from '../js/serve.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

function run(args: string[], signalAfter?: { text: RegExp; signal: NodeJS.Signals }) {
  return new Promise<{ code: number | null; output: string }>((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root })
    let output = ''
    const hear = (chunk: Buffer) => {
      output += chunk
      if (signalAfter?.text.test(output)) {
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

test('real fetch, real timers, a real server: every permit is a delay after the one before', async () => {
  let arrived = 0
  const url = await serve((_, response) => response.end(String(++arrived)))
  const sends: number[] = []
  const throttle = createThrottle({ defaults: { concurrency: 2, delay: 30, slotDelay: 0, jitter: false } })
  const get = () =>
    throttle.run(url, ({ sentAt }) => {
      sends.push(sentAt)
      return fetch(url)
    })
  const responses = await Promise.all([throttle.fetch(url), get(), get(), get(), get()])
  assert.deepEqual(
    new Set(await Promise.all(responses.map((each) => each.text()))),
    new Set(['1', '2', '3', '4', '5']),
  )
  for (let index = 1; index < sends.length; index++) {
    assert.ok(sends[index]! - sends[index - 1]! >= 30, `${sends}`)
  }
  assert.equal(throttle.stats().settled, 5)
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
  const { code, output } = await run(['--import', 'tsx', 'examples/start.ts', '--max-pages', '8'])
  assert.equal(code, 0, output)
  assert.match(output, /\n8 pages, .* \(as many as asked for\)\n/)
  assert.match(output, /answers {5}200 × \d+/)
})

test('Ctrl-C stops the crawl and keeps what it had', async () => {
  const args = ['--import', 'tsx', 'examples/start.ts', '--max-pages', '5000', '--delay', '50']
  const { code, output } = await run(args, { text: /in flight/, signal: 'SIGINT' })
  assert.equal(code, 130, output)
  assert.match(output, /\n\d+ pages?, .* \(stopped\)\n/)
})

test('a crawl that is interrupted goes on at the learned pace in a new process', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'autothrottle-'))
  const state = join(folder, 'state.json')
  const { port } = new URL(await deadOrigin())
  const crawl = ['--import', 'tsx', 'examples/start.ts', '--port', port, '--state', state]
  const delay = () =>
    JSON.parse(readFileSync(`${state}.pace`, 'utf8')).scopes[`127.0.0.1:${port}`].delaySeconds
  try {
    // A pace is learned from answers: the crawl is stopped once there are some.
    const learns = { text: /\b([3-9]|\d\d+) pages/, signal: 'SIGINT' } as const
    const stopped = await run([...crawl, '--max-pages', '5000'], learns)
    assert.equal(stopped.code, 130, stopped.output)
    const learned = delay()
    assert.notEqual(learned, 0.25, 'the delay to start with')
    // No server runs any more: without answers the pace stays, so what is remembered is what was taken up.
    rmSync(state)
    const alone = ['--delay', '0', '--retries', '0', '--ignore-robots']
    const next = await run([...crawl, ...alone, `http://127.0.0.1:${port}/`])
    assert.equal(next.code, 1, next.output)
    assert.match(next.output, /failed {6}1\n/)
    assert.equal(delay(), learned)
    writeFileSync(`${state}.pace`, '{"version":2,"scopes":{}}')
    const refused = await run(crawl)
    assert.equal(refused.code, 2, refused.output)
    assert.match(refused.output, /version: want 1, the only version this release knows; got 2/)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

/**
 * The bytes that this process reads although its reader stopped: undici counts it at its socket. The kernel's
 * buffers beyond that are its own. A fake clock has no sockets.
 */
test('behind a reader that stops stand at most 256 kB, as with plain fetch', async () => {
  const part = `data: ${'x'.repeat(16_000)}\n\n`
  let isFull = false
  const origin = await serve((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    let written = 0
    const write = () => {
      isFull = false
      while (written < 200e6) {
        written += part.length
        if (!response.write(part)) {
          isFull = true
          return void response.once('drain', write)
        }
      }
    }
    write()
  })
  const url = `${origin}/v1/chat/completions`
  const body = JSON.stringify({ model: 'm', max_tokens: 10, stream: true, messages: [] })
  let socket!: Socket
  const sent = (message: unknown) => {
    socket = (message as { socket: Socket }).socket
  }
  const behind = async (send: typeof fetch) => {
    const reader = (await send(url, { method: 'POST', body })).body!.getReader()
    const { value } = await reader.read()
    // The server waits, and a thousand turns of the loop read no byte: this process wants none.
    for (let before = -1, rests = 0; rests < 1000; before = socket.bytesRead) {
      await turn()
      rests = isFull && before === socket.bytesRead ? rests + 1 : 0
    }
    const most = socket.bytesRead - value!.length
    await reader.cancel()
    return most
  }
  subscribe('undici:client:sendHeaders', sent)
  const plain = await behind(fetch)
  const ours = await behind(llmFetch(createThrottle({ delay: 0, warnings: false })))
  unsubscribe('undici:client:sendHeaders', sent)
  assert.ok(ours <= plain + 2 * part.length, `${ours} bytes, ${plain} with plain fetch`)
  assert.ok(ours <= 256e3, `${ours} bytes`)
})
