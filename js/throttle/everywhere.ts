/** The exports that the main entry and `autothrottle/slim` have in common: all that a page can use. */
export type { HeadersLike, Hints, QuotaHint, SomeHints } from '../answers/headers.js'
export {
  ClosedError,
  ConfigError,
  CostExceedsQuotaError,
  DisallowedError,
  NestedError,
  type Problem,
  RetryAfterTooLongError,
  SnapshotError,
  ThrottleError,
  TimeoutError,
} from '../base/errors.js'
export type { ThrottleEvents } from '../core/events.js'
export type { MapOptions } from '../core/map.js'
export type { Permit, PermitOutcome } from '../core/permit.js'
export type { FetchOptions, RequestOptions, RunOptions, ThrottledRequestInit } from '../core/requests.js'
export type { RobotsRules } from '../fetch/robots.js'
export type * from '../options/options.js'
export type { ScopeControl } from '../scopes/control.js'
export {
  addScope,
  type Backoffs,
  byDomainHierarchy,
  byEndpoint,
  byHost,
  type GetErrorBackoff,
  type GetHints,
  type GetResponseBackoff,
  type GetResponseDelay,
  type GetScopes,
  type ScopeBackoff,
  type ScopeRequest,
  updateScopeBackoff,
} from '../scopes/hooks.js'
export type { Scopes, Target } from '../scopes/names.js'
export type { MakeScopeManager, ManagedAnswer, ManagedSend, ScopeManager } from '../scopes/strategy.js'
export type { BudgetStats, Peek, Reason, ScopeStats, Snapshot, Stats } from '../wasm/engine.js'
export type { Build } from '../wasm/load/build.js'
export { createThrottle, type Throttle, throttledFetch } from './throttle.js'

// written by `cargo xtask write`: errors of one form

export {
  BodyNotReplayableError,
  EngineBrokenError,
  ManagerError,
  QueueFullError,
  ScopeDownError,
  StalledError,
  WasmBlockedError,
} from '../base/errors.js'

// end of what is written

// written by `cargo xtask write`: classes of events

export type {
  CancelEvent,
  QueuedEvent,
  ScopeEvent,
  SendEvent,
  SettleEvent,
  SharedEvent,
  StallEvent,
  WarningEvent,
} from '../core/events.js'

// end of what is written
