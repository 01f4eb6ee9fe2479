/**
 * A real site on this machine: a tree of HTML documents, served with latency and behind a rate limit.
 *
 * The documents are the Rust toolchain's own manual where it is installed, else this package's docs as pages.
 * The limit is express-rate-limit's, as thousands of sites use it.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { rateLimit } from 'express-rate-limit'

export interface Site {
  readonly url: string
  readonly what: string
  close(): Promise<void>
}

export interface SiteOptions {
  /** Requests per second that the site allows; beyond it answers 429. */
  limit: number
  /** Milliseconds that each answer takes. */
  latency: number
  /** 0 for any that is free. */
  port: number
}

export async function serveSite({ limit, latency, port: wanted }: SiteOptions): Promise<Site> {
  const app = express()
  app.use(rateLimit({ windowMs: 1000, limit, standardHeaders: 'draft-8', legacyHeaders: false }))
  app.use(async (_request, _response, next) => {
    await sleep(latency)
    next()
  })
  const book = rustBook()
  if (book) app.use(express.static(book))
  else app.use(ownPages())
  const server = app.listen(wanted, '127.0.0.1')
  await new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    what: book ? 'the Rust toolchain’s documentation' : 'this package’s documentation',
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function rustBook(): string | undefined {
  const sysroot = spawnSync('rustc', ['--print', 'sysroot'], { encoding: 'utf8' }).stdout?.trim()
  const book = `${sysroot}/share/doc/rust/html`
  return sysroot && existsSync(`${book}/index.html`) ? book : undefined
}

function ownPages(): express.RequestHandler {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const files = ['README.md', 'CHANGELOG.md', ...readdirSync(`${root}/docs`).map((name) => `docs/${name}`)]
  const texts = new Map(files.map((file) => [`/${file}.html`, readFileSync(`${root}/${file}`, 'utf8')]))
  const links = [...texts.keys()].map((path) => `<a href="${path}">${path}</a>`).join(' ')
  return (request, response) => {
    const text = request.path === '/' ? 'Contents' : texts.get(request.path)
    if (text === undefined) response.status(404).send('no such page')
    else
      response
        .type('html')
        .send(`<title>${request.path}</title>${links}<pre>${text.replaceAll('<', '&lt;')}</pre>`)
  }
}
