/**
 * Processes that share a limit, under faults: what must hold of their sum, over many seeds. `SEEDS=10000`
 * plays more of them.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { play } from './shared/play.js'

const SEEDS = Number(process.env.SEEDS ?? 1000)

test('without faults no limit is broken, and everything is sent', async () => {
  for (let seed = 0; seed < 20; seed++) {
    const { problems, sends } = await play(seed, { isCalm: true })
    assert.deepEqual(problems, [], `seed ${seed}`)
    assert.ok(sends > 20, `seed ${seed}: only ${sends} sent`)
  }
})

test('messages lost, late, twice and in disorder; processes killed, stopped, cut off and new', async () => {
  let [sends, takeovers] = [0, 0]
  for (let seed = 0; seed < SEEDS; seed++) {
    const played = await play(seed)
    assert.deepEqual(played.problems, [], `seed ${seed}: ${played.faults.join('; ')}`)
    sends += played.sends
    takeovers += played.takeovers
  }
  assert.ok(sends > 30 * SEEDS && takeovers > SEEDS / 4, `${sends} sends, ${takeovers} takeovers`)
})
