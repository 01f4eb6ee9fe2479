//! Any bytes at all, played as calls at the boundary: what the fuzzer calls (`tools/fuzz/`), and what replays
//! the corpus that it found.
//!
//! Numbers are whatever eight bytes make, half of the handles and tickets are invented, options and snapshots
//! are text, and time jumps about. A call may leave something behind for the next one. Two engines therefore
//! play every tape side by side, one of them with bogus calls between all others, and both must say the same.
//! The test compares what they say as numbers: as text it took most of the time.

use autothrottle::{
    Boundary, Instant, Value,
    boundary::{IDLE, NO_SCOPE, Outcome, STRIDE, Settled, WAIT, flags, parse_crawl_delay, parse_hints},
};

/// Options that reach every policy, for bytes that begin with none of their own.
const OPTIONS: &str = r#"{ "seed": 1, "maxInFlight": 5, "maxWaiting": 300, "maxScopes": 6,
    "retry": { "limit": 2, "maxRetryAfter": 50000 },
    "defaults": { "delay": 3, "slotDelay": 7, "concurrency": 2, "autothrottle": true,
                  "quota": [5, { "limit": 9, "window": 50, "strict": true }] },
    "scopes": { "free": { "delay": 0, "slotDelay": 0, "quota": [] } } }"#;

const ODD: [f64; 12] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    -1.0,
    -0.0,
    0.5,
    1e18,
    9_007_199_254_740_991.0,
    4_294_967_296.0,
    f64::MIN_POSITIVE,
    f64::MAX,
    8_796_093_022_207.0,
];

const NAMES: [&str; 11] =
    ["a.example", "b.example", "free", "d.example", "e.example", "", "g", "h", "i", "__proto__", "é"];

/// Settings of a scope, right and wrong ones.
const PARTIALS: [&str; 15] = [
    r#"{ "delay": 20 }"#,
    r#"{ "delay": 0, "slotDelay": 0, "quota": [], "backoff": false }"#,
    r#"{ "concurrency": 1, "jitter": [0.5, 2] }"#,
    r#"{ "concurrency": 9, "slotDelay": 3 }"#,
    r#"{ "quota": [{ "limit": 3, "window": 40 }, { "limit": 4, "window": 9, "strict": true }] }"#,
    r#"{ "quota": { "limit": 1e9, "window": 1 }, "rate": { "limit": 300, "burst": 3 } }"#,
    r#"{ "rate": 0.5 }"#,
    r#"{ "autothrottle": { "targetConcurrency": 3, "startDelay": 9 } }"#,
    r#"{ "autothrottle": false, "rampup": true }"#,
    r#"{ "backoff": { "minDelay": 5, "maxDelay": 900, "window": 30, "concurrency": true } }"#,
    r#"{ "rampup": { "minRate": 1 }, "followRateLimit": true }"#,
    r#"{ "delay": null, "concurrency": null, "quota": null, "backoff": null }"#,
    r#"{ "delay": "20", "nothing": 1 }"#,
    r#"{ "version": 1, "scopes": { "a.example": { "backoff": { "step": 3 } }, "b.example": 5 } }"#,
    "[1, [2, {}]]",
];

/// No engine ever gives these: there are 2²¹ generations, and indexes end long before.
const BOGUS: [f64; 5] = [-1.0, f64::NAN, 4_294_967_294.0, 0.5, f64::INFINITY];

/// The bytes that are left.
struct Tape<'a>(&'a [u8]);

impl<'a> Tape<'a> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// As it stands there, or one of those above: few bytes drawn at random are JSON.
    fn json(&mut self) -> Option<Value> {
        let text = match self.byte() {
            length @ 0..128 => self.take(usize::from(length) * 4),
            preset => PARTIALS[usize::from(preset) % PARTIALS.len()].as_bytes(),
        };
        serde_json::from_slice(text).ok()
    }

    fn number(&mut self) -> f64 {
        match self.byte() {
            small @ 0..200 => f64::from(small),
            odd @ 200..240 => ODD[usize::from(odd) % ODD.len()],
            _ => {
                let mut bytes = [0; 8];
                let taken = self.take(8);
                bytes[..taken.len()].copy_from_slice(taken);
                f64::from_le_bytes(bytes)
            }
        }
    }

    fn numbers(&mut self, most: u8) -> Vec<f64> {
        (0..self.byte() % most).map(|_| self.number()).collect()
    }

    /// One of those that exist, or an invention.
    fn pick(&mut self, known: &[f64]) -> f64 {
        match self.byte() {
            byte if byte < 220 && !known.is_empty() => known[usize::from(byte) % known.len()],
            _ => self.number(),
        }
    }

    fn lines(&mut self) -> String {
        let length = usize::from(self.byte());
        String::from_utf8_lossy(self.take(length)).replace('~', "\nx-ratelimit-")
    }
}

/// The answer of a call: numbers as bits, for NaN is an answer, too.
type Said = (&'static str, [u64; 3]);

/// One engine, and everything that a host knows about it.
struct Player<'a> {
    tape: Tape<'a>,
    clock: f64,
    boundary: Boundary,
    options: Value,
    scopes: Vec<f64>,
    tickets: Vec<f64>,
    /// Of which of them it is known that they are in flight.
    flying: Vec<f64>,
    has_bogus_calls: bool,
    /// By the call that was made last.
    said: Vec<Said>,
}

/// Plays bytes as calls and gives how many. Panics if a promise of the engine's is broken.
pub fn play(bytes: &[u8]) -> u64 {
    let mut tape = Tape(bytes);
    let preset: Value = serde_json::from_str(OPTIONS).unwrap();
    let typed = tape.json().filter(|options| Boundary::new(options.clone()).is_ok());
    let options = typed.unwrap_or(preset);
    let mut plain = Player::new(Tape(tape.0), options.clone(), false);
    let mut disturbed = Player::new(tape, options, true);
    let mut calls = 0;
    while let Some(now) = plain.next() {
        calls += 1;
        disturbed.next();
        assert_eq!(plain.said, disturbed.said, "at {now}");
        assert_eq!(plain.notices(), disturbed.notices(), "at {now}");
        let seen = |player: &Player| (player.boundary.scopes(), player.boundary.stats_at(f64::NAN));
        assert_eq!(seen(&plain), seen(&disturbed), "at {now}");
    }
    for mut player in [plain, disturbed] {
        player.poll(player.clock + 1e9);
        player.end();
    }
    calls
}

impl<'a> Player<'a> {
    fn new(tape: Tape<'a>, options: Value, has_bogus_calls: bool) -> Self {
        let mut boundary = Boundary::new(options.clone()).unwrap();
        if boundary.wants_seed() {
            boundary.seed(7);
        }
        let (scopes, tickets, flying, said) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { tape, clock: 0.0, boundary, options, scopes, tickets, flying, has_bogus_calls, said }
    }

    /// Makes one call and gives its time; `None` at the end of the tape.
    fn next(&mut self) -> Option<f64> {
        self.said.clear();
        if self.tape.0.is_empty() {
            return None;
        }
        let action = self.tape.byte();
        self.clock += f64::from(action >> 4);
        let now = if action & 15 == 15 { self.tape.number() } else { self.clock };
        // Time passes with every call, so it passes here in both.
        self.boundary.prioritize(now, BOGUS[2], 0.0);
        if self.has_bogus_calls {
            self.bogus(now);
        }
        let mut tape = Tape(self.tape.0);
        self.step(&mut tape, action, now);
        self.tape = tape;
        Some(now)
    }

    /// No slot is lost: what flies is settled, what waits is cancelled, and the engine is empty.
    fn end(mut self) {
        assert_eq!(self.boundary.in_flight(), self.flying.len() as f64);
        let now = self.clock + 2e9;
        for ticket in self.flying {
            assert_ne!(
                self.boundary.settle(now, ticket, &Outcome::new(200.0, 1.0, 1.0, 0)),
                Settled::Unknown
            );
        }
        for ticket in self.tickets {
            self.boundary.cancel(now, ticket);
        }
        assert_eq!((self.boundary.waiting(), self.boundary.in_flight()), (0.0, 0.0));
    }

    fn say(&mut self, call: &'static str, numbers: [f64; 3]) {
        self.said.push((call, numbers.map(f64::to_bits)));
    }

    fn step(&mut self, tape: &mut Tape, action: u8, now: f64) {
        match tape.byte() % 16 {
            0 | 1 => self.name(tape),
            2..=4 => self.submit(tape, now),
            5..=7 => self.poll(now),
            8 | 9 => self.settle(tape, action, now),
            10 => {
                let ticket = tape.pick(&self.tickets);
                self.boundary.cancel(now, ticket);
                self.flying.retain(|&flying| flying != ticket);
            }
            11 => {
                let ticket = tape.pick(&self.tickets);
                if action & 16 == 0 {
                    self.boundary.prioritize(now, ticket, tape.number());
                } else {
                    self.boundary.sent_at(now, ticket);
                    self.boundary.wants_route(ticket, action & 32 == 0);
                    self.boundary.route(now, ticket, "GET", "https://a.example/b/7");
                }
            }
            12 => self.change(tape, now),
            13 => self.configure(tape, now),
            14 => self.move_out(tape, now),
            _ => {
                if let Some(snapshot) = tape.json() {
                    let mut other = Boundary::new(self.options.clone()).unwrap();
                    if let Err(error) = other.restore(snapshot, now, f64::NAN) {
                        assert!(!error.problems.is_empty());
                    }
                    other.poll(now);
                }
                self.boundary.pause_all(tape.byte() < 64);
            }
        }
    }

    fn name(&mut self, tape: &mut Tape) {
        let name = NAMES[usize::from(tape.byte()) % NAMES.len()];
        let before = (self.boundary.find(name), self.boundary.scopes());
        let is_kept = tape.byte() < 128;
        let scope = if is_kept { self.boundary.scope(name) } else { self.boundary.intern(name) };
        assert!(before.0 == NO_SCOPE || before.0 == scope);
        assert_eq!(self.boundary.name(scope), Some(name));
        self.scopes.push(scope);
    }

    fn send_or_submit(&mut self, now: f64, scope: f64, cost: f64, priority: f64) -> f64 {
        match self.boundary.send_at_once(now, scope, cost, priority) {
            WAIT => self.boundary.submit(now, scope, cost, priority, 0.0),
            refused if refused < WAIT => refused + 1.0,
            ticket => ticket,
        }
    }

    fn submit(&mut self, tape: &mut Tape, now: f64) {
        let scopes: Vec<f64> = (0..tape.byte() % 4).map(|_| tape.pick(&self.scopes)).collect();
        let costs = tape.numbers(3);
        let delay_ms = if tape.byte() < 128 { 0.0 } else { tape.number() };
        let priority = if tape.byte() < 128 { 0.0 } else { tape.number() };
        let at = self.boundary.peek(now, &scopes, &costs);
        let before = (self.boundary.waiting(), self.boundary.in_flight());
        let ticket = match scopes[..] {
            [scope] if costs.len() == 1 && delay_ms == 0.0 => {
                self.send_or_submit(now, scope, costs[0], priority)
            }
            [scope] if costs.len() == 1 => self.boundary.submit(now, scope, costs[0], priority, delay_ms),
            // Another engine had it, whatever the numbers say.
            _ if costs.len() == 2 => self.boundary.adopt(now, &scopes, &costs, 0.0, delay_ms, priority),
            _ if costs.len() == 3 => {
                self.boundary.submit_again(now, &scopes, &costs, priority, 0.0, delay_ms)
            }
            _ => self.boundary.submit_many(now, &scopes, &costs, priority, delay_ms),
        };
        let is_sent = ticket >= 0.0 && self.boundary.in_flight() > before.1;
        if ticket >= 0.0 {
            let is_adopted = at == -3.0 && costs.len() == 2; // no limit refuses what was sent already
            assert!(at >= 0.0 || is_adopted, "what can be taken in can be looked at");
            self.tickets.push(ticket);
            self.flying.extend(is_sent.then_some(ticket));
        } else {
            assert_eq!(before, (self.boundary.waiting(), self.boundary.in_flight()), "refused");
            assert_eq!(self.boundary.refused_scope().is_some(), ticket == -3.0);
            assert_eq!(self.boundary.refused_path().is_some(), ticket == -3.0);
        }
        self.say("submit", [ticket, at, 0.0]);
    }

    fn poll(&mut self, now: f64) {
        for _ in 0..=self.boundary.waiting() as u32 {
            let ticket = self.boundary.poll(now);
            if ticket < 0.0 {
                assert!(ticket == WAIT || ticket == IDLE);
                assert_eq!(ticket == WAIT, self.boundary.wake_at() < f64::INFINITY);
                let is_time = Instant::from_millis(now).is_some();
                let is_over = is_time && now >= self.boundary.wake_at();
                assert!(ticket == IDLE || !is_over, "a wait ends in the future");
                return;
            }
            self.say("send", [ticket, 0.0, 0.0]);
            self.flying.push(ticket);
        }
        panic!("more was sent than waited");
    }

    fn settle(&mut self, tape: &mut Tape, action: u8, now: f64) {
        let ticket = tape.pick(&self.tickets);
        let (answer, latency_ms, cost) = (tape.number(), tape.number(), tape.number());
        let how = u32::from(tape.byte()) | u32::from(action & 128) << 1;
        let lines = if action & 16 > 0 { tape.lines() } else { String::new() };
        let mut more = if action & 32 > 0 { tape.numbers(8) } else { vec![] };
        if action & 64 > 0 {
            more.resize(7, f64::NAN);
            for _ in 0..tape.byte() % 4 {
                more.push(tape.pick(&self.scopes));
                more.extend((1..STRIDE).map(|_| tape.number()));
            }
        }
        let wall_ms = more.first().copied().unwrap_or(f64::NAN);
        let told = [&[answer, latency_ms, cost, f64::from(how)], more.get(1..).unwrap_or_default()].concat();
        let outcome = Outcome { lines: &lines, wall_ms, ..Outcome::decode(&told) };
        let before = (self.boundary.waiting(), self.boundary.in_flight());
        let (judged, asked_ms, _) = self.boundary.digest(&outcome);
        let settled = self.boundary.settle(now, ticket, &outcome);
        if settled != Settled::Unknown {
            assert_eq!(judged, settled, "judged elsewhere as here");
            assert_eq!(asked_ms.to_bits(), self.boundary.asked_ms().to_bits());
        }
        let after = (self.boundary.waiting(), self.boundary.in_flight());
        let is_flying = self.flying.iter().position(|&flying| flying == ticket);
        assert_eq!(settled != Settled::Unknown, is_flying.is_some(), "what is in flight can be settled");
        match (settled, is_flying) {
            (Settled::Unknown, _) | (_, None) => {
                assert_eq!(before, after);
                assert!(self.boundary.asked_ms().is_nan());
            }
            (settled, Some(place)) => {
                self.flying.swap_remove(place);
                let is_again = settled == Settled::Again;
                assert_eq!(after, (before.0 + f64::from(u8::from(is_again)), before.1 - 1.0));
                let is_explicit = more.get(1).is_some_and(|delay| !delay.is_nan());
                assert!(is_explicit || settled == Settled::Over || how & flags::MAY_RETRY > 0);
            }
        }
        self.say("settle", [ticket, f64::from(settled as u8), self.boundary.asked_ms()]);
        assert!(matches!(parse_hints(&lines, answer, latency_ms, how), Value::Map(_)));
    }

    fn change(&mut self, tape: &mut Tape, now: f64) {
        let scope = tape.pick(&self.scopes);
        match tape.byte() % 8 {
            0 => self.boundary.hold(now, scope, tape.number()),
            1 => self.boundary.pause(now, scope),
            2 => self.boundary.resume(now, scope),
            3 => self.boundary.reset(now, scope),
            4 => self.boundary.release(scope),
            5 => {
                let delay = parse_crawl_delay(tape.take(40), "bot");
                let outcome = self.boundary.crawl_delay(now, scope, delay);
                self.say("robots", [outcome, 0.0, 0.0]);
            }
            6 => self.boundary.watch(u32::from(tape.byte() % 4)),
            _ => {
                self.boundary.keep_alive(scope);
            }
        }
    }

    fn configure(&mut self, tape: &mut Tape, now: f64) {
        let scope = tape.pick(&self.scopes);
        let Some(partial) = tape.json() else { return };
        let before = self.boundary.scope_stats(now, scope);
        if let Err(error) = self.boundary.configure(now, scope, partial) {
            assert!(!error.problems.is_empty());
            assert_eq!(self.boundary.scope_stats(now, scope), before, "a wrong setting changes nothing");
        }
    }

    /// The learned state survives as text, and is read as it was written.
    fn move_out(&mut self, tape: &mut Tape, now: f64) {
        let text = serde_json::to_string(&self.boundary.snapshot(now, 1e12)).unwrap();
        let mut other = Boundary::new(self.options.clone()).unwrap();
        other.seed(7);
        let snapshot = serde_json::from_str(&text).unwrap();
        other.restore(snapshot, now, 1e12 + tape.number()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let sent = other.poll(now);
        self.say("restored", [sent, other.wake_at(), 0.0]);
    }

    /// Calls without a meaning. None of them may be seen in what the others say.
    fn bogus(&mut self, now: f64) {
        let refusal = "retry-after: 100\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 60";
        let how = f64::from(flags::BAD | flags::MAY_RETRY | flags::HINTED);
        let mut told = vec![429.0, 5.0, 3.0, how, 50.0, 9e5, 0.0, 9e5, 100.0, 9e5];
        for &scope in self.scopes.iter().rev().take(2) {
            told.extend([scope, 0.0, 1.0, 9e5, 0.0, 9e5, 3.0]);
        }
        let outcome = Outcome { lines: refusal, wall_ms: 1e12, ..Outcome::decode(&told) };
        for ticket in BOGUS {
            assert_eq!(self.boundary.settle(now, ticket, &outcome), Settled::Unknown);
            self.boundary.cancel(now, ticket);
            self.boundary.prioritize(now, ticket, 5.0);
            self.boundary.sent_at(now, ticket);
            self.boundary.route(now, ticket, "", "//");
        }
        assert!(self.boundary.peek(now, &[f64::NAN], &[]) < 0.0);
        assert_eq!(self.boundary.find("never named"), NO_SCOPE);
        assert!(self.boundary.submit(now, f64::NAN, 1.0, 0.0, 0.0) < 0.0);
    }

    fn notices(&mut self) -> Value {
        let notices = if self.boundary.has_notices() { self.boundary.take_notices() } else { Value::Nothing };
        assert!(!self.boundary.has_notices());
        notices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helpers::corpus;

    #[test]
    fn the_corpus_breaks_no_promise() {
        for input in corpus("boundary") {
            play(&input);
        }
    }

    /// A scope that is named backs off, unless the outcome only states its cost; the others ignore a refusal.
    #[test]
    fn a_scope_that_is_named_backs_off_and_the_others_ignore_it() {
        let nan = f64::NAN;
        for (answer, flags, own, steps) in [
            (429.0, flags::NAMED_ONLY, [nan, nan], [1.0, 0.0, 0.0]),
            (1.0, flags::NAMED_ONLY, [nan, nan], [1.0, 0.0, 0.0]),
            (429.0, flags::NAMED_ONLY, [0.0, nan], [0.0, 0.0, 0.0]),
            (429.0, flags::NAMED_ONLY, [nan, 2.0], [1.0, 0.0, 0.0]),
            (200.0, flags::NAMED_ONLY, [nan, 2.0], [0.0, 0.0, 0.0]),
            (200.0, flags::NAMED_ONLY, [nan, nan], [1.0, 0.0, 0.0]),
            (200.0, flags::NAMED_ONLY | flags::BAD, [0.0, nan], [0.0, 1.0, 1.0]),
            (429.0, 0, [nan, nan], [1.0, 1.0, 1.0]),
        ] {
            let mut boundary = Boundary::new(Value::Map(vec![])).unwrap();
            let scopes = ["a", "b", "c"].map(|name| boundary.scope(name));
            let ticket = boundary.send_many_at_once(0.0, &scopes, &[1.0], 0.0);
            let record = [scopes[0], 0.0, own[0], nan, nan, nan, own[1]];
            let outcome = Outcome { scopes: &record, ..Outcome::new(answer, nan, nan, flags) };
            assert_eq!(boundary.settle(0.0, ticket, &outcome), Settled::Over);
            let step = |scope| number(&boundary.scope_stats(0.0, scope), "backoffStep");
            assert_eq!(scopes.map(step), steps, "{answer} {flags} {own:?}");
        }
    }

    fn number(stats: &Value, key: &str) -> f64 {
        let Value::Map(fields) = stats else { panic!("{stats:?}") };
        let Some((_, Value::Number(number))) = fields.iter().find(|(name, _)| name == key) else {
            panic!("no {key} in {stats:?}")
        };
        *number
    }

    /// `BOUNDARY_CALLS=10000000` plays as many, not counting the bogus ones; `BOUNDARY_SEED=2` plays others.
    #[test]
    fn random_calls_break_no_promise_and_leave_nothing_behind() {
        let given = |name| std::env::var(name).ok().map(|number| number.parse::<u64>().expect(name));
        let (most, seed) = (given("BOUNDARY_CALLS").unwrap_or(20_000), given("BOUNDARY_SEED").unwrap_or(1));
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut calls = 0;
        while calls < most {
            // A first byte of 0 is options of no length, so the ones above.
            let mut bytes = vec![0];
            let length = 200 + next() % 3000;
            bytes.extend((0..length).map(|_| (next() >> 32) as u8));
            calls += play(&bytes);
        }
        println!("{calls} calls");
    }
}
