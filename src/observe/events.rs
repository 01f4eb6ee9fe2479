//! Events of all hosts: their types, and what each says. `docs/events.md` comes from here, and so do the
//! lists of types in TypeScript and Python, and the classes whose fields have plain types.

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
    /// Its class, where that is written from here; at the first event of the class.
    pub form: Option<EventForm>,
}

/// A class whose fields have plain types.
#[derive(Debug)]
pub struct EventForm {
    /// The class's documentation.
    pub about: &'static str,
    /// Its fields: name, type, meaning.
    pub fields: &'static [(&'static str, FieldType, &'static str)],
}

/// The type of an event's field.
#[derive(Clone, Copy, Debug)]
pub enum FieldType {
    /// A text.
    Text,
    /// A text, if there is one.
    MaybeText,
    /// A count.
    Whole,
    /// A time, or an instant of the throttle's clock.
    Time,
    /// The same, if there is one.
    MaybeTime,
    /// The code of a warning.
    WarningCode,
    /// Statistics of a shared limit.
    SharedStats,
}

impl EventRow {
    /// Whether it is about a scope's pace: the engine tells of those while one of them has a listener.
    pub fn is_pace(&self) -> bool {
        self.class == "ScopeEvent"
    }
}

macro_rules! events {
    (@form) => { None };
    (@form $about:literal $($field:ident $type:ident $meaning:literal)*) => {
        Some(EventForm { about: $about, fields: &[$((stringify!($field), FieldType::$type, $meaning)),*] })
    };
    ($(
        $kind:literal $class:ident ($python:ident) $when:literal, $fields:literal
        $(=> $about:literal { $($field:ident: $type:ident = $meaning:literal,)* })?;
    )*) => {
        /// Each of them, in the order of `docs/events.md`.
        pub const EVENTS: &[EventRow] = &[$(EventRow {
            kind: $kind,
            class: stringify!($class),
            python: stringify!($python),
            when: $when,
            fields: $fields,
            form: events!(@form $($about $($field $type $meaning)*)?),
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
        "`scope`, `delayMs`, `step`, `holdUntil`"
        => "A scope's pace changed: its delay, backoff step or hold." {
            scope: Text = "The scope.",
            delay_ms: Time = "Its delay in milliseconds: its own, or the longer one of backoff.",
            step: Whole = "Steps of backoff in force.",
            hold_until: MaybeTime = "Until when it is held, in milliseconds of the throttle's clock.",
            asked_ms: MaybeTime = "Of a `hold` that was cut to `backoff.maxHold`: what the server asked for, \
                                   in milliseconds.",
        };
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
        "`code`, `message`, `scope`"
        => "The throttle does something else than you typed, or than it promises. Each comes once." {
            code: WarningCode = "Which warning it is. `docs/events.md` says what each means and what to do.",
            message: Text = "A sentence about the event, and the advice.",
            scope: MaybeText = "The scope in which it was noticed, if it is about one.",
        };
    "shared" SharedEvent (SharedEvent)
        "of a [shared](shared.md) throttle: another writer, other members, or the connection broke or is back",
        "`shared`, as in `stats()`"
        => "Another process decides for the group, others are in it, or the way to them broke or is open \
            again." {
            shared: SharedStats = "The group, as this process sees it from now on.",
        };
}
