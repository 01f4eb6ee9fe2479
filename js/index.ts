export type { Peek, Reason, ScopeStats, Snapshot, Stats } from './engine.js'
export {
  BodyNotReplayableError,
  ClosedError,
  ConfigError,
  CostExceedsQuotaError,
  DisallowedError,
  ManagerError,
  type Problem,
  QueueFullError,
  RetryAfterTooLongError,
  SnapshotError,
  StalledError,
  ThrottleError,
  TimeoutError,
} from './errors.js'
export type {
  ScopeEvent,
  SendEvent,
  SettleEvent,
  StallEvent,
  ThrottleEvents,
  WarningEvent,
} from './events.js'
export type { HeaderMap, HeadersLike, Hints, QuotaHint, SomeHints } from './hints.js'
export { type ByIpOptions, byIp } from './ip.js'
export { type Build, build } from './load/build.js'
export {
  addScope,
  type Backoffs,
  byDomainHierarchy,
  byEndpoint,
  byHost,
  type GetErrorBackoff,
  type GetResponseBackoff,
  type GetResponseDelay,
  type GetScopes,
  type ScopeBackoff,
  type ScopeRequest,
  updateScopeBackoff,
} from './managers.js'
export type { MapOptions } from './map.js'
export type {
  AutoThrottleOptions,
  BackoffOptions,
  Clock,
  EngineOptions,
  Jitter,
  QuotaOptions,
  RampupOptions,
  ScopeOptions,
  ThrottleOptions,
} from './options.js'
export type { Permit, PermitOutcome } from './permit.js'
export type { RetryOptions } from './retry.js'
export type { RobotsOptions, RobotsRules } from './robots.js'
export type { ScopeControl } from './scope-control.js'
export type { MakeScopeManager, ManagedAnswer, ManagedSend, ScopeManager } from './scope-manager.js'
export type { Scopes, Target } from './scopes.js'
export { fromScrapySettings, type ScrapySettings } from './scrapy.js'
export {
  createThrottle,
  type FetchOptions,
  type RequestOptions,
  type Throttle,
  type ThrottledRequestInit,
  throttledFetch,
} from './throttle.js'
