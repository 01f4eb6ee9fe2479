/** Servers of this machine, each on a free port. They and their connections end when a file's tests have. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

const servers: Server[] = []
after(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
})

/** Where it listens: an origin. */
export async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** An origin where no server listens. */
export async function deadOrigin(): Promise<string> {
  const origin = await serve(() => {})
  await new Promise((resolve) => servers.pop()!.close(resolve))
  return origin
}
