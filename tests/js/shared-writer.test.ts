/**
 * A writer alone, and a clock that the test moves.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Writer } from '../../js/shared/writer.js'

test('a writer that slept counts the silence of the others anew', () => {
  for (const slept of [true, false]) {
    let [now, granted] = [1000, 0]
    const link = {
      ...{ id: 'w', epoch: 2, hash: '', leaseMs: 1500, isAlone: false, isPrompt: false },
      ...{ isGood: () => true, offsetMs: () => undefined, grant: () => granted++ },
      ...{ tell: () => {}, soon: () => {}, differs: () => {} },
    }
    const writer = new Writer(
      link,
      { defaults: { delay: 0, slotDelay: 0, concurrency: 1 } },
      { now: () => now, wallNow: () => 1e12, setTimeout: () => 0, clearTimeout: () => {} },
      { state: undefined, ageMs: 0, former: undefined, gone: undefined, snapshot: undefined },
    )
    const ask = { attempt: 0, names: ['x'], cost: 1, priority: 0, delay: 0, waited: 5 }
    const story = { type: 'hello', epoch: 2, hello: 1, orders: [], hash: '', watch: 0 } as const
    // One has the slot, and is stopped as this process is; another waits for it.
    writer.hear({ ...story, from: 'a', waiting: [], flying: [{ ...ask, id: 0, sentAgo: 10 }] })
    for (let beat = 0; beat < 9; beat++) {
      now += slept && beat > 0 ? 0 : slept ? 4500 : 500
      writer.beat()
    }
    writer.hear({ ...story, from: 'b', waiting: [{ ...ask, id: 0 }], flying: [] })
    assert.equal(granted, slept ? 0 : 1)
    writer.stop()
  }
})
