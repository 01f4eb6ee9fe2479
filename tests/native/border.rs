//! Any bytes at all, played as calls at the border: what the fuzzer calls (`fuzz/`), and what replays the corpus that
//! it found.
//!
//! The trap is a fuzzer of well-formed calls. Here numbers are whatever eight bytes make, handles and tickets are
//! half of the time invented, options and snapshots are text, and time jumps about.

use autothrottle::{
    Config, Decision, Engine, Feedback, Hint, Hints, Instant, Request, ScopeId, Snapshot, Span, Ticket,
    Value, crawl_delay_ms, headers::Context,
};

/// Options that reach every policy, for bytes that begin with none of their own.
const OPTIONS: &str = r#"{ "seed": 1, "concurrency": 5, "maxWaiting": 300, "maxScopes": 6,
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

    fn json(&mut self) -> Option<Value> {
        let length = usize::from(self.byte()) * 4;
        serde_json::from_slice(self.take(length)).ok()
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

    /// One of those that exist, or an invention.
    fn pick<T: Copy>(&mut self, known: &[T], invent: impl Fn(f64) -> Option<T>) -> Option<T> {
        match self.byte() {
            byte if byte < 220 && !known.is_empty() => Some(known[usize::from(byte) % known.len()]),
            _ => invent(self.number()),
        }
    }
}

/// Plays bytes as calls. Panics if a promise of the engine's is broken.
#[allow(clippy::too_many_lines, reason = "one arm a call")]
pub fn play(bytes: &[u8]) {
    let mut tape = Tape(bytes);
    let typed = tape.json().and_then(|options| Config::parse(options).ok());
    let config = typed.unwrap_or_else(|| Config::parse(serde_json::from_str(OPTIONS).unwrap()).unwrap());
    let mut engine = Engine::new(config.clone());
    let mut scopes: Vec<ScopeId> = Vec::new();
    let mut tickets: Vec<Ticket> = Vec::new();
    let mut clock = 0.0;
    while !tape.0.is_empty() {
        let action = tape.byte();
        clock += f64::from(action >> 4);
        let now = match action & 15 {
            15 => Instant::from_millis(tape.number()).unwrap_or(engine.now()),
            _ => Instant::from_millis(clock).unwrap_or(engine.now()),
        };
        let scope = |tape: &mut Tape, scopes: &[ScopeId]| tape.pick(scopes, ScopeId::from_number);
        match tape.byte() % 16 {
            0 | 1 => {
                let names =
                    ["a.example", "b.example", "free", "d.example", "e.example", "", "g", "h", "i", "j"];
                let name = names[usize::from(tape.byte()) % names.len()];
                scopes.push(if tape.byte() < 128 { engine.scope(name) } else { engine.intern(name) });
            }
            2..=4 => {
                let count = usize::from(tape.byte() % 4);
                let named: Vec<ScopeId> = (0..count).filter_map(|_| scope(&mut tape, &scopes)).collect();
                let costs: Vec<f64> = (0..tape.byte() % 3).map(|_| tape.number()).collect();
                let delay_ms = if tape.byte() < 128 { 0.0 } else { tape.number() };
                let priority = if tape.byte() < 128 { 0.0 } else { tape.number() };
                let request = Request { scopes: &named, costs: &costs, priority, delay_ms };
                let peek = engine.peek(now, request);
                match engine.submit(now, request) {
                    Ok(ticket) => {
                        assert_eq!(Ticket::from_number(ticket.to_number()), Some(ticket));
                        assert!(peek.is_ok(), "what can be taken in can be looked at");
                        tickets.push(ticket);
                    }
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
            5..=7 => poll(&mut engine, now),
            8 | 9 => {
                if let Some(ticket) = tape.pick(&tickets, Ticket::from_number) {
                    let (status, latency, cost) = (tape.number(), tape.number(), tape.number());
                    let bad = if action & 32 > 0 { f64::from(action & 64) } else { f64::NAN };
                    let mut feedback = Feedback::from_numbers(status, latency, action < 200, cost, bad);
                    if action & 16 > 0 {
                        let length = usize::from(tape.byte());
                        let lines = String::from_utf8_lossy(tape.take(length)).replace('~', "\nx-ratelimit-");
                        let context = Context {
                            status: status as u16,
                            wall_ms: Some(1_795_203_840_000),
                            ..Context::default()
                        };
                        feedback.hint = Hint::of(&Hints::from_lines(&lines, context));
                    }
                    if action & 128 > 0 {
                        engine.retry(now, ticket, &feedback, cost);
                    } else {
                        engine.settle(now, ticket, &feedback);
                    }
                }
            }
            10 => {
                if let Some(ticket) = tape.pick(&tickets, Ticket::from_number) {
                    engine.cancel(now, ticket);
                }
            }
            11 => {
                if let Some(ticket) = tape.pick(&tickets, Ticket::from_number) {
                    engine.prioritize(now, ticket, tape.number());
                }
            }
            12 => {
                if let Some(scope) = scope(&mut tape, &scopes) {
                    match tape.byte() % 7 {
                        0 => engine.hold(now, scope, Span::from_millis(tape.number())),
                        1 => engine.pause(now, scope),
                        2 => engine.resume(now, scope),
                        3 => engine.reset(now, scope),
                        4 => engine.release(scope),
                        5 => {
                            let text = tape.take(40);
                            let delay = crawl_delay_ms(text, "bot").map(Span::from_millis);
                            engine.crawl_delay(now, scope, delay);
                        }
                        _ => drop(engine.keep_alive(scope)),
                    }
                }
            }
            13 => {
                if let (Some(scope), Some(partial)) = (scope(&mut tape, &scopes), tape.json()) {
                    let before = engine.scope_stats(now, scope);
                    if let Err(error) = engine.configure(now, scope, partial) {
                        assert!(!error.problems.is_empty());
                        assert_eq!(engine.scope_stats(now, scope), before, "a wrong setting changes nothing");
                    }
                }
            }
            14 => {
                let snapshot = engine.snapshot(now, Some(1e12));
                let text = serde_json::to_string(&Value::from(snapshot)).unwrap();
                let parsed = Snapshot::parse(serde_json::from_str(&text).unwrap());
                let parsed = parsed.unwrap_or_else(|error| panic!("{error}\n{text}"));
                let later = 1e12 + tape.number();
                poll(&mut Engine::restore(config.clone(), &parsed, now, Some(later)), now);
            }
            _ => {
                if let Some(Ok(snapshot)) = tape.json().map(Snapshot::parse) {
                    poll(&mut Engine::restore(config.clone(), &snapshot, now, None), now);
                }
                engine.pause_all(tape.byte() < 64);
            }
        }
        assert!(engine.stats(now).waiting == engine.waiting());
    }
    poll(&mut engine, Instant::from_millis(clock + 1e9).unwrap_or_default());
}

/// Asks until there is no more to send.
fn poll(engine: &mut Engine, now: Instant) {
    let waiting = engine.waiting();
    for _ in 0..=waiting {
        match engine.poll(now) {
            Decision::Send(_) => {}
            Decision::Wait { until, .. } => {
                return assert!(until > engine.now(), "a wait ends in the future");
            }
            Decision::Idle { .. } => return,
        }
    }
    panic!("more was sent than waited");
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn the_corpus_breaks_no_promise() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/border");
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(files.len() > 100, "{} files", files.len());
        for file in files {
            play(&fs::read(file).unwrap());
        }
    }
}
