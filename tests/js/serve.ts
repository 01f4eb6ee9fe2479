/** Servers of this machine, each on a free port. They and their connections end when a file's tests have. */
import type { RequestListener } from 'node:http'
import { after } from 'node:test'
import { listen } from '../serve.mjs'

/** Where it listens: an origin. */
export async function serve(answer: RequestListener): Promise<string> {
  const { url, stop } = await listen(answer)
  after(stop)
  return url
}

/** An origin where no server listens. */
export async function deadOrigin(): Promise<string> {
  const { url, server } = await listen(() => {})
  await new Promise((resolve) => server.close(resolve))
  return url
}
