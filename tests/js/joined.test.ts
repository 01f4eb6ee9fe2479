/** Signals joined where `AbortSignal.any` is missing: aborted by either, and forgotten with the request. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { joined } from '../../js/base/joined.js'

const { any } = AbortSignal
before(() => Reflect.deleteProperty(AbortSignal, 'any'))
after(() => Object.assign(AbortSignal, { any }))

test('the caller and we can abort, also one that is aborted already', () => {
  for (const who of ['caller', 'us', 'before'] as const) {
    const [caller, own] = [new AbortController(), new AbortController()]
    if (who === 'before') caller.abort('before')
    const signal = joined(caller.signal, own)
    if (who === 'caller') caller.abort('caller')
    if (who === 'us') own.abort('us')
    assert.equal(signal.aborted, true)
    assert.equal(signal.reason, who)
  }
  const own = new AbortController()
  assert.equal(joined(null, own), own.signal)
})

test('a signal that lives on keeps no request', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  const { signal } = new AbortController()
  let listeners = 0
  const { addEventListener, removeEventListener } = signal
  signal.addEventListener = (...args: Parameters<AbortSignal['addEventListener']>) => {
    listeners++
    addEventListener.apply(signal, args)
  }
  signal.removeEventListener = (...args: Parameters<AbortSignal['removeEventListener']>) => {
    listeners--
    removeEventListener.apply(signal, args)
  }
  for (let index = 0; index < 100; index++) joined(signal, new AbortController())
  assert.equal(listeners, 100)
  for (let turn = 0; turn < 20 && listeners > 0; turn++) {
    collect()
    await setImmediate()
  }
  assert.equal(listeners, 0)
})
