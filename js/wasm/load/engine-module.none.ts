/** The engine's module where an entry brings it: it is not here. */
import { NotInitializedError } from '../../base/errors.js'

/** @throws {NotInitializedError} always. */
export function engineModule(): never {
  throw new NotInitializedError()
}
