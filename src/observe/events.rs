//! Events of all hosts: their types, and what each says. `docs/events.md` comes from here, and so do the
//! lists of types in TypeScript and Python.

/// An event of a throttle.
#[derive(Debug)]
pub struct EventRow {
    /// Its type: listeners are added by it.
    pub kind: &'static str,
    /// Its class in TypeScript.
    pub class: &'static str,
    /// Its class in Python.
    pub python: &'static str,
    /// Its occasion.
    pub when: &'static str,
    /// Its fields, as `docs/events.md` has them.
    pub fields: &'static str,
}

impl EventRow {
    /// Whether it is about a scope's pace: the engine tells of those while one of them has a listener.
    pub fn is_pace(&self) -> bool {
        self.class == "ScopeEvent"
    }
}

macro_rules! events {
    ($($kind:literal $class:ident ($python:ident) $when:literal, $fields:literal;)*) => {
        /// Each of them, in the order of `docs/events.md`.
        pub const EVENTS: &[EventRow] = &[$(EventRow {
            kind: $kind,
            class: stringify!($class),
            python: stringify!($python),
            when: $when,
            fields: $fields,
        }),*];
    };
}

events! {
    "queued" QueuedEvent (RequestEvent)
        "a request was taken in: it waits, or leaves at once",
        "`id`, `url`, `target`, `scopes`, `at`";
    "send" SendEvent (RequestEvent)
        "a request may leave now",
        "the same";
    "settle" SettleEvent (SettleEvent)
        "a request ended",
        "the same; `status`, `error`, `latencyMs`";
    "cancel" CancelEvent (CancelEvent)
        "a request stopped waiting, and was never sent: a signal, its `maxWait`, `close`, a scope that is down",
        "`id`, `url`, `target`, `scopes`, `at`, `error`";
    "backoff" ScopeEvent (ScopeEvent)
        "a bad answer made a scope take a step up",
        "`scope`, `delayMs`, `step`, `holdUntil`";
    "recover" ScopeEvent (ScopeEvent)
        "a scope took a step back; noticed at the next answer after it",
        "the same";
    "delay" ScopeEvent (ScopeEvent)
        "a scope's delay changed: by AutoThrottle, rampup, backoff or a server's pace",
        "the same";
    "hold" ScopeEvent (ScopeEvent)
        "a server asked for a longer wait than before",
        "the same; `askedMs` if the wait was cut";
    "stall" StallEvent (StallEvent)
        "a scope has answered only badly for `stallAfter`; without a listener it is a `warning`",
        "`scope`, `forMs`, `fail()`";
    "warning" WarningEvent (WarningEvent)
        "a warning, once per code and scope",
        "`code`, `message`, `scope`";
    "shared" SharedEvent (SharedEvent)
        "of a [shared](shared.md) throttle: another writer, other members, or the connection broke or is back",
        "`shared`, as in `stats()`";
}
