export type { Peek, Reason, ScopeStats, Snapshot, Stats } from './engine.js'
export {
  ClosedError,
  ConfigError,
  CostExceedsQuotaError,
  type Problem,
  QueueFullError,
  SnapshotError,
  ThrottleError,
  TimeoutError,
} from './errors.js'
export type {
  AutoThrottleOptions,
  Clock,
  EngineOptions,
  Jitter,
  QuotaOptions,
  ScopeOptions,
  ThrottleOptions,
} from './options.js'
export type { Permit, PermitOutcome } from './permit.js'
export type { Scopes, Target } from './scopes.js'
export {
  createThrottle,
  type FetchOptions,
  type RequestOptions,
  type ScopeControl,
  type Throttle,
  type ThrottledRequestInit,
  type ThrottleEvents,
  throttledFetch,
  type WarningEvent,
} from './throttle.js'
