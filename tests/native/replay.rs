//! Plays a trace: a story in text, one event a line, and writes down what the engine answers.
//!
//! `tests/js/replay.test.ts` reads the same language through WebAssembly. Both transcripts must be equal to
//! the trace itself, byte for byte. The language is described in `tests/traces.txt`.
//!
//! `UPDATE_GOLDEN=1` writes the answers: review them as behaviour.

use std::{collections::BTreeMap, fmt::Write, fs};

use autothrottle::{
    Answer, Cause, Config, Cost, Decision, Engine, Failure, Feedback, Hint, Hints, Instant, Request, ScopeId,
    Span, SubmitError, Ticket, Value, headers::Context,
};

#[test]
fn every_trace_has_the_answers_that_stand_in_it() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces.txt");
    let text = fs::read_to_string(path).unwrap();
    let mut stories = text.split("\n== ");
    let mut written = stories.next().unwrap().trim_end().to_owned();
    let (mut wrong, mut count) = (String::new(), 0);
    for story in stories {
        let (name, story) = story.split_once('\n').unwrap();
        let transcript = play(story);
        if transcript.trim_end() != story.trim_end() {
            write!(wrong, "--- {name}\n{transcript}").unwrap();
        }
        write!(written, "\n\n== {name}\n{}", transcript.trim_end()).unwrap();
        count += 1;
    }
    assert!(count >= 47, "only {count} traces");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, written + "\n").unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn play(trace: &str) -> String {
    let mut player: Option<Player> = None;
    let mut transcript = String::new();
    for line in trace.lines().filter(|line| line.starts_with(['>', '#'])) {
        writeln!(transcript, "{line}").unwrap();
        let Some(line) = line.strip_prefix("> ") else { continue };
        if let Some(json) = line.strip_prefix("options ") {
            match Config::parse(json_value(json)) {
                Ok(config) => player = Some(Player::new(config)),
                Err(error) => writeln!(transcript, "{error}").unwrap(),
            }
        } else if let Some(player) = &mut player {
            player.line(line);
            transcript.push_str(&std::mem::take(&mut player.transcript));
        }
    }
    transcript
}

struct Player {
    engine: Engine,
    now: Instant,
    tickets: BTreeMap<String, Ticket>,
    server: Option<(Span, u16, String)>,
    answers: Vec<(Instant, String)>,
    rest: String,
    transcript: String,
}

impl Player {
    fn new(config: Config) -> Self {
        Self {
            engine: Engine::new(config),
            now: Instant::default(),
            tickets: BTreeMap::new(),
            server: None,
            answers: Vec::new(),
            rest: String::new(),
            transcript: String::new(),
        }
    }

    #[allow(clippy::too_many_lines, reason = "one arm an event")]
    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let json = line.find('{').map(|at| &line[at..]);
        let argument = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let number = |key: &str| argument(key).map(|text| text.parse::<f64>().expect("a number"));
        match words[0] {
            "at" => self.now = millis(words[1]),
            "run" => return self.run(millis(words[1])),
            "serve" => {
                let latency = number("latency").map(Span::from_millis);
                let status = number("status").unwrap_or(200.0) as u16;
                self.server = latency.map(|latency| (latency, status, headers(&words)));
            }
            "submit" | "send" | "adopt" => {
                let scopes: Vec<ScopeId> = words[2].split(',').map(|name| self.engine.scope(name)).collect();
                let costs: Vec<f64> = argument("cost")
                    .map_or(vec![], |list| list.split(',').map(|c| c.parse().unwrap()).collect());
                let request = Request {
                    costs: &costs,
                    priority: number("priority").unwrap_or(0.0),
                    delay_ms: number("delay").unwrap_or(0.0),
                    waited_ms: number("waited").unwrap_or(0.0),
                    ..Request::new(&scopes)
                };
                if let Some(ago) = number("ago") {
                    let ticket = self.engine.adopt(self.now, request, Span::from_millis(ago));
                    self.tickets.insert(words[1].into(), ticket.expect("a request that makes sense"));
                    self.drain();
                    return;
                }
                let at_once =
                    if words[0] == "send" { self.engine.send_at_once(self.now, request) } else { Ok(None) };
                match at_once.and_then(|sent| sent.map_or_else(|| self.engine.submit(self.now, request), Ok))
                {
                    Ok(ticket) => {
                        self.tickets.insert(words[1].into(), ticket);
                        if at_once == Ok(Some(ticket)) {
                            self.sent(words[1].into(), " at once");
                        }
                    }
                    Err(error) => {
                        let mut why = error.to_string();
                        if let SubmitError::CostExceedsQuota { scope, setting } = error {
                            let name = self.engine.name(scope).unwrap();
                            let path = self.engine.config_path(scope, setting).unwrap();
                            why = why.replace("a scope", &format!("{name} ({path})"));
                        }
                        self.say(&format!("refused {}: {why}", words[1]));
                    }
                }
            }
            "settle" => {
                let answer = match (number("status"), words.contains(&"error")) {
                    (Some(status), _) => Answer::Response { status: status as u16 },
                    (None, true) => Answer::Failed(Failure::Connection),
                    (None, false) => Answer::Ignored,
                };
                let is_bad = [("bad", true), ("good", false)].iter().find(|(word, _)| words.contains(word));
                let status = number("status").unwrap_or(0.0) as u16;
                let feedback = Feedback {
                    answer,
                    latency_ms: number("latency"),
                    adjust_delay: !words.contains(&"keep"),
                    cost: number("cost").and_then(Cost::from_units),
                    is_bad: is_bad.map(|(_, is_bad)| *is_bad),
                    hint: hint(&headers(&words), status, number("wall")),
                };
                let ticket = self.tickets[words[1]];
                match argument("retry") {
                    Some(delay) => {
                        assert!(self.engine.retry_each(
                            self.now,
                            ticket,
                            |_| feedback,
                            delay.parse().unwrap()
                        ));
                    }
                    None => self.engine.settle(self.now, ticket, &feedback),
                }
            }
            "crawl-delay" => {
                let scope = self.engine.scope(words[1]);
                let delay = words[2].parse().ok().map(Span::from_millis);
                let outcome = self.engine.crawl_delay(self.now, scope, delay);
                self.say(&format!("crawl-delay {}", format!("{outcome:?}").to_lowercase()));
            }
            "prioritize" => {
                let priority = words[2].parse().expect("a number");
                self.engine.prioritize(self.now, self.tickets[words[1]], priority);
            }
            "cancel" => self.engine.cancel(self.now, self.tickets[words[1]]),
            "configure" => {
                let scope = self.engine.scope(words[1]);
                if let Err(error) = self.engine.configure(self.now, scope, json_value(json.unwrap())) {
                    self.say(&error.to_string());
                }
            }
            "hold" => {
                let scope = self.engine.scope(words[1]);
                self.engine.hold(self.now, scope, Span::from_millis(words[2].parse().unwrap()));
            }
            "adjust" => {
                let scope = self.engine.scope(words[1]);
                let cost = |key| Cost::from_units(number(key).unwrap()).unwrap();
                let sent = Instant::from_millis(number("sent").unwrap()).unwrap();
                self.engine.adjust(self.now, scope, sent, cost("from"), cost("to"));
            }
            "pause" | "resume" if words.len() == 1 => self.engine.pause_all(words[0] == "pause"),
            "pause" => {
                let scope = self.engine.scope(words[1]);
                self.engine.pause(self.now, scope);
            }
            "resume" => {
                let scope = self.engine.scope(words[1]);
                self.engine.resume(self.now, scope);
            }
            "reset" => {
                let scope = self.engine.scope(words[1]);
                self.engine.reset(self.now, scope);
            }
            "peek" => {
                let scopes: Vec<ScopeId> = words[1].split(',').map(|name| self.engine.scope(name)).collect();
                let peek = self.engine.peek(self.now, Request::new(&scopes)).unwrap();
                let at = peek.at.map_or("unknown".into(), time);
                let because = self.because(peek.because);
                self.say(&format!("peek {at}{because}"));
            }
            "stats" => {
                let scope = self.engine.scope(words[1]);
                let stats = self.engine.scope_stats(self.now, scope).unwrap();
                let delay = time(Instant::from_micros((stats.delay_ms * 1000.0).round() as u64));
                let hold = stats.hold_until.map_or("-".into(), |ms| time(Instant::from_millis(ms).unwrap()));
                let quota = stats.quota_left.map_or("-".into(), |left| left.to_string());
                let reason = stats.reason.map_or("-", autothrottle::Reason::name);
                self.say(&format!(
                    "stats delay={delay} step={} slots={} inFlight={} waiting={} hold={hold} quota={quota} \
                     reason={reason}",
                    stats.backoff_step, stats.slots, stats.in_flight, stats.waiting
                ));
            }
            other => panic!("no such event: {other}"),
        }
        self.drain();
    }

    fn run(&mut self, until: Instant) {
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
                let (latency, status, lines) = self.server.clone().expect("somebody serves");
                self.say(&format!("done {name} {status}"));
                let hint = hint(&lines, status, None);
                let feedback =
                    Feedback { latency_ms: Some(latency.millis()), hint, ..Feedback::response(status) };
                self.engine.settle(self.now, self.tickets[&name], &feedback);
            }
        }
        self.now = self.now.max(until);
        self.drain();
    }

    fn drain(&mut self) -> Option<Instant> {
        loop {
            match self.engine.poll(self.now) {
                Decision::Send(ticket) => {
                    let (name, _) =
                        self.tickets.iter().find(|&(_, &known)| known == ticket).expect("our ticket");
                    self.sent(name.clone(), "");
                }
                Decision::Wait { until, because } => {
                    assert!(until > self.now, "a wait must be in the future");
                    let because = self.because(Some(because));
                    self.say_rest(&format!("wait {}{because}", time(until)));
                    return Some(until);
                }
                Decision::Idle { because } => {
                    let because = self.because(because);
                    self.say_rest(&format!("idle{because}"));
                    return None;
                }
            }
        }
    }

    fn sent(&mut self, name: String, how: &str) {
        self.say(&format!("send {name}{how}"));
        if let Some((latency, ..)) = &self.server {
            self.answers.push((self.now + *latency, name));
        }
    }

    fn because(&self, because: Option<Cause>) -> String {
        because.map_or(String::new(), |cause| {
            let scope = cause.scope.and_then(|scope| self.engine.name(scope)).unwrap_or("-");
            format!(" {} {scope}", cause.reason.name())
        })
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

/// The words `name:value` as header lines; `_` stands for a space.
fn headers(words: &[&str]) -> String {
    let fields = words.iter().filter_map(|word| word.strip_prefix("header="));
    fields.map(|field| field.replace('_', " ")).collect::<Vec<_>>().join("\n")
}

fn hint(lines: &str, status: u16, wall_ms: Option<f64>) -> Hint {
    let context = Context { status, wall_ms: wall_ms.map(|ms| ms as i64), ..Context::default() };
    Hint::of(&Hints::from_lines(lines, context))
}

fn time(instant: Instant) -> String {
    format!("{}.{:03}", instant.micros() / 1000, instant.micros() % 1000)
}

fn millis(text: &str) -> Instant {
    Instant::from_millis(text.parse().expect("milliseconds")).expect("an instant")
}

fn json_value(json: &str) -> Value {
    serde_json::from_str(json).expect("JSON")
}
