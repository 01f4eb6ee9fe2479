/** The simulator's module where an entry brings it: nothing is here. */
import { NotInitializedError } from '../../base/errors.js'

/** @throws {NotInitializedError} always. */
export function simulatorModule(): never {
  throw new NotInitializedError()
}
