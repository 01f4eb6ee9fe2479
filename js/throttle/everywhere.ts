/** The exports that the main entry and `autothrottle/slim` have in common: all that a page can use. */
export type { HeadersLike, Hints, QuotaHint, SomeHints } from '../answers/headers.js'
export {
  BodyNotReplayableError,
  ClosedError,
  ConfigError,
  CostExceedsQuotaError,
  DisallowedError,
  EngineBrokenError,
  ManagerError,
  NestedError,
  type Problem,
  QueueFullError,
  RetryAfterTooLongError,
  ScopeDownError,
  SnapshotError,
  StalledError,
  ThrottleError,
  TimeoutError,
  WasmBlockedError,
} from '../base/errors.js'
export type {
  CancelEvent,
  QueuedEvent,
  ScopeEvent,
  SendEvent,
  SettleEvent,
  SharedEvent,
  StallEvent,
  ThrottleEvents,
  WarningEvent,
} from '../core/events.js'
export type { MapOptions } from '../core/map.js'
export type { Permit, PermitOutcome } from '../core/permit.js'
export type { FetchOptions, RequestOptions, RunOptions, ThrottledRequestInit } from '../core/requests.js'
export type { RobotsRules } from '../fetch/robots.js'
export type {
  AutoThrottleOptions,
  BackoffOptions,
  Clock,
  EngineOptions,
  HeaderMap,
  Jitter,
  QuotaOptions,
  RampupOptions,
  Rate,
  RateOptions,
  RetryOptions,
  RobotsOptions,
  ScopeOptions,
  ThrottleOptions,
} from '../options/options.js'
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
