/** Words in the names of fields that tell of limits: `crates/reading/src/headers/dialects.rs`, by `cargo xtask write`. */
export const SAYS_SOMETHING =
  /retry-after|should-retry|ratelimit|rate-limit|call-limit|x-mbx-|limit-per-|remaining-t|burst-throttle|token-bucket/i
