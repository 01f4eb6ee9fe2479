//! The view for people: the state of scopes, what really happened in the last minute, settings without
//! effect. It only watches; no decision depends on it.

mod errors;
mod events;
mod meter;
mod notices;
mod silence;
mod stats;
mod warnings;

pub use self::{
    errors::{ERRORS, ErrorForm, ErrorRow},
    events::{EVENTS, EventForm, EventRow, FieldType},
    meter::{Effective, Shares},
    notices::{Diagnostic, Heard, Held, Named, Notice, Pace, Stall, Watch},
    silence::{Silence, UNTOLD, Word},
    stats::{BudgetStats, ScopeStats, SharedStats, Stats},
    warnings::{WARNINGS, Warning},
};
pub(crate) use self::{
    meter::{Activity, Meter},
    notices::{Seen, Settled, Wait},
};
