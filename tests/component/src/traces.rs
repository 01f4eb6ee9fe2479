//! A host of the component as the player of traces asks it: spans in milliseconds, instants in microseconds.

use autothrottle::boundary::flags;

use crate::{
    Compiled, Host, call,
    player::{self, Line, Stats},
    problems,
    wit::{Cause, Needs, Robots, SubmitError},
};

pub fn play(compiled: &Compiled, trace: &str) -> String {
    player::play(trace, |json| {
        let host = compiled.instance().unwrap().engine(json, 0).unwrap();
        host.map_err(|wrong| problems("options", &wrong))
    })
}

impl player::Host for Host {
    type Ticket = u64;

    fn submit(&mut self, now: u64, line: &Line) -> Result<(u64, bool), String> {
        let (now, span) = (now * 1000, |key: &str| line.number(key).map(nanos));
        let scopes = self.scopes(line, 2);
        let needs = Some(&Needs {
            costs: line.costs(),
            priority: line.number("priority").unwrap_or(0.0),
            delay: span("delay").unwrap_or(0),
            waited: span("waited").unwrap_or(0),
        });
        let ticket = match line.words[0] {
            "adopt" => call!(*self, call_adopt, now, &scopes, needs, span("ago").unwrap()).unwrap(),
            "send" => match call!(*self, call_send_at_once, now, &scopes, needs).unwrap() {
                Ok(Some(ticket)) => return Ok((ticket, true)),
                Ok(None) => call!(*self, call_submit, now, &scopes, needs).unwrap(),
                Err(error) => Err(error),
            },
            _ => call!(*self, call_submit, now, &scopes, needs).unwrap(),
        };
        ticket.map(|ticket| (ticket, false)).map_err(|error| refusal(&error))
    }

    fn settle(&mut self, now: u64, ticket: u64, line: &Line) {
        let number = |key: &str| line.number(key).unwrap_or(f64::NAN);
        let answer = if line.has("error") { 0.0 } else { f64::NAN };
        let answer = line.number("status").unwrap_or(answer);
        let verdict = line.is_bad().map_or(0, |is_bad| if is_bad { flags::BAD } else { flags::GOOD });
        let bits = verdict | if line.has("keep") { flags::KEEP_DELAY } else { 0 };
        let told = [answer, number("latency"), number("cost"), f64::from(bits), number("retry")];
        let wall = line.number("wall").map(nanos);
        call!(*self, call_settle, now * 1000, ticket, &told, &line.fields(), wall).unwrap();
    }

    fn prioritize(&mut self, now: u64, ticket: u64, priority: f64) {
        call!(*self, call_prioritize, now * 1000, ticket, priority).unwrap();
    }

    fn cancel(&mut self, now: u64, ticket: u64) {
        call!(*self, call_cancel, now * 1000, ticket).unwrap();
    }

    fn change(&mut self, now: u64, line: &Line) -> Option<String> {
        let now = now * 1000;
        let name = line.words.get(1).map(|name| self.scope(name));
        let (scope, span) = (name.unwrap_or_default(), line.amount().map(nanos));
        match line.words[0] {
            "crawl-delay" => {
                let outcome = match call!(*self, call_crawl_delay, now, scope, span).unwrap() {
                    Robots::Applied => "applied",
                    Robots::Overruled => "overruled",
                    Robots::Ignored => "ignored",
                };
                return Some(format!("crawl-delay {outcome}"));
            }
            "configure" => {
                let done = call!(*self, call_configure, now, scope, line.json()).unwrap();
                return done.err().map(|wrong| problems("options", &wrong));
            }
            "hold" => call!(*self, call_hold, now, scope, span.unwrap()).unwrap(),
            "adjust" => {
                let number = |key| line.number(key).unwrap();
                let (sent, from, to) = (nanos(number("sent")), number("from"), number("to"));
                assert!(call!(*self, call_adjust, now, scope, sent, from, to).unwrap());
            }
            "pause" => call!(*self, call_pause, now, name).unwrap(),
            "resume" => call!(*self, call_resume, now, name).unwrap(),
            "reset" => call!(*self, call_reset, now, scope).unwrap(),
            other => panic!("no such event: {other}"),
        }
        None
    }

    fn peek(&mut self, now: u64, line: &Line) -> (Option<u64>, String) {
        let scopes = self.scopes(line, 1);
        let peek = call!(*self, call_peek, now * 1000, &scopes, &[]).unwrap().unwrap();
        (peek.at.map(|at| at / 1000), self.because(peek.because))
    }

    fn stats(&mut self, now: u64, scope: &str) -> Stats {
        let scope = self.scope(scope);
        let stats = call!(*self, call_scope_stats, now * 1000, scope).unwrap().expect("a scope of ours");
        let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
        let count = |key: &str| stats[key].as_u64().expect(key) as u32;
        let micros = |key: &str| stats[key].as_f64().map(|ms| (ms * 1000.0).round() as u64);
        Stats {
            delay: micros("delayMs").expect("a delay"),
            step: count("backoffStep"),
            slots: count("slots"),
            in_flight: count("inFlight"),
            waiting: count("waiting"),
            hold: micros("holdUntil"),
            quota: stats["quotaLeft"].as_f64(),
            reason: stats["reason"].as_str().map(String::from),
        }
    }

    fn poll(&mut self, now: u64) -> (Vec<u64>, Option<u64>, String) {
        let decision = call!(*self, call_poll, now * 1000).unwrap();
        let because = self.because(decision.because);
        (decision.send, decision.wake.map(|wake| wake / 1000), because)
    }
}

impl Host {
    fn scope(&mut self, name: &str) -> u64 {
        call!(*self, call_scope, name).unwrap()
    }

    fn scopes(&mut self, line: &Line, at: usize) -> Vec<u64> {
        line.scopes(at).map(|name| self.scope(name)).collect()
    }

    fn because(&mut self, because: Option<Cause>) -> String {
        let Some(cause) = because else { return String::new() };
        let name = cause.scope.and_then(|scope| call!(*self, call_name, scope).unwrap());
        format!(" {} {}", cause.reason, name.as_deref().unwrap_or("-"))
    }
}

fn refusal(error: &SubmitError) -> String {
    match error {
        SubmitError::UnknownScope => "the request names no scope that the engine knows".into(),
        SubmitError::QueueFull => "as many requests wait as maxWaiting allows".into(),
        SubmitError::CostExceedsQuota(place) => {
            let (scope, path) = (&place.scope, &place.path);
            format!("the request costs more than {scope} ({path}) ever allows")
        }
        SubmitError::NotANumber => "cost and delay must be finite and not below 0, priority finite".into(),
        SubmitError::ScopeDown(_) => "no answer has come from a scope for downAfter".into(),
    }
}

fn nanos(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}
