//! What people may look at: the state of scopes, what really happened in the last minute, settings without
//! effect. It only watches; no decision depends on it.

mod meter;
mod notices;
mod stats;

pub use self::{
    meter::Effective,
    notices::{Diagnostic, Notice, Pace, Watch},
    stats::{BudgetStats, ScopeStats, Stats},
};
pub(crate) use self::{
    meter::{Activity, Meter},
    notices::{Seen, Settled, Wait},
};
