/**
 * Where the WebAssembly modules come from, readable at run time.
 */
import { build as made, slim } from '../../../pkg/build.js'

/** The package's version, the git revision of the sources, and SHA-256 of each module. */
export interface Build {
  /** As in package.json. */
  readonly version: string
  /** The commit, with `+` behind it if files were changed since; `unknown` outside of git. */
  readonly revision: string
  /** SHA-256 of `pkg/NAME_bg.wasm`, in hexadecimal, by name. */
  readonly modules: Readonly<Record<string, string>>
}

/** The version and the hash of the sources of this copy of the package. */
export const build: Build = made

/** The same of a copy that has the engine's module alone. */
export const slimBuild: Build = slim
