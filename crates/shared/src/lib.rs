//! **One limit for many processes**: who decides, who asks, and what they say to each other, as one state
//! machine without I/O, clock or chance of its own.
//!
//! Each process of a group has one [`Shared`]. It is always a *member*, which keeps the process's requests.
//! While it holds the *lease* it is the *leader* too, which runs the engine for all. Calls and [`Input`]s go
//! in, [`Effect`]s come out, and there is one [wake-up](Shared::wake_at). A *host* carries the bytes, holds
//! the one timer, and does not know epochs, sessions and grants.
//!
//! # The loop of a host
//!
//! After each call that takes `&mut self`, and after the wake-up (`handle(now, Input::Timeout)`):
//!
//! 1. at the end of the turn, take effects with [`Shared::poll_effect`] until there is none, and do them;
//! 2. [`poll`](Shared::poll) until it gives no ticket: each that it gives is to be sent now;
//! 3. set the timer to [`Shared::wake_at`].
//!
//! A *turn* is one round of the host's event loop: what happens in it is one message. Drain effects once at
//! its end, not after each call, where many calls come together.
//!
//! # A host's promises
//!
//! * The host opens its transport before it carries out the first effect, and no earlier.
//! * Each effect with an [`Op`] is answered once, or never: after a lease the machine gives it up.
//! * Frames may be lost, doubled, late and out of order. They are never cut or altered on purpose; what is,
//!   is dropped and counted.
//! * The leader's frames [to all](Effect::ToAll) and [to the leader](Effect::ToLeader) come back to it: so it
//!   knows whether others hear it, and whether it hears.
//! * At most one process holds the lease of an epoch; epochs grow, and one that is won is above `above`.
//!
//! # The files
//!
//! | file | what it has |
//! |---|---|
//! | `api`, `machine` | types of a host; one process, as its host sees it |
//! | `group` | who leads, and what becomes of silence |
//! | `member`, `heard` | this process's requests, what the leader must hear of them, and what it answers |
//! | `leader`, `peer`, `grants` | the engine that decides; a member as it knows it; who may leave now |
//! | `collect`, `takeover` | a new leader listens first; what members tell it |
//! | `changes`, `stored` | what the next leader needs: the whole slowly, what changed at once |
//! | `reservation` | strict quotas: units that a stored snapshot reserves |
//! | `alone`, `offline` | a process that hears no other; its part of every limit |
//! | `incoming`, `outgoing`, `sends` | frames in; what a leader says; frames out |
//! | `frame`, `codec` | frames as bytes |
//! | `status`, `messages` | what people see, and the sentences of warnings |
//! | `clock`, `names`, `vec_map` | another process's clock; scopes as numbers; a small map |
//! | `store` | the scripts of Redis |

mod alone;
mod api;
mod changes;
mod clock;
mod codec;
mod collect;
mod frame;
mod grants;
mod group;
mod heard;
mod incoming;
mod leader;
mod machine;
mod member;
mod messages;
mod names;
mod offline;
mod outgoing;
mod parts;
mod peer;
mod reservation;
mod routes;
mod sends;
mod split;
mod status;
pub mod store;
mod stored;
mod takeover;
mod vec_map;

pub use api::{
    Ask, Cause, Effect, Epoch, Input, MemberId, Offline, Op, Order, Refusal, Role, Settings, Settlement,
    Status, Ticket, Warning,
};
pub use frame::{MOST_BYTES, VERSION};
pub use machine::Shared;
pub use names::Names;
pub use parts::MOST_PART;
pub use stored::is_change;
