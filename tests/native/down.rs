//! `downAfter`: a scope from which no answer comes refuses what waits, and lets one request at a time
//! through.

use autothrottle::{
    Answer, Decision, Engine, Failure, Feedback, Instant, Notice, Request, ScopeId, SubmitError,
};

use crate::made;

const FAILED: Feedback = Feedback { answer: Answer::Failed(Failure::Connection), ..Feedback::IGNORED };

fn engine(options: &str) -> (Engine, ScopeId) {
    let mut engine = made::engine(options);
    let scope = engine.scope("a");
    (engine, scope)
}

fn at(seconds: u64) -> Instant {
    Instant::from_micros(seconds * 1_000_000)
}

/// Sends a request at this second, which ends like this; gives for how many seconds the scope is then said
/// to be down.
fn play(engine: &mut Engine, scope: ScopeId, second: u64, feedback: &Feedback) -> Option<u64> {
    let ticket = engine.submit(at(second), Request::new(&[scope])).unwrap();
    assert_eq!(engine.poll(at(second)), Decision::Send(ticket));
    engine.settle(at(second), ticket, feedback);
    engine.take_notices().into_iter().find_map(|notice| match notice {
        Notice::Down { span, .. } => Some(span.micros() / 1_000_000),
        _ => None,
    })
}

const FREE: &str = r#"{ "downAfter": 60000, "delay": 0, "jitter": false, "backoff": false }"#;

#[test]
fn a_scope_is_down_after_a_run_of_failures_and_says_so_once() {
    let (mut engine, scope) = engine(FREE);
    assert_eq!(play(&mut engine, scope, 0, &FAILED), None);
    assert_eq!(play(&mut engine, scope, 61, &FAILED), None, "two are no run");
    assert_eq!(play(&mut engine, scope, 62, &FAILED), Some(62));
    assert_eq!(play(&mut engine, scope, 63, &FAILED), None);
}

#[test]
fn any_answer_ends_it_and_nothing_learned_does_not() {
    let (mut engine, scope) = engine(FREE);
    for (second, feedback) in [(0, FAILED), (30, FAILED), (50, Feedback::IGNORED)] {
        assert_eq!(play(&mut engine, scope, second, &feedback), None);
    }
    assert_eq!(play(&mut engine, scope, 61, &FAILED), Some(61));
    assert_eq!(play(&mut engine, scope, 62, &Feedback::response(503)), None);
    let all: Vec<_> = (0..5).map(|_| engine.submit(at(63), Request::new(&[scope]))).collect();
    assert!(all.iter().all(Result::is_ok), "{all:?}");
}

#[test]
fn while_it_is_down_one_request_at_a_time_is_let_through() {
    let (mut engine, scope) = engine(r#"{ "downAfter": 60000, "delay": 10000, "jitter": false }"#);
    let scopes = [scope];
    let request = Request::new(&scopes);
    let mut now = at(0);
    let mut is_down = false;
    while !is_down {
        let ticket = engine.submit(now, request).unwrap();
        while let Decision::Wait { until, .. } = engine.poll(now) {
            now = until;
        }
        engine.settle(now, ticket, &FAILED);
        is_down = engine.take_notices().iter().any(|notice| matches!(notice, Notice::Down { .. }));
    }
    assert!(now < at(120), "{now:?}");
    let is_refused = |answer| matches!(answer, Err(SubmitError::ScopeDown { scope: of, .. }) if of == scope);
    assert!(is_refused(engine.submit(now, request).map(drop)), "it could not leave at once");
    assert!(is_refused(engine.send_at_once(now, request).map(drop)) || engine.waiting() == 0);
    let later = now + autothrottle::Span::from_millis(299_000.0);
    let probe = engine.send_at_once(later, request).unwrap().expect("the pace lets it go");
    assert!(is_refused(engine.send_at_once(later, request).map(drop)), "one is on its way");
    engine.settle(later, probe, &FAILED);
    assert!(is_refused(engine.submit(later, request).map(drop)));
    let is_down = |notice: &Notice| matches!(notice, Notice::Down { .. });
    assert!(!engine.take_notices().iter().any(is_down), "it is told once");
}

#[test]
fn without_the_setting_nothing_is_refused() {
    let (mut engine, scope) =
        engine(r#"{ "downAfter": false, "delay": 0, "jitter": false, "backoff": false }"#);
    for second in 0..1000 {
        assert_eq!(play(&mut engine, scope, second, &FAILED), None);
    }
}
