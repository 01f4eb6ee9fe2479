/** The module of shared limits where an entry brings it: nothing is here. */
import { NotInitializedError } from '../../base/errors.js'

/** @throws {NotInitializedError} always. */
export function sharedModule(): never {
  throw new NotInitializedError()
}
