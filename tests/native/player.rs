//! Plays a trace: a story in text, one event a line, and writes down what a [`Host`] answers. `replay.rs`
//! plays natively, `tests/component` in the component. `tests/traces/README.md` describes the language.
//!
//! Instants are whole microseconds, spans milliseconds.

use std::{collections::BTreeMap, fmt::Write};

/// An engine that can be told what a line says. Texts are what it refuses, why it waits, what it did.
pub trait Host {
    type Ticket: Copy + PartialEq;

    /// `submit`, `send` or `adopt`; gives whether the request left at once.
    fn submit(&mut self, now: u64, line: &Line) -> Result<(Self::Ticket, bool), String>;
    /// `settle`, or an answer that `serve` describes.
    fn settle(&mut self, now: u64, ticket: Self::Ticket, line: &Line);
    fn prioritize(&mut self, now: u64, ticket: Self::Ticket, priority: f64);
    fn cancel(&mut self, now: u64, ticket: Self::Ticket);
    /// An event of a scope; gives what is written down, if anything is.
    fn change(&mut self, now: u64, line: &Line) -> Option<String>;
    fn peek(&mut self, now: u64, line: &Line) -> (Option<u64>, String);
    fn stats(&mut self, now: u64, scope: &str) -> Stats;
    /// The requests that leave now, when to ask again, and why.
    fn poll(&mut self, now: u64) -> (Vec<Self::Ticket>, Option<u64>, String);
}

/// Of a scope; `delay` and `hold` in microseconds.
pub struct Stats {
    pub delay: u64,
    pub step: u32,
    pub slots: u32,
    pub in_flight: u32,
    pub waiting: u32,
    pub hold: Option<u64>,
    pub quota: Option<f64>,
    pub reason: Option<String>,
}

/// The parts of a line.
pub struct Line<'a> {
    text: &'a str,
    pub words: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, words: text.split_whitespace().collect() }
    }

    pub fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn argument(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    pub fn number(&self, key: &str) -> Option<f64> {
        self.argument(key).map(|text| text.parse().expect("a number"))
    }

    /// The argument after the verb and a name: milliseconds, or a priority.
    pub fn amount(&self) -> Option<f64> {
        self.words.get(2)?.parse().ok()
    }

    pub fn json(&self) -> &'a str {
        &self.text[self.text.find('{').expect("JSON")..]
    }

    pub fn scopes(&self, at: usize) -> impl Iterator<Item = &'a str> {
        self.words[at].split(',')
    }

    pub fn costs(&self) -> Vec<f64> {
        self.argument("cost")
            .map_or(vec![], |list| list.split(',').map(|cost| cost.parse().unwrap()).collect())
    }

    pub fn is_bad(&self) -> Option<bool> {
        if self.has("bad") { Some(true) } else { self.has("good").then_some(false) }
    }

    /// The words `header=name:value`; `_` stands for a space.
    pub fn fields(&self) -> Vec<(String, String)> {
        let fields = self.words.iter().filter_map(|word| word.strip_prefix("header="));
        let pair = |field: &str| {
            let field = field.replace('_', " ");
            let (name, value) = field.split_once(':').unwrap_or((&field, ""));
            (name.to_string(), value.to_string())
        };
        fields.map(pair).collect()
    }
}

/// The transcript of `trace`; `open` makes an engine, or says what is wrong with its options.
pub fn play<H: Host>(trace: &str, open: impl Fn(&str) -> Result<H, String>) -> String {
    let mut player: Option<Player<H>> = None;
    let mut transcript = String::new();
    for line in trace.lines().filter(|line| line.starts_with(['>', '#'])) {
        writeln!(transcript, "{line}").unwrap();
        let Some(line) = line.strip_prefix("> ") else { continue };
        if let Some(json) = line.strip_prefix("options ") {
            match open(json) {
                Ok(host) => player = Some(Player::new(host)),
                Err(why) => writeln!(transcript, "{why}").unwrap(),
            }
        } else if let Some(player) = &mut player {
            player.line(&Line::new(line));
            transcript.push_str(&std::mem::take(&mut player.transcript));
        }
    }
    transcript
}

struct Player<H: Host> {
    host: H,
    now: u64,
    tickets: BTreeMap<String, H::Ticket>,
    /// Latency, and the line that describes the answer.
    server: Option<(f64, String)>,
    answers: Vec<(u64, String)>,
    rest: String,
    transcript: String,
}

impl<H: Host> Player<H> {
    fn new(host: H) -> Self {
        let (tickets, rest, transcript) = (BTreeMap::new(), String::new(), String::new());
        Self { host, now: 0, tickets, server: None, answers: vec![], rest, transcript }
    }

    fn line(&mut self, line: &Line) {
        let now = self.now;
        let name = line.words.get(1).copied().unwrap_or_default();
        match line.words[0] {
            "at" => self.now = micros(name.parse().unwrap()),
            "run" => return self.run(micros(name.parse().unwrap())),
            "serve" => {
                let answer = format!("{} status=200", line.text);
                self.server = line.number("latency").map(|latency| (latency, answer));
            }
            "submit" | "send" | "adopt" => match self.host.submit(now, line) {
                Ok((ticket, is_sent)) => {
                    self.tickets.insert(name.into(), ticket);
                    if is_sent {
                        self.sent(name.into(), " at once");
                    }
                }
                Err(why) => self.say(&format!("refused {name}: {why}")),
            },
            "settle" => self.host.settle(now, self.tickets[name], line),
            "prioritize" => self.host.prioritize(now, self.tickets[name], line.amount().unwrap()),
            "cancel" => self.host.cancel(now, self.tickets[name]),
            "peek" => {
                let (at, because) = self.host.peek(now, line);
                self.say(&format!("peek {}{because}", at.map_or("unknown".into(), time)));
            }
            "stats" => {
                let stats = self.host.stats(now, name);
                let hold = stats.hold.map_or("-".into(), time);
                let quota = stats.quota.map_or("-".into(), |left| left.to_string());
                self.say(&format!(
                    "stats delay={} step={} slots={} inFlight={} waiting={} hold={hold} quota={quota} reason={}",
                    time(stats.delay),
                    stats.step,
                    stats.slots,
                    stats.in_flight,
                    stats.waiting,
                    stats.reason.as_deref().unwrap_or("-")
                ));
            }
            _ => {
                if let Some(text) = self.host.change(now, line) {
                    self.say(&text);
                }
            }
        }
        self.drain();
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
                let (_, text) = self.server.clone().expect("a server");
                let line = Line::new(&text);
                self.say(&format!("done {name} {}", line.number("status").unwrap()));
                self.host.settle(self.now, self.tickets[&name], &line);
            }
        }
        self.now = self.now.max(until);
        self.drain();
    }

    fn drain(&mut self) -> Option<u64> {
        let (sent, wake, because) = self.host.poll(self.now);
        for ticket in sent {
            let (name, _) = self.tickets.iter().find(|&(_, &known)| known == ticket).expect("our ticket");
            self.sent(name.clone(), "");
        }
        assert!(wake.is_none_or(|wake| wake > self.now), "a wait must be in the future");
        let rest = wake.map_or("idle".into(), |wake| format!("wait {}", time(wake))) + &because;
        if self.rest != rest {
            self.say(&rest);
            self.rest = rest;
        }
        wake
    }

    fn sent(&mut self, name: String, how: &str) {
        self.say(&format!("send {name}{how}"));
        if let Some((latency, _)) = self.server {
            self.answers.push((self.now + micros(latency), name));
        }
    }

    fn say(&mut self, what: &str) {
        writeln!(self.transcript, "{:>12} {what}", time(self.now)).unwrap();
    }
}

fn time(micros: u64) -> String {
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

fn micros(ms: f64) -> u64 {
    (ms * 1000.0).round() as u64
}
