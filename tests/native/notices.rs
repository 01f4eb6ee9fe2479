//! The engine tells once what answers change, and that is free without a listener.

use std::collections::VecDeque;

use autothrottle::{
    Boundary, Decision, Engine, Feedback, Heard, Held, Hint, Instant, Notice, Request, Span, Ticket, Watch,
    boundary::{Outcome, UNTOLD, flags},
};

use crate::helpers;

fn engine(options: &str, watch: Watch) -> Engine {
    let mut engine = helpers::engine(options);
    engine.watch(watch);
    engine
}

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

/// Sends one request at `sent` and tells its answer 50 ms later.
fn exchange(engine: &mut Engine, sent: u64, feedback: &Feedback) {
    let scope = engine.scope("a");
    let ticket = engine.submit(at(sent), Request::new(&[scope])).unwrap();
    while engine.poll(at(sent)) != autothrottle::Decision::Send(ticket) {}
    engine.settle(at(sent + 50), ticket, feedback);
}

fn told(engine: &mut Engine) -> Vec<String> {
    let line = |notice| match notice {
        Notice::Backoff(pace) => format!("backoff {} {} {}", pace.scope, pace.delay_ms, pace.step),
        Notice::Recover(pace) => format!("recover {} {} {}", pace.scope, pace.delay_ms, pace.step),
        Notice::Delay(pace) => format!("delay {} {} {}", pace.scope, pace.delay_ms, pace.step),
        Notice::Hold(Held { pace, asked_ms }) => {
            format!("hold {} {:?} of {asked_ms:?}", pace.scope, pace.hold_until)
        }
        Notice::Answer(Heard { pace, is_bad, delay_before_ms, in_flight, .. }) => {
            format!("answer {} {is_bad} {delay_before_ms} {} {in_flight}", pace.scope, pace.delay_ms)
        }
        other => format!("{other:?}"),
    };
    engine.take_notices().into_iter().map(line).collect()
}

fn refusal(hold_ms: f64) -> Feedback {
    let hold = Some(Span::from_millis(hold_ms));
    Feedback { hint: Hint { hold, asked: hold, ..Hint::default() }, ..Feedback::response(429) }
}

const PLAIN: &str = r#"{ "defaults": { "delay": 1000, "slotDelay": 0, "jitter": false, "backoff": {} } }"#;

#[test]
fn a_change_by_an_answer_is_told_once() {
    let mut engine = engine(PLAIN, Watch::Changes);
    exchange(&mut engine, 0, &Feedback::response(200));
    assert!(told(&mut engine).is_empty());
    exchange(&mut engine, 1000, &refusal(10_000.0));
    assert_eq!(told(&mut engine), ["backoff a 2000 1", "delay a 2000 1", "hold a Some(11050.0) of None"]);
    exchange(&mut engine, 12_000, &Feedback::response(200));
    assert!(told(&mut engine).is_empty());
    // The step back was taken by time alone, at 61.05 s; the next answer tells it.
    exchange(&mut engine, 100_000, &Feedback::response(200));
    assert_eq!(told(&mut engine), ["recover a 1000 0", "delay a 1000 0"]);
}

#[test]
fn a_hold_that_was_cut_says_what_was_asked() {
    let mut engine = engine(PLAIN, Watch::Changes);
    exchange(&mut engine, 0, &refusal(100_000_000.0));
    assert_eq!(told(&mut engine)[2], "hold a Some(86400050.0) of Some(100000000.0)");
}

/// Each scope once, also without a listener.
#[test]
fn a_wait_that_is_cut_is_warned_of() {
    let options = r#"{ "defaults": { "delay": 0 }, "scopes": { "a": { "backoff": { "maxHold": 5000 } } } }"#;
    let mut engine = engine(options, Watch::Nothing);
    exchange(&mut engine, 0, &refusal(5000.0));
    assert!(!engine.has_notices(), "it is kept");
    for sent in [10_000, 20_000] {
        exchange(&mut engine, sent, &refusal(60_000.0));
    }
    let [Notice::WaitCapped(cut)] = &engine.take_notices()[..] else { panic!("one") };
    assert_eq!((&*cut.scope, &*cut.path), ("a", "backoff.maxHold"));
    assert_eq!(cut.why, "the server asked for 60 s, and 5 s are kept");
}

#[test]
fn nothing_is_told_where_nobody_listens_and_every_answer_where_somebody_wants_it() {
    let mut silent = engine(PLAIN, Watch::Nothing);
    exchange(&mut silent, 0, &refusal(1000.0));
    assert!(!silent.has_notices());
    let mut talking = engine(PLAIN, Watch::Answers);
    exchange(&mut talking, 0, &Feedback::response(200));
    exchange(&mut talking, 1000, &Feedback::IGNORED);
    assert_eq!(told(&mut talking), ["answer a false 1000 1000 0"], "what says nothing is no answer");
}

/// A manager decides what to do; what is bad is said by the same settings as ever.
#[test]
fn answers_of_a_managed_scope_are_classified_and_change_nothing() {
    let options = r#"{ "backoff": { "statusCodes": [418], "errors": [] },
                       "defaults": { "delay": 10, "slotDelay": 0, "jitter": false, "rampup": true, "manager": {} } }"#;
    let mut engine = engine(options, Watch::Nothing);
    exchange(&mut engine, 0, &Feedback::response(418));
    exchange(&mut engine, 1000, &Feedback::response(429));
    let failed = autothrottle::Answer::Failed(autothrottle::Failure::Timeout);
    exchange(&mut engine, 2000, &Feedback { answer: failed, ..Feedback::IGNORED });
    assert_eq!(
        told(&mut engine),
        ["answer a true 10 10 0", "answer a false 10 10 0", "answer a false 10 10 0"]
    );
    let scope = engine.scope("a");
    assert_eq!(engine.scope_stats(at(3000), scope).unwrap().backoff_step, 0);
    let partial = serde_json::from_str(r#"{ "manager": {} }"#).unwrap();
    assert!(engine.configure(at(3000), scope, partial).is_err(), "a manager does not come later");
}

#[test]
fn with_rampup_a_refusal_is_told_too() {
    let options = r#"{ "defaults": { "rampup": true } }"#;
    let mut engine = engine(options, Watch::Changes);
    exchange(&mut engine, 0, &Feedback::response(429));
    assert!(told(&mut engine).iter().any(|line| line.starts_with("backoff a")));
}

/// Keeps twenty requests waiting for a server that refuses no request and answers after 200 ms.
struct Crawl {
    engine: Engine,
    now: Instant,
    flying: VecDeque<(Instant, Ticket)>,
    waiting: u32,
}

impl Crawl {
    fn new(options: &str) -> Self {
        let engine = engine(options, Watch::Nothing);
        Self { engine, now: at(0), flying: VecDeque::new(), waiting: 0 }
    }

    /// The notices of limits that bind, up to a time in seconds.
    fn until(&mut self, seconds: u64, answer: impl Fn(u64) -> Feedback) -> Vec<String> {
        let scope = self.engine.scope("a");
        while self.now < at(1000 * seconds) {
            while self.waiting < 20 {
                self.engine.submit(self.now, Request::new(&[scope])).unwrap();
                self.waiting += 1;
            }
            let next = match self.engine.poll(self.now) {
                Decision::Send(ticket) => {
                    self.flying.push_back((self.now + Span::from_millis(200.0), ticket));
                    self.waiting -= 1;
                    continue;
                }
                Decision::Wait { until, .. } => Some(until),
                Decision::Idle { .. } => None,
            };
            let answered = self.flying.front().map(|&(due, _)| due);
            self.now = next.into_iter().chain(answered).min().unwrap();
            if answered == Some(self.now) {
                let (_, ticket) = self.flying.pop_front().unwrap();
                self.engine.settle(self.now, ticket, &answer(self.now.micros() / 1000));
            }
        }
        let line = |notice| match notice {
            Notice::RampupBound(found) => Some(format!("{} [{}] {}", found.path, found.scope, found.why)),
            _ => None,
        };
        self.engine.take_notices().into_iter().filter_map(line).collect()
    }
}

#[test]
fn a_limit_of_the_users_that_binds_rampup_is_told_once() {
    let cases = [
        (r#"{ "scopes": { "a": { "rampup": true, "concurrency": 4 } } }"#, "scopes.a.concurrency"),
        (r#"{ "rampup": { "maxConcurrency": 4 } }"#, "rampup.maxConcurrency"),
        (r#"{ "defaults": { "rampup": { "minDelay": 40 } } }"#, "defaults.rampup.minDelay"),
        (r#"{ "rampup": true, "scopes": { "a": { "delay": 40 } } }"#, "scopes.a.delay"),
        (
            r#"{ "scopes": { "a": { "rampup": true, "concurrency": 3, "slotDelay": 500 } } }"#,
            "scopes.a.slotDelay",
        ),
        (r#"{ "rampup": true, "quota": { "limit": 100, "window": 10000 } }"#, "quota"),
        (r#"{ "rampup": true, "maxInFlight": 2 }"#, "maxInFlight"),
    ];
    for (options, path) in cases {
        let mut crawl = Crawl::new(options);
        let told = crawl.until(300, |_| Feedback::response(200));
        assert_eq!(told.len(), 1, "{options}: {told:?}");
        let percent = told[0].strip_prefix(&format!("{path} [a] requests waited for it "));
        let percent = percent.and_then(|rest| rest.strip_suffix(" % of the last minute")).expect(&told[0]);
        assert!((50..=100).contains(&percent.parse::<u32>().unwrap()), "{told:?}");
        assert!(crawl.until(900, |_| Feedback::response(200)).is_empty(), "once");
    }
}

#[test]
fn another_limit_that_binds_later_is_told_too() {
    let mut crawl = Crawl::new(r#"{ "scopes": { "a": { "rampup": true, "concurrency": 2 } } }"#);
    let well = |_| Feedback::response(200);
    assert_eq!(crawl.until(300, well).len(), 1);
    let scope = crawl.engine.scope("a");
    let partial = serde_json::from_str(r#"{ "concurrency": 5 }"#).unwrap();
    crawl.engine.configure(crawl.now, scope, partial).unwrap();
    assert_eq!(
        crawl.until(600, well),
        ["scopes.a.concurrency [a] requests waited for it 100 % of the last minute"]
    );
}

/// The server's limit is what binds, though slots are used up now and then and requests wait all the time.
#[test]
fn nothing_binds_rampup_but_the_server() {
    for options in [
        r#"{ "rampup": true }"#,
        r#"{ "scopes": { "a": { "rampup": true, "concurrency": 4 } } }"#,
        r#"{ "rampup": { "minDelay": 40 } }"#,
        r#"{ "rampup": true, "quota": { "limit": 1000, "window": 10000 } }"#,
    ] {
        let mut crawl = Crawl::new(options);
        let bucket = std::cell::Cell::new((0_u64, 5.0_f64));
        // Ten a second, five at once.
        let told = crawl.until(900, |ms| {
            let (last, tokens) = bucket.get();
            let tokens = (tokens + (ms - last) as f64 / 100.0).min(5.0);
            let is_served = tokens >= 1.0;
            bucket.set((ms, if is_served { tokens - 1.0 } else { tokens }));
            Feedback::response(if is_served { 200 } else { 429 })
        });
        assert!(told.is_empty(), "{options}: {told:?}");
    }
    // Without rampup a limit that binds is what was asked for.
    assert!(
        Crawl::new(r#"{ "delay": 40, "concurrency": 2 }"#).until(300, |_| Feedback::response(200)).is_empty()
    );
}

/// Where robots.txt asks for one request at a time, that binds and no limit of the user's.
#[test]
fn a_crawl_delay_binds_in_place_of_the_slots_that_were_typed() {
    let mut crawl = Crawl::new(r#"{ "defaults": { "rampup": { "maxConcurrency": 4 } } }"#);
    let scope = crawl.engine.scope("a");
    crawl.engine.crawl_delay(at(0), scope, Some(Span::from_millis(10.0)));
    let told = crawl.until(300, |_| Feedback::response(200));
    assert!(told.iter().all(|line| !line.contains("oncurrency")), "{told:?}");
}

/// How many notices twice these outcomes bring, and 19 without a word after them.
fn silences(options: &str, outcomes: &[Outcome]) -> usize {
    let mut boundary = Boundary::new(helpers::json(options)).unwrap();
    let scopes = [boundary.scope("a"), boundary.scope("b")];
    let untold = [Outcome::new(UNTOLD, f64::NAN, f64::NAN, 0); 19];
    let mut told = 0;
    for (hour, outcome) in outcomes.iter().chain(outcomes).chain(&untold).enumerate() {
        let now = 3_600_000.0 * hour as f64;
        let ticket = boundary.send_many_at_once(now, &scopes, &[1.0], 0.0);
        assert!(ticket >= 0.0);
        boundary.settle(now, ticket, outcome);
        told += boundary.notices().iter().filter(|notice| notice.kind() == "no-status").count();
    }
    told
}

#[test]
fn twenty_ends_without_a_word_are_told_of_each_scope() {
    let untold = Outcome::new(UNTOLD, f64::NAN, f64::NAN, 0);
    let answer = |answer| Outcome { answer, ..untold };
    let said = |flags| Outcome { flags, ..untold };
    let own = Outcome { scopes: &[0.0, f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN, 3.0], ..untold };
    for options in [r#"{ "defaults": { "delay": 0 } }"#, r#"{ "defaults": { "delay": 0, "quota": 99 } }"#] {
        let many = |outcome| silences(options, &[outcome; 10]);
        assert_eq!(many(untold), 2, "{options}");
        // No server was asked, or its answer is unwanted: that is no word, and no silence.
        assert_eq!(silences(options, &[answer(f64::NAN); 10]), 0);
        let mixed: Vec<Outcome> = (0..10).flat_map(|_| [untold, answer(f64::NAN)]).collect();
        assert_eq!(silences(options, &mixed), 2);
        for word in [answer(200.0), answer(503.0), answer(0.0), said(flags::GOOD), said(flags::BAD), own] {
            let mut all = [untold; 10];
            all[9] = word;
            assert_eq!(silences(options, &all), 0, "{options} {word:?}");
        }
    }
}
