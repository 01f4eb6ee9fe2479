/**
 * Brings the simulator in, on first use and synchronously. A module of its own: throttles do not carry it.
 */
import { initSync, simulate } from '../../../pkg/simulator.js'
import packed from '../../../pkg/simulator.packed.js'
import { loader } from './bytes.js'

const { provide, prepare } = loader(packed, initSync)

export { provide }

/** The simulator, ready for use. */
export function loadSimulator(): typeof simulate {
  prepare()
  return simulate
}
