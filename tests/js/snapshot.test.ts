/** What was learned survives the process, on another clock. What it is, `tests/native/snapshot.rs` says. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createThrottle, type Snapshot, SnapshotError, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/'
const options: ThrottleOptions = {
  defaults: { delay: 100, slotDelay: 0, jitter: false, autothrottle: { startDelay: 5000 } },
}

/**
 * Takes a snapshot as a file would carry it, and goes on `offline` ms later on a clock that starts anywhere.
 */
function moved(snapshot: Snapshot, clock: FakeClock, offline: number, start = 3) {
  const next = new FakeClock(start, clock.wallNow() + offline)
  return {
    clock: next,
    throttle: createThrottle({ ...options, clock: next, snapshot: JSON.parse(JSON.stringify(snapshot)) }),
  }
}

test('a crawl goes on at the learned pace, also on a clock that starts at 0', async () => {
  const clock = new FakeClock(50_000)
  const throttle = createThrottle({ ...options, clock })
  for (let index = 0; index < 12; index++) {
    const done = throttle.run(page, () => {
      clock.jump(300)
      return { status: 200 }
    })
    await clock.advance(6000)
    await done
  }
  const learned = throttle.scope('a.example').stats.delayMs
  assert.ok(learned > 300 && learned < 303, `${learned}`)
  const last = throttle.acquire(page)
  await clock.advance(0)
  ;(await last).settle()
  await clock.advance(100)
  const { throttle: next, clock: other } = moved(throttle.snapshot(), clock, 50, 0)
  assert.equal(next.scope('a.example').stats.delayMs, learned)
  const peek = next.peek(page)
  assert.equal(peek.reason, 'delay')
  assert.ok(Math.abs(peek.at - (learned - 150)) < 0.01, 'the last send is remembered, offline time counts')
  assert.ok(peek.at > other.now())
})

test('a bad snapshot is an error that names every problem', () => {
  const good = { version: 1, wallMs: 5, scopes: {} }
  const wrong: [unknown, string][] = [
    [null, ''],
    [[], ''],
    [{}, 'version'],
    [{ ...good, wallMs: Number.NaN }, 'wallMs'],
    [{ ...good, scopes: { 'a.example': 1 } }, 'scopes."a.example"'],
    [{ ...good, scopes: { a: { rests: [1, Number.POSITIVE_INFINITY] } } }, 'scopes.a.rests[1]'],
    [{ ...good, scopes: { a: { what: 1 } } }, 'scopes.a.what'],
  ]
  for (const [snapshot, path] of wrong) {
    assert.throws(
      () => createThrottle({ snapshot: snapshot as Snapshot }),
      (error: SnapshotError) => {
        assert.ok(error instanceof SnapshotError, String(error))
        assert.equal(error.code, 'ERR_SNAPSHOT')
        assert.equal(error.path, path, error.message)
        return true
      },
    )
  }
  assert.throws(
    () => createThrottle({ snapshot: { version: 2, scopes: { a: 1 } } as never }),
    /version: .*\nscopes\.a: /,
  )
})
