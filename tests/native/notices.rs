//! What answers change is told by the engine, once, and costs nothing where nobody listens.

use autothrottle::{Config, Engine, Feedback, Hint, Instant, Notice, Request, Span, Watch};

fn engine(options: &str, watch: Watch) -> Engine {
    let mut engine = Engine::new(Config::parse(serde_json::from_str(options).unwrap()).unwrap());
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
        Notice::Hold { pace, asked } => {
            let until = pace.hold_until.map(Instant::millis);
            format!("hold {} {until:?} of {:?}", pace.scope, asked.map(Span::millis))
        }
        Notice::Answer { pace, is_bad, delay_before_ms, in_flight } => {
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

const PLAIN: &str = r#"{ "defaults": { "delay": 1000, "slotDelay": 0, "jitter": false } }"#;

#[test]
fn what_answers_change_is_told_once() {
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
    exchange(&mut engine, 0, &refusal(3_600_000.0));
    assert_eq!(told(&mut engine)[2], "hold a Some(300050.0) of Some(3600000.0)");
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
    let options = r#"{ "backoff": { "httpCodes": [418], "errors": [] },
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
