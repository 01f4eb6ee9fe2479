/** Browsers without a driver: a page posts what it found. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listen } from './serve.mjs'

export const BROWSERS = [
  {
    name: 'Chromium',
    command: 'chromium',
    args: (profile, url) => [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
      `--user-data-dir=${profile}`,
      url,
    ],
  },
  {
    name: 'Firefox',
    command: 'firefox-esr',
    args: (profile, url) => ['--headless', '--no-remote', '--profile', profile, url],
  },
]

/** Opens a page of these files; gives what it posts. */
export async function posted({ command, args }, files, path = '/') {
  const profile = mkdtempSync(join(tmpdir(), 'autothrottle-browser-'))
  let settle
  const result = new Promise((resolve, reject) => {
    settle = { resolve, reject }
  })
  const server = await listen((request, response) => {
    if (request.method !== 'POST') return files(request, response)
    const parts = []
    request.on('data', (part) => parts.push(part))
    request.on('end', () => {
      response.end()
      settle.resolve(Buffer.concat(parts).toString())
    })
  })
  const url = server.url + path
  const env = { ...process.env, HOME: profile }
  // In a group of its own, which ends with its children.
  const browser = spawn(command, args(profile, url), { stdio: 'ignore', env, detached: true })
  browser.on('error', settle.reject)
  browser.on('exit', (code) => settle.reject(new Error(`${command} ended with ${code}`)))
  const patience = setTimeout(() => settle.reject(new Error(`${command} said nothing for 100 s`)), 100_000)
  try {
    return await result
  } finally {
    clearTimeout(patience)
    browser.removeAllListeners('exit')
    if (browser.exitCode === null && browser.pid !== undefined) {
      const ended = new Promise((resolve) => browser.once('exit', resolve))
      process.kill(-browser.pid, 'SIGKILL')
      await ended
    }
    server.stop()
    // Files that are still written there are no fault of the test.
    try {
      rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    } catch (error) {
      console.error(`${profile} stays: ${error.message}`)
    }
  }
}
