//! Random calls with any numbers: what a host may do wrong, the component must bear.
//!
//! Half of the handles and tickets are ones that were given out, and the clock mostly goes forward.

use crate::{
    Host, call,
    wit::{Needs, Watching},
};

/// A small generator with a seed (`SplitMix64`).
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    /// Any whole number: small ones, edges, all bits.
    fn whole(&mut self) -> u64 {
        match self.below(6) {
            0 => self.below(4),
            1 => u64::MAX - self.below(3),
            2 => 1 << self.below(64),
            3 => self.below(10_000_000_000),
            4 => self.below(100_000),
            _ => self.next(),
        }
    }

    /// Any double, with what is none.
    fn real(&mut self) -> f64 {
        const EDGES: [f64; 8] =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.0, 1e308, 5e-324, 9_007_199_254_740_992.0];
        match self.below(4) {
            0 => EDGES[self.below(8) as usize],
            1 => f64::from_bits(self.next()),
            2 => self.below(20) as f64 / 4.0,
            _ => self.below(1_000_000) as f64,
        }
    }

    fn some<T>(&mut self, of: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.one_in(2) { None } else { Some(of(self)) }
    }
}

const OPTIONS: [&str; 6] = [
    "{}",
    r#"{"defaults":{"delay":10,"concurrency":4},"maxInFlight":64}"#,
    r#"{"defaults":{"rampup":true}}"#,
    r#"{"defaults":{"autothrottle":true,"quota":{"limit":50,"window":1000}},"maxWaiting":200}"#,
    r#"{"defaults":{"rate":"100/s","quota":[{"limit":9,"window":500},{"limit":99,"window":9000}]}}"#,
    r#"{"maxScopes":20,"defaults":{"delay":0,"backoff":{"maxDelay":1000}},"retry":{"limit":5}}"#,
];

const FIELDS: [(&str, &str); 9] = [
    ("retry-after", "3"),
    ("Retry-After", "99999999999999999999"),
    ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("ratelimit", "limit=5;w=1, remaining=0, reset=1"),
    ("x-ratelimit-remaining", "0"),
    ("x-ratelimit-reset", "1.5\r\nretry-after: 900"),
    ("RateLimit-Policy", "\"a\";q=5;w=2"),
    ("age", "\u{0}\u{fffd}7"),
    ("", ":"),
];

/// Plays random calls; `open` makes an engine for options. An error is a trap.
pub struct Fuzzer<F> {
    open: F,
    chance: Chance,
    host: Host,
    now: u64,
    scopes: Vec<u64>,
    tickets: Vec<u64>,
}

impl<F: FnMut(&str, u64) -> wasmtime::Result<Host>> Fuzzer<F> {
    pub fn new(mut open: F, seed: u64) -> wasmtime::Result<Self> {
        let host = open(OPTIONS[1], seed)?;
        Ok(Self { open, chance: Chance(seed), host, now: 0, scopes: vec![], tickets: vec![] })
    }

    fn mark(&mut self) -> u64 {
        match self.chance.below(40) {
            0 => self.chance.whole(),
            1 => self.now.saturating_sub(self.chance.whole()),
            _ => {
                self.now = self.now.saturating_add(self.chance.below(30_000_000)).min(1 << 62);
                self.now
            }
        }
    }

    fn scope(&mut self) -> u64 {
        match self.chance.below(10) {
            0 => self.chance.whole(),
            _ if self.scopes.is_empty() => 0,
            _ => self.scopes[self.chance.below(self.scopes.len() as u64) as usize],
        }
    }

    fn some_scopes(&mut self) -> Vec<u64> {
        let count = [1, 1, 1, 2, 3, 0][self.chance.below(6) as usize];
        (0..count).map(|_| self.scope()).collect()
    }

    fn ticket(&mut self) -> u64 {
        if self.tickets.is_empty() || self.chance.one_in(20) {
            return self.chance.whole();
        }
        let place = self.chance.below(self.tickets.len() as u64) as usize;
        if self.chance.one_in(3) { self.tickets[place] } else { self.tickets.swap_remove(place) }
    }

    fn needs(&mut self) -> Needs {
        let count = self.chance.below(3);
        let delay = if self.chance.one_in(3) { self.chance.whole() } else { 0 };
        let waited = if self.chance.one_in(3) { self.chance.whole() } else { 0 };
        let costs = (0..count).map(|_| self.chance.real()).collect();
        Needs { costs, priority: self.chance.real(), delay, waited }
    }

    /// The end of a request: places that mean something, any numbers, or both; of any length.
    fn told(&mut self) -> Vec<f64> {
        let answer = [0.0, 1.0, f64::NAN, 429.0, 503.0, 500.0, 404.0, 200.0, 200.0, 200.0];
        let answer = answer[self.chance.below(10) as usize];
        let mut told =
            vec![answer, self.chance.below(1000) as f64, f64::NAN, self.chance.below(1 << 13) as f64];
        for _ in 0..self.chance.below(24) {
            let number = if self.chance.one_in(3) { self.scope() as f64 } else { self.chance.real() };
            told.push(number);
        }
        if self.chance.one_in(4) {
            let place = self.chance.below(told.len() as u64) as usize;
            told[place] = self.chance.real();
        }
        if self.chance.one_in(4) {
            told.truncate(self.chance.below(5) as usize);
        }
        told
    }

    fn fields(&mut self) -> Vec<(String, String)> {
        let count = if self.chance.one_in(3) { self.chance.below(4) } else { 0 };
        let field = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
        (0..count).map(|_| field(FIELDS[self.chance.below(9) as usize])).collect()
    }

    /// One random call.
    pub fn step(&mut self) -> wasmtime::Result<()> {
        let kind = self.chance.below(100);
        let now = self.mark();
        match kind {
            0..=27 => {
                let (scopes, needs) = (self.some_scopes(), self.needs());
                let needs = if self.chance.one_in(3) { Some(&needs) } else { None };
                let made = match self.chance.below(8) {
                    0 => {
                        let ago = self.chance.whole();
                        call!(self.host, call_adopt, now, &scopes, needs, ago)?.ok()
                    }
                    1 => call!(self.host, call_send_at_once, now, &scopes, needs)?.ok().flatten(),
                    _ => call!(self.host, call_submit, now, &scopes, needs)?.ok(),
                };
                self.tickets.extend(made);
            }
            28..=51 => {
                let decision = call!(self.host, call_poll, now)?;
                if let Some(wake) = decision.wake
                    && self.chance.one_in(2)
                {
                    self.now = self.now.max(wake.min(1 << 62));
                }
            }
            52..=75 => {
                let (ticket, told, fields) = (self.ticket(), self.told(), self.fields());
                let wall = self.chance.some(Chance::whole);
                if self.chance.one_in(4) {
                    let told = call!(self.host, call_digest, &told, &fields, wall)?.numbers;
                    call!(self.host, call_settle, now, ticket, &told, &[], None)?;
                } else {
                    call!(self.host, call_settle, now, ticket, &told, &fields, wall)?;
                }
            }
            76 => {
                let ticket = self.ticket();
                call!(self.host, call_sent_at, now, ticket)?;
            }
            77..=79 => {
                let ticket = self.ticket();
                call!(self.host, call_cancel, now, ticket)?;
            }
            80..=81 => {
                let (ticket, priority) = (self.ticket(), self.chance.real());
                call!(self.host, call_prioritize, now, ticket, priority)?;
            }
            82..=95 => self.touch_scope(now)?,
            _ => self.look(now)?,
        }
        if self.chance.one_in(50_000) {
            let options = OPTIONS[self.chance.below(6) as usize];
            self.host = (self.open)(options, self.chance.next())?;
            (self.scopes, self.tickets, self.now) = (vec![], vec![], 0);
        }
        Ok(())
    }

    fn touch_scope(&mut self, now: u64) -> wasmtime::Result<()> {
        let scope = self.scope();
        match self.chance.below(11) {
            0 | 1 if self.scopes.len() < 200 => {
                let name = format!("s{}\n", self.chance.below(100));
                let scope = if self.chance.one_in(2) {
                    call!(self.host, call_scope, &name)?
                } else {
                    call!(self.host, call_intern, &name)?
                };
                self.scopes.push(scope);
            }
            0 | 1 => {
                call!(self.host, call_release, scope)?;
                self.scopes.retain(|&known| known != scope);
            }
            2 => {
                let span = self.chance.whole().min(5_000_000_000);
                call!(self.host, call_hold, now, scope, span)?;
            }
            3 => {
                let scope = if self.chance.one_in(4) { None } else { Some(scope) };
                call!(self.host, call_pause, now, scope)?;
            }
            4 => {
                call!(self.host, call_resume, now, None)?;
                call!(self.host, call_resume, now, Some(scope))?;
            }
            5 => call!(self.host, call_reset, now, scope)?,
            6 => {
                let delay = self.chance.some(Chance::whole);
                call!(self.host, call_crawl_delay, now, scope, delay)?;
            }
            7 => {
                let options = [r#"{"delay":5}"#, r#"{"delay":-1}"#, "[", r#"{"rampup":true}"#, "{}"];
                let options = options[self.chance.below(5) as usize];
                drop(call!(self.host, call_configure, now, scope, options)?);
            }
            8 => drop(call!(self.host, call_keep_alive, scope)?),
            _ => {
                let (scopes, costs) = (self.some_scopes(), vec![self.chance.real()]);
                drop(call!(self.host, call_peek, now, &scopes, &costs)?);
            }
        }
        Ok(())
    }

    fn look(&mut self, now: u64) -> wasmtime::Result<()> {
        match self.chance.below(10) {
            0 => drop(call!(self.host, call_stats, now)?),
            1 => {
                let levels = [Watching::Nothing, Watching::Changes, Watching::Answers];
                call!(self.host, call_watch, levels[self.chance.below(3) as usize])?;
            }
            2 => {
                let wall = self.chance.some(Chance::whole);
                let snapshot = call!(self.host, call_snapshot, now, wall)?;
                if self.chance.one_in(20) {
                    let wall = self.chance.some(Chance::whole);
                    let restored = call!(self.host, call_restore, &snapshot, now, wall)?;
                    assert!(restored.is_ok(), "its own snapshot: {}", snapshot);
                    (self.scopes, self.tickets) = (vec![], vec![]);
                }
            }
            3 | 4 => drop(call!(self.host, call_take_notices)?),
            _ => {
                let scope = self.scope();
                drop(call!(self.host, call_scope_stats, now, scope)?);
                drop(call!(self.host, call_name, scope)?);
            }
        }
        Ok(())
    }
}
