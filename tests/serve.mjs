/** A server on this machine, on a free port: for tests and benches. */
import { createServer } from 'node:http'

/** Serves by `answer`, until it is stopped. */
export async function listen(answer) {
  const server = createServer(answer)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  const stop = () => {
    server.closeAllConnections()
    server.close()
  }
  return { server, port, url: `http://127.0.0.1:${port}`, stop }
}
