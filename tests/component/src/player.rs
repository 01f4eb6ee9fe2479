//! Plays a trace through the component: the language of `tests/traces.txt`, and the same transcript as natively.

use std::{collections::BTreeMap, fmt::Write};

use crate::{
    Compiled, Host, call, problems,
    wit::{Answer, Cause, Failure, Needs, Reason, Report, Robots, SubmitError, Units},
};

pub fn play(compiled: &Compiled, trace: &str) -> String {
    let mut player: Option<Player> = None;
    let mut transcript = String::new();
    for line in trace.lines().filter(|line| line.starts_with(['>', '#'])) {
        writeln!(transcript, "{line}").unwrap();
        let Some(line) = line.strip_prefix("> ") else { continue };
        if let Some(json) = line.strip_prefix("options ") {
            match compiled.instance().unwrap().engine(json, 0).unwrap() {
                Ok(host) => player = Some(Player::new(host)),
                Err(wrong) => writeln!(transcript, "{}", problems("options", &wrong)).unwrap(),
            }
        } else if let Some(player) = &mut player {
            player.line(line);
            transcript.push_str(&std::mem::take(&mut player.transcript));
        }
    }
    transcript
}

type Fields = Vec<(String, String)>;

struct Player {
    host: Host,
    now: u64,
    tickets: BTreeMap<String, u64>,
    server: Option<(u64, u16, Fields)>,
    answers: Vec<(u64, String)>,
    rest: String,
    transcript: String,
}

impl Player {
    fn new(host: Host) -> Self {
        let (tickets, rest, transcript) = (BTreeMap::new(), String::new(), String::new());
        Self { host, now: 0, tickets, server: None, answers: vec![], rest, transcript }
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let json = line.find('{').map(|at| &line[at..]);
        let argument = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let number = |key: &str| argument(key).map(|text| text.parse::<f64>().expect("a number"));
        let span = |key: &str| argument(key).map(nanos);
        let now = self.now;
        match words[0] {
            "at" => self.now = nanos(words[1]),
            "run" => return self.run(nanos(words[1])),
            "serve" => {
                let status = number("status").unwrap_or(200.0) as u16;
                self.server = span("latency").map(|latency| (latency, status, fields(&words)));
            }
            "submit" | "send" | "adopt" => {
                let scopes = self.scopes(words[2]);
                let costs = argument("cost")
                    .map_or(vec![], |list| list.split(',').map(|c| c.parse().unwrap()).collect());
                let needs = Needs {
                    costs,
                    priority: number("priority").unwrap_or(0.0),
                    delay: span("delay").unwrap_or(0),
                    waited: span("waited").unwrap_or(0),
                };
                self.submit(words[0], words[1], &scopes, &needs, span("ago"));
            }
            "settle" => {
                let answer = match (number("status"), words.contains(&"error")) {
                    (Some(status), _) => Answer::Response(status as u16),
                    (None, true) => Answer::Failed(Failure::Connection),
                    (None, false) => Answer::Ignored,
                };
                let bad = [("bad", true), ("good", false)].iter().find(|(word, _)| words.contains(word));
                let report = Report {
                    wall: span("wall"),
                    bad: bad.map(|(_, bad)| *bad),
                    cost: number("cost"),
                    adjust_delay: !words.contains(&"keep"),
                    ..report(fields(&words))
                };
                let (ticket, latency) = (self.tickets[words[1]], span("latency"));
                match span("retry") {
                    Some(delay) => {
                        call!(self.host, call_retry, now, ticket, answer, latency, delay, Some(&report))
                    }
                    None => {
                        call!(self.host, call_settle, now, ticket, answer, latency, false, Some(&report))
                    }
                }
                .unwrap();
            }
            "crawl-delay" => {
                let scope = self.scope(words[1]);
                let delay = (words[2] != "-").then(|| nanos(words[2]));
                let outcome = match call!(self.host, call_crawl_delay, now, scope, delay).unwrap() {
                    Robots::Applied => "applied",
                    Robots::Overruled => "overruled",
                    Robots::Ignored => "ignored",
                };
                self.say(&format!("crawl-delay {outcome}"));
            }
            "prioritize" => {
                let priority = words[2].parse().expect("a number");
                call!(self.host, call_prioritize, now, self.tickets[words[1]], priority).unwrap();
            }
            "cancel" => call!(self.host, call_cancel, now, self.tickets[words[1]]).unwrap(),
            "configure" => {
                let scope = self.scope(words[1]);
                if let Err(wrong) = call!(self.host, call_configure, now, scope, json.unwrap()).unwrap() {
                    self.say(&problems("options", &wrong));
                }
            }
            "hold" => {
                let scope = self.scope(words[1]);
                call!(self.host, call_hold, now, scope, nanos(words[2])).unwrap();
            }
            "adjust" => {
                let scope = self.scope(words[1]);
                let sent = nanos(argument("sent").unwrap());
                let (from, to) = (number("from").unwrap(), number("to").unwrap());
                assert!(call!(self.host, call_adjust, now, scope, sent, from, to).unwrap());
            }
            "pause" | "resume" => {
                let scope = words.get(1).map(|name| self.scope(name));
                if words[0] == "pause" {
                    call!(self.host, call_pause, now, scope).unwrap();
                } else {
                    call!(self.host, call_resume, now, scope).unwrap();
                }
            }
            "reset" => {
                let scope = self.scope(words[1]);
                call!(self.host, call_reset, now, scope).unwrap();
            }
            "peek" => {
                let scopes = self.scopes(words[1]);
                let peek = call!(self.host, call_peek, now, &scopes, &[]).unwrap().unwrap();
                let at = peek.at.map_or("unknown".into(), time);
                let because = self.because(peek.because);
                self.say(&format!("peek {at}{because}"));
            }
            "stats" => self.stats(words[1]),
            other => panic!("no such event: {other}"),
        }
        self.drain();
    }

    fn submit(&mut self, verb: &str, name: &str, scopes: &[u64], needs: &Needs, ago: Option<u64>) {
        let now = self.now;
        let ticket = match (verb, ago) {
            ("adopt", Some(ago)) => call!(self.host, call_adopt, now, scopes, Some(needs), ago).unwrap(),
            ("send", _) => match call!(self.host, call_send_at_once, now, scopes, Some(needs)).unwrap() {
                Ok(Some(ticket)) => {
                    self.tickets.insert(name.into(), ticket);
                    return self.sent(name.into(), " at once");
                }
                Ok(None) => call!(self.host, call_submit, now, scopes, Some(needs)).unwrap(),
                Err(error) => Err(error),
            },
            _ => call!(self.host, call_submit, now, scopes, Some(needs)).unwrap(),
        };
        match ticket {
            Ok(ticket) => drop(self.tickets.insert(name.into(), ticket)),
            Err(error) => self.say(&format!("refused {name}: {}", refusal(&error))),
        }
    }

    fn stats(&mut self, name: &str) {
        let scope = self.scope(name);
        let stats = call!(self.host, call_scope_stats, self.now, scope).unwrap().expect("a scope of ours");
        let delay = time((stats.delay + 500) / 1000 * 1000);
        let hold = stats.hold_until.map_or("-".into(), time);
        let quota = stats.quota_left.map_or("-".into(), |left| left.to_string());
        let reason = stats.reason.map_or("-", word);
        self.say(&format!(
            "stats delay={delay} step={} slots={} inFlight={} waiting={} hold={hold} quota={quota} \
             reason={reason}",
            stats.backoff_step, stats.slots, stats.in_flight, stats.waiting
        ));
    }

    fn run(&mut self, until: u64) {
        loop {
            let wake = self.drain();
            let answer = self.answers.iter().map(|(at, _)| *at).min();
            let Some(next) = wake.into_iter().chain(answer).min().filter(|&next| next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            if answer == Some(next) {
                let at = self.answers.iter().position(|(at, _)| *at == next).unwrap();
                let (_, name) = self.answers.remove(at);
                let (latency, status, fields) = self.server.clone().expect("somebody serves");
                self.say(&format!("done {name} {status}"));
                let (answer, report) = (Answer::Response(status), report(fields));
                let ticket = self.tickets[&name];
                call!(self.host, call_settle, self.now, ticket, answer, Some(latency), false, Some(&report))
                    .unwrap();
            }
        }
        self.now = self.now.max(until);
        self.drain();
    }

    fn drain(&mut self) -> Option<u64> {
        let decision = call!(self.host, call_poll, self.now).unwrap();
        for ticket in decision.send {
            let known = self.tickets.iter().find(|&(_, &known)| known == ticket);
            let name = known.expect("our ticket").0.clone();
            self.sent(name, "");
        }
        let because = self.because(decision.because);
        match decision.wake {
            Some(wake) => {
                assert!(wake > self.now, "a wait must be in the future");
                self.say_rest(&format!("wait {}{because}", time(wake)));
            }
            None => self.say_rest(&format!("idle{because}")),
        }
        decision.wake
    }

    fn scope(&mut self, name: &str) -> u64 {
        call!(self.host, call_scope, name).unwrap()
    }

    fn scopes(&mut self, names: &str) -> Vec<u64> {
        names.split(',').map(|name| self.scope(name)).collect()
    }

    fn sent(&mut self, name: String, how: &str) {
        self.say(&format!("send {name}{how}"));
        if let Some((latency, ..)) = &self.server {
            self.answers.push((self.now + latency, name));
        }
    }

    fn because(&mut self, because: Option<Cause>) -> String {
        let Some(cause) = because else { return String::new() };
        let name = cause.scope.and_then(|scope| call!(self.host, call_name, scope).unwrap());
        format!(" {} {}", word(cause.reason), name.as_deref().unwrap_or("-"))
    }

    fn say_rest(&mut self, rest: &str) {
        if self.rest != rest {
            self.rest = rest.into();
            self.say(rest);
        }
    }

    fn say(&mut self, what: &str) {
        writeln!(self.transcript, "{:>12} {what}", time(self.now)).unwrap();
    }
}

/// A report that says only these fields.
pub fn report(fields: Fields) -> Report {
    Report {
        fields,
        units: Units::empty(),
        wall: None,
        hints: None,
        bad: None,
        cost: None,
        adjust_delay: true,
        scopes: vec![],
        named_only: false,
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

fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Paused => "paused",
        Reason::Global => "global",
        Reason::Concurrency => "concurrency",
        Reason::Delay => "delay",
        Reason::Backoff => "backoff",
        Reason::CrawlDelay => "crawl-delay",
        Reason::SlotDelay => "slot-delay",
        Reason::Hold => "hold",
        Reason::Quota => "quota",
        Reason::RequestDelay => "request-delay",
        Reason::Rate => "rate",
    }
}

/// The words `header=name:value`; `_` stands for a space.
fn fields(words: &[&str]) -> Fields {
    let fields = words.iter().filter_map(|word| word.strip_prefix("header="));
    let pair = |field: &str| {
        let field = field.replace('_', " ");
        let (name, value) = field.split_once(':').unwrap_or((&field, ""));
        (name.to_string(), value.to_string())
    };
    fields.map(pair).collect()
}

fn time(ns: u64) -> String {
    let micros = ns / 1000;
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

fn nanos(ms: &str) -> u64 {
    (ms.parse::<f64>().expect("milliseconds") * 1e6).round() as u64
}
