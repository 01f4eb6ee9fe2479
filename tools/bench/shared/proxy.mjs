/** Ways that are worse than loopback's: TCP proxies. */
import { connect, createServer } from 'node:net'

/** A way that takes its time: it holds back each piece, in order, by 25 ms give or take 10. */
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

/**
 * A way that breaks: `cut(ms)` ends all connections and refuses others for that long; `hollow()` leaves those
 * open that have subscribed, and carries no more messages by them; `hollow('commands')` the others.
 */
export async function openWay(port) {
  const pairs = new Set()
  let cutUntil = 0
  const server = createServer({ noDelay: true }, (near) => {
    if (performance.now() < cutUntil) return near.destroy()
    const far = connect({ port, host: '127.0.0.1', noDelay: true })
    const pair = { near, far, hears: false, isHollow: false }
    pairs.add(pair)
    near.on('data', (piece) => {
      pair.hears ||= piece.includes('subscribe')
      if (!pair.isHollow) far.write(piece)
    })
    far.on('data', (piece) => {
      if (!pair.isHollow) near.write(piece)
    })
    for (const [one, other] of [
      [near, far],
      [far, near],
    ]) {
      one.on('error', () => {})
      one.on('close', () => {
        pairs.delete(pair)
        other.destroy()
      })
    }
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const end = () => {
    for (const { near } of pairs) near.destroy()
  }
  return {
    port: server.address().port,
    cut(ms) {
      cutUntil = performance.now() + ms
      end()
    },
    hollow(which = 'messages') {
      for (const pair of pairs) pair.isHollow = pair.hears === (which === 'messages')
    },
    stop() {
      end()
      server.close()
    },
  }
}
