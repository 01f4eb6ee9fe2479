//! The golden traces, natively. `tests/js/replay.test.ts` plays them through WebAssembly. Both transcripts
//! must be equal to the trace itself, byte for byte.
//!
//! `UPDATE_GOLDEN=1` writes the answers: review them as behaviour.

use std::{fmt::Write, fs};

use autothrottle::{
    Answer, Cause, Config, Cost, Decision, Engine, Failure, Feedback, Hint, Hints, Instant, Request, ScopeId,
    Span, SubmitError, Ticket, Value, headers::Context,
};

use crate::player::{Host, Line, Stats, play};

#[test]
fn every_trace_has_the_answers_that_stand_in_it() {
    let open =
        |json: &str| Config::parse(json_value(json)).map(Engine::new).map_err(|error| error.to_string());
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let (mut wrong, mut count) = (String::new(), 0);
    for file in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut stories = text.split("\n== ");
        let mut written = stories.next().unwrap().trim_end().to_owned();
        for story in stories {
            let (name, story) = story.split_once('\n').unwrap();
            let transcript = play(story, open);
            if transcript.trim_end() != story.trim_end() {
                write!(wrong, "--- {name}\n{transcript}").unwrap();
            }
            write!(written, "\n\n== {name}\n{}", transcript.trim_end()).unwrap();
            count += 1;
        }
        if is_update {
            fs::write(path, written + "\n").unwrap();
        }
    }
    assert!(count >= 47, "only {count} traces");
    assert!(is_update || wrong.is_empty(), "{wrong}");
}

impl Host for Engine {
    type Ticket = Ticket;

    fn submit(&mut self, now: u64, line: &Line) -> Result<(Ticket, bool), String> {
        let now = Instant::from_micros(now);
        let scopes: Vec<ScopeId> = line.scopes(2).map(|name| self.scope(name)).collect();
        let request = Request {
            costs: &line.costs(),
            priority: line.number("priority").unwrap_or(0.0),
            delay_ms: line.number("delay").unwrap_or(0.0),
            waited_ms: line.number("waited").unwrap_or(0.0),
            ..Request::new(&scopes)
        };
        let ticket = match line.words[0] {
            "adopt" => self.adopt(now, request, Span::from_millis(line.number("ago").unwrap())),
            "send" => match self.send_at_once(now, request) {
                Ok(Some(ticket)) => return Ok((ticket, true)),
                Ok(None) => self.submit(now, request),
                Err(error) => Err(error),
            },
            _ => self.submit(now, request),
        };
        ticket.map(|ticket| (ticket, false)).map_err(|error| match error {
            SubmitError::CostExceedsQuota { scope, setting } => {
                let place =
                    format!("{} ({})", self.name(scope).unwrap(), self.config_path(scope, setting).unwrap());
                error.to_string().replace("a scope", &place)
            }
            error => error.to_string(),
        })
    }

    fn settle(&mut self, now: u64, ticket: Ticket, line: &Line) {
        let now = Instant::from_micros(now);
        let status = line.number("status").map(|status| status as u16);
        let fields = line.fields();
        let fields = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let wall_ms = line.number("wall").map(|ms| ms as i64);
        let context = Context { status: status.unwrap_or(0), wall_ms, ..Context::default() };
        let feedback = Feedback {
            answer: match status {
                Some(status) => Answer::Response { status },
                None if line.has("error") => Answer::Failed(Failure::Connection),
                None => Answer::Ignored,
            },
            latency_ms: line.number("latency"),
            adjust_delay: !line.has("keep"),
            cost: line.number("cost").and_then(Cost::from_units),
            is_bad: line.is_bad(),
            hint: Hint::of(&Hints::read(fields, context)),
        };
        match line.number("retry") {
            Some(delay_ms) => assert!(self.retry_each(now, ticket, |_| feedback, delay_ms)),
            None => self.settle(now, ticket, &feedback),
        }
    }

    fn prioritize(&mut self, now: u64, ticket: Ticket, priority: f64) {
        self.prioritize(Instant::from_micros(now), ticket, priority);
    }

    fn cancel(&mut self, now: u64, ticket: Ticket) {
        self.cancel(Instant::from_micros(now), ticket);
    }

    fn change(&mut self, now: u64, line: &Line) -> Option<String> {
        let now = Instant::from_micros(now);
        let Some(name) = line.words.get(1) else {
            self.pause_all(line.has("pause"));
            return None;
        };
        let scope = self.scope(name);
        let span = line.amount().map(Span::from_millis);
        match line.words[0] {
            "crawl-delay" => {
                let outcome = format!("{:?}", self.crawl_delay(now, scope, span));
                return Some(format!("crawl-delay {}", outcome.to_lowercase()));
            }
            "configure" => {
                let done = self.configure(now, scope, json_value(line.json()));
                return done.err().map(|error| error.to_string());
            }
            "hold" => self.hold(now, scope, span.unwrap()),
            "adjust" => {
                let cost = |key| line.number(key).and_then(Cost::from_units).unwrap();
                let sent = Instant::from_millis(line.number("sent").unwrap()).unwrap();
                self.adjust(now, scope, sent, cost("from"), cost("to"));
            }
            "pause" => self.pause(now, scope),
            "resume" => self.resume(now, scope),
            "reset" => self.reset(now, scope),
            other => panic!("no such event: {other}"),
        }
        None
    }

    fn peek(&mut self, now: u64, line: &Line) -> (Option<u64>, String) {
        let scopes: Vec<ScopeId> = line.scopes(1).map(|name| self.scope(name)).collect();
        let peek = Engine::peek(self, Instant::from_micros(now), Request::new(&scopes)).unwrap();
        (peek.at.map(Instant::micros), because(self, peek.because))
    }

    fn stats(&mut self, now: u64, scope: &str) -> Stats {
        let scope = self.scope(scope);
        let stats = self.scope_stats(Instant::from_micros(now), scope).unwrap();
        Stats {
            delay: (stats.delay_ms * 1000.0).round() as u64,
            step: stats.backoff_step,
            slots: stats.slots,
            in_flight: stats.in_flight,
            waiting: stats.waiting,
            hold: stats.hold_until.map(|ms| Instant::from_millis(ms).unwrap().micros()),
            quota: stats.quota_left,
            reason: stats.reason.map(|reason| reason.name().into()),
        }
    }

    fn poll(&mut self, now: u64) -> (Vec<Ticket>, Option<u64>, String) {
        let mut sent = Vec::new();
        loop {
            match self.poll(Instant::from_micros(now)) {
                Decision::Send(ticket) => sent.push(ticket),
                Decision::Wait { until, because: cause } => {
                    return (sent, Some(until.micros()), because(self, Some(cause)));
                }
                Decision::Idle { because: cause } => return (sent, None, because(self, cause)),
            }
        }
    }
}

fn because(engine: &Engine, because: Option<Cause>) -> String {
    because.map_or(String::new(), |cause| {
        let scope = cause.scope.and_then(|scope| engine.name(scope)).unwrap_or("-");
        format!(" {} {scope}", cause.reason.name())
    })
}

fn json_value(json: &str) -> Value {
    serde_json::from_str(json).expect("JSON")
}
