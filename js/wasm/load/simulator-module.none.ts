/** The simulator's module where an entry brings it: it is not here. */
import { NotInitializedError } from '../../base/errors.js'

/** @throws {NotInitializedError} always. */
export function simulatorModule(): never {
  throw new NotInitializedError()
}
