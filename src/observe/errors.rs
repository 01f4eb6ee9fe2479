//! Errors of all hosts: their codes and classes, and the cause and the cure of each for people.
//! `docs/errors.md` comes from here, and so do classes whose message has one form; the others are written by
//! hand in each host.

/// An error of a throttle.
#[derive(Debug)]
pub struct ErrorRow {
    /// Its code, for programs.
    pub code: &'static str,
    /// Its class in TypeScript; empty where that has none.
    pub class: &'static str,
    /// Its class in Python; empty where that has none.
    pub python: &'static str,
    /// The cause, in `docs/errors.md`. `{}` is the message.
    pub happened: &'static str,
    /// The cure.
    pub cure: &'static str,
    /// The class, where it is written from here.
    pub form: Option<ErrorForm>,
}

/// A class whose message has one form.
#[derive(Debug)]
pub struct ErrorForm {
    /// The class's documentation, with alternatives as in `message`.
    pub about: &'static str,
    /// The arguments of its constructor, and what each means; one without a meaning is no field.
    pub fields: &'static [(&'static str, &'static str)],
    /// Python's own kind of error that it is, too; may be empty.
    pub also: &'static str,
    /// Whether TypeScript's constructor takes a `cause`.
    pub has_cause: bool,
    /// The message. `{field}` is a field; `{this|that}` is TypeScript's word and Python's.
    pub message: &'static str,
}

/// Without fields, a cause or another kind of error.
const PLAIN: ErrorForm = ErrorForm { about: "", fields: &[], also: "", has_cause: false, message: "" };

macro_rules! errors {
    (@form) => { None };
    (@form $form:expr) => { Some($form) };
    ($($code:literal $class:literal ($python:literal) $happened:literal, $cure:literal $(=> $form:expr)?;)*) => {
        /// Each of them, in the order of `docs/errors.md`.
        pub const ERRORS: &[ErrorRow] = &[$(ErrorRow {
            code: $code,
            class: $class,
            python: $python,
            happened: $happened,
            cure: $cure,
            form: errors!(@form $($form)?),
        }),*];
    };
}

errors! {
    "ERR_CONFIG" "ConfigError" ("ConfigError")
        "An option is wrong. `problems` lists all of them: path, what is wanted, what it got.",
        "Correct each path. Unknown names come with the nearest known one, or with ours for a word of another \
         library.";
    "ERR_SNAPSHOT" "SnapshotError" ("SnapshotError")
        "The snapshot is damaged, is no snapshot, or comes from a newer release. No part of it was used.",
        "Start without it; the throttle learns again.";
    "ERR_QUEUE_FULL" "QueueFullError" ("QueueFullError")
        "`{}`",
        "Either."
        => ErrorForm {
            about: "As many requests wait as `maxWaiting` allows.",
            message: "as many requests wait as {maxWaiting|max_waiting} allows: send less, or pull work with \
                      {throttle.map|map}",
            ..PLAIN
        };
    "ERR_TIMEOUT" "TimeoutError" ("ThrottleTimeoutError")
        "`the request waited … ms for permission, as long as its maxWait allows`, or `the request was not \
         answered within … ms, its requestTimeout`.",
        "Wait longer, or ask `throttle.peek(url)` why it waits.";
    "ERR_COST_EXCEEDS_QUOTA" "CostExceedsQuotaError" ("CostExceedsQuotaError")
        "`the request costs more than … ever allows`: than a scope's whole `quota`, or the `burst` of its \
         `rate`.",
        "Split it, or raise the limit at `path`.";
    "ERR_CLOSED" "ClosedError" ("ClosedError")
        "`the throttle is closed`, or `the throttle drains: it takes in no more`. `cause` is the argument of \
         `close`.",
        "Make another one.";
    "ERR_ENGINE_BROKEN" "EngineBrokenError" ("")
        "`{}`. Waiting requests are rejected.",
        "As the message says."
        => ErrorForm {
            about: "A call into the engine was broken off, so what it decides can no longer be trusted.",
            has_cause: true,
            message: "an error broke off a call into the engine, most likely a stack overflow that your program \
                      caught: end that recursion, and make a new throttle",
            ..PLAIN
        };
    "ERR_RETRY_AFTER_TOO_LONG" "RetryAfterTooLongError" ("RetryAfterTooLongError")
        "With `retry`: `the server asks to wait … ms, more than maxRetryAfter`.",
        "Come back after `retryAfterMs`, or set `longRetryAfter: 'wait'`.";
    "ERR_BODY_NOT_REPLAYABLE" "BodyNotReplayableError" ("BodyNotReplayableError")
        "`{}`",
        "Or a `Request`."
        => ErrorForm {
            about: "The request would be sent again, but its body is a stream that was read: give {a string, a \
                    buffer or a `Request`|bytes or a text}.",
            message: "the request cannot be sent again: its body is a stream that was read; give {a string or a \
                      buffer|bytes or a text}",
            ..PLAIN
        };
    "ERR_NESTED" "NestedError" ("NestedError")
        "A call inside a function of `run`, `map` or `wrap` waits for the slot that the function holds (Safari, \
         Firefox; callbacks in Node before 24). A call inside a hook waits for it everywhere.",
        "Use the function's own `fetch`: `run(url, ({ fetch }) => fetch(url))`. In a hook use another throttle.";
    "ERR_DISALLOWED" "DisallowedError" ("DisallowedError")
        "`robots.txt of … does not allow …`, or `robots.txt of … could not be had` (`isUnavailable`).",
        "Leave it out, or try again after a minute.";
    "ERR_SCOPE_DOWN" "ScopeDownError" ("ScopeDownError")
        "`{}`, only failed connections and timeouts for `downAfter`.",
        "Try later; one request at a time still probes the server."
        => ErrorForm {
            about: "No answer has come from a scope for `downAfter`, only failed connections and timeouts. One \
                    request at a time still leaves, to see whether the server is back.",
            fields: &[("scope", "The scope."), ("for_ms", "For how long no answer came, in milliseconds.")],
            also: "ConnectionError",
            message: "{scope} is down: no answer has come for {for_ms} s",
            ..PLAIN
        };
    "ERR_STALLED" "StalledError" ("StalledError")
        "`{}`, and a `stall` listener called `fail()`.",
        "Look at the host: you may be banned."
        => ErrorForm {
            about: "The error of requests to a host that refuses all of them, after a `stall` listener called \
                    `fail()`.",
            fields: &[
                ("scope", "The scope."),
                ("for_ms", "For how long it has answered only badly, in milliseconds."),
            ],
            message: "{scope} has answered only badly for {for_ms} s",
            ..PLAIN
        };
    "ERR_MANAGER" "ManagerError" ("ManagerError")
        "A hook of yours failed or returned a wrong value. `hook` names it; `cause` is what it threw.",
        "Correct the hook. Other requests go on."
        => ErrorForm {
            about: "A hook {of yours|or a manager of yours} failed, or gave what makes no sense. It fails its own \
                    request only; {`cause` is what it threw|`__cause__` is what it raised}.",
            fields: &[("hook", "Which hook."), ("what", "")],
            has_cause: true,
            message: "{hook} {what}",
            ..PLAIN
        };
    "ERR_SHARED_OFFLINE" "SharedError" ("SharedError")
        "`the connection to the group is broken, and offline is 'fail': …`",
        "[What happens when](shared-faults.md)";
    "ERR_WAIT_TOO_LONG" "WaitTooLongError" ("")
        "A Worker: `the request would wait for longer than maxWait`.",
        "Come back after `retryAfterMs`.";
    "ERR_WASM_BLOCKED" "WasmBlockedError" ("")
        "`WebAssembly is blocked`: the page's Content-Security-Policy forbids it.",
        "Allow `'wasm-unsafe-eval'`: [Content Security Policy](runtimes.md#content-security-policy)."
        => ErrorForm {
            about: "The page's Content-Security-Policy, or a browser extension's, does not let WebAssembly \
                    compile.",
            has_cause: true,
            message: "WebAssembly is blocked: allow 'wasm-unsafe-eval' in script-src of the \
                      Content-Security-Policy (docs/runtimes.md)",
            ..PLAIN
        };
    "ERR_NOT_INITIALIZED" "NotInitializedError" ("")
        "`autothrottle/slim` has no module of this release: `initialize` was not awaited, or got another file.",
        "Await `initialize` first, with the `slim.wasm` of this release: \
         [runtimes.md](runtimes.md#pages-that-count-bytes).";
}
