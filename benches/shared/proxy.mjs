/** A way that takes its time: a TCP proxy that holds back each piece, in order, by 25 ms give or take 10. */
import { connect, createServer } from 'node:net'

export async function slowWay(port, { least = 15, more = 20 } = {}) {
  const sockets = new Set()
  const pipe = (from, to) => {
    let due = 0
    sockets.add(from)
    from.on('data', (piece) => {
      due = Math.max(due, performance.now() + least + more * Math.random())
      setTimeout(() => to.writable && to.write(piece), due - performance.now())
    })
    from.on('error', () => {})
    from.on('close', () => {
      sockets.delete(from)
      setTimeout(() => to.destroy(), least + more)
    })
  }
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ port, host: '127.0.0.1', noDelay: true })
    pipe(near, far)
    pipe(far, near)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stop = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  return { port: server.address().port, stop }
}
