//! Warnings of all hosts: their codes, and the text of each for people. `docs/events.md` and the hosts' types
//! come from here.

/// A warning.
#[derive(Debug)]
pub struct Warning {
    /// Its code in `WarningEvent`.
    pub code: &'static str,
    /// The only language whose host has it; empty for all.
    pub only: &'static str,
    /// The effect of a setting on its scope, where the engine reports that: the words between their names.
    /// The last one is left out where no scope is named.
    pub does: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// The cure.
    pub cure: &'static str,
}

impl Warning {
    /// The effect on all scopes, in words.
    pub fn does_to_all(&self) -> &'static str {
        self.does.rsplit_once(' ').map_or("", |(does, _)| does)
    }
}

macro_rules! warnings {
    ($($code:literal $(($only:literal))? $([$does:literal])? $about:literal, $cure:literal;)*) => {
        /// Each of them, in the order of `docs/events.md`.
        pub const WARNINGS: &[Warning] = &[$(Warning {
            code: $code,
            only: concat!($($only)?),
            does: concat!($($does)?),
            about: $about,
            cure: $cure,
        }),*];
    };
}

warnings! {
    "many-waiting"
        "more requests wait than `warnThreshold`",
        "pull work with `throttle.map`";
    "no-effect" ["has no effect in"]
        "a setting has no effect beside the others, or no request meets the host that you typed",
        "the message names both";
    "rampup-bound" ["slows rampup down in"]
        "a limit of yours slows rampup down; the server would bear more",
        "raise it, or leave it out";
    "nested"
        "calls inside functions of `run`, `map` or `wrap` waited for slots that those functions held",
        "raise `concurrency` or `maxInFlight`, or call the `fetch` of the permit";
    "no-status"
        "the last 20 requests of a scope were settled without a status, so a 429 has no effect",
        "use the `fetch` of the permit, return the response, or `settle({ status, headers })`";
    "wait-capped" ["cuts a wait of"]
        "a server asked for a longer wait than `backoff.maxHold`, or its robots.txt for a longer \
         delay than `maxDelay`; requests leave earlier than it asked",
        "raise it";
    "robots-overruled"
        "a scope has a pace of yours, and its robots.txt asks for another",
        "set `ignoreRobotsTxt`, or drop your pace";
    "bypassed" ("Python")
        "requests leave past the throttle: a proxy of httpx, a scheme that requests does not \
         mount, retries of urllib3",
        "the message says";
    "forked" ("Python")
        "the throttle was made before a fork, so each process has a limit of its own",
        "`shared=…` in each process";
    "permit-lost"
        "a permit was garbage-collected before it was settled, or the program ends with one \
         unsettled, or with a function of `run` that never ended",
        "`using permit = …`, or `throttle.run`";
    "unsettled"
        "no slot has come back for two minutes, and requests wait for one",
        "settle each permit, read or cancel bodies, set `requestTimeout`";
    "never-sent" ("JavaScript")
        "the program ends while requests wait for slots that no code will free, for `resume()`, \
         or for a hook that never answers. Or no loop has read what `map` gives",
        "settle each permit, as `throttle.run` does; `for await (… of throttle.map(…))`";
    "stream-cut" ("JavaScript")
        "an answer of a [language model](llm.md) broke off, and it was not you who left; what was \
         read of it is charged",
        "send the call again, where you want the rest";
    "usage-estimated" ("JavaScript")
        "an answer of a language model reported no usage, so its tokens are estimated",
        "ask for it: `stream_options: { include_usage: true }`";
    "stall"
        "a scope has answered only badly for `stallAfter` (two minutes)",
        "look at the host; `downAfter` gives up on one that is away";
    "suspicious-unit"
        "a delay is so short that it may be seconds; in Python one above 60, which may be milliseconds",
        "delays are milliseconds, in Python seconds or a `timedelta`; a pace is `rate`";
    "group-options"
        "this process has other options than the group; the message has both values",
        "deploy the same options";
    "group-version"
        "a process that shares the limit runs another version",
        "deploy one version";
    "group-bad-message"
        "a malformed message of the group was dropped",
        "deploy one version; the message has the count";
    "group-state-lost"
        "the state of the last writer cannot be read; the group starts anew, and strict quotas \
         wait for a window",
        "deploy one version";
    "group-silent"
        "a connection was open and carried no message; it was replaced",
        "look at the firewall or proxy in between";
    "group-two-writers"
        "another process has, or had, the writer's lease while this one has it; for a moment a \
         limit may count twice",
        "the store lost data or failed over, or the machine was suspended or had too much to do";
    "group-full"
        "the group has 4,096 processes; a new one is not served, and says so",
        "split the work by scope";
    "group-offline"
        "the connection to the group is broken",
        "[what happens when](shared-faults.md)";
    "group-online"
        "the connection is back",
        "";
}
