//! What has to happen in Redis at once, as scripts: it runs one alone, and fences by it. What a leader says is
//! published by the script that looks at the lease. Every language runs these files: Python and Rust from
//! here, JavaScript from what the build writes.
//!
//! A fourth key is given in a cluster. Then a script publishes to one shard, unless a process is there that
//! does not hear that: it says so (`plain`) in this key, whenever it renews or asks the leader.
//!
//! No clock of a process counts. Only the store's `TIME` is read, and only to age a snapshot.

/// Takes the lease that no other process has.
pub const COMPETE: &str = concat!(include_str!("store/claim.lua"), include_str!("store/compete.lua"));
/// Keeps the lease, and stores a snapshot.
pub const RENEW: &str = concat!(include_str!("store/claim.lua"), include_str!("store/renew.lua"));
/// Publishes what the leader says.
pub const SEND: &str = concat!(include_str!("store/claim.lua"), include_str!("store/send.lua"));
/// Gives the lease back.
pub const RELEASE: &str = include_str!("store/release.lua");
/// Publishes what a member of a cluster says to the leader.
pub const TELL: &str = concat!(include_str!("store/claim.lua"), include_str!("store/tell.lua"));
