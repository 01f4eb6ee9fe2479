/** The module of shared limits where an entry brings it: this one has no bytes. */
import { NotInitializedError } from '../../base/errors.js'

/** @throws {NotInitializedError} always. */
export function sharedModule(): never {
  throw new NotInitializedError()
}
