//! A typed pace and bad answers: the cost of a refusal, a failure, an outage, late timers, and a limit, also
//! one that each answer reports. And when clients come back after a wait.
//!
//! `npm run bench:answers` plays each pace at each server, beside the ladder of `backoff`, rampup without a
//! pace, AIMD and CUBIC; then strangers who share a limit. The usual run plays two paces, and holds the aims
//! there. Everything is virtual time.

use std::fmt::Write;

use autothrottle::{
    Answer, Failure, Instant,
    simulate::{Client, Departure, Exchange, Next, Simulation},
};

use crate::{
    baselines::{Aimd, Cubic},
    simulate::in_parallel,
};

/// Without any limit.
const OPEN: &str = r#""model": "token-bucket", "rate": 100000, "depth": 100000"#;
/// The policies to compare.
const POLICIES: [&str; 5] = ["typed", "ladder", "rampup", "AIMD", "CUBIC"];
/// How the pace is typed.
const WAYS: [&str; 3] = ["rate", "delay", "concurrency"];
/// Paces, in requests a second.
const PACES: [u32; 4] = [5, 10, 50, 500];
/// Which request is answered badly.
const NTH: usize = 20;

/// An answer in place of the server's.
pub type Bad = (Answer, &'static str);

const TOO_MANY: Bad = (Answer::Response { status: 429 }, "retry-after: 1\n");
const ONE: [(&str, Bad); 4] = [
    ("one 429, `Retry-After: 1`", TOO_MANY),
    ("one 502", (Answer::Response { status: 502 }, "")),
    ("one reset", (Answer::Failed(Failure::Connection), "")),
    ("one timeout", (Answer::Failed(Failure::Timeout), "")),
];
const OUTAGES: [(&str, Bad); 3] = [
    ("503s", (Answer::Response { status: 503 }, "")),
    ("503s, `Retry-After: 5`", (Answer::Response { status: 503 }, "retry-after: 5\n")),
    ("resets", (Answer::Failed(Failure::Connection), "")),
];

/// Which answers are bad.
#[derive(Clone, Copy)]
pub enum Spoil {
    None,
    /// The one with this number, from 1.
    One(usize, Bad),
    /// From one minute on, for ten.
    Outage(Bad),
}

/// A client some of whose answers are others than the server's.
pub struct Spoiled {
    client: Box<dyn Client>,
    spoil: Spoil,
    answers: usize,
}

impl Spoiled {
    pub fn new(client: Box<dyn Client>, spoil: Spoil) -> Self {
        Self { client, spoil, answers: 0 }
    }
}

const OUTAGE: (u64, u64) = (60_000_000, 660_000_000);

impl Client for Spoiled {
    fn next(&mut self, now: Instant) -> Next {
        self.client.next(now)
    }

    fn answered(&mut self, now: Instant, request: u64, sent: Instant, answer: Answer, headers: &str) {
        self.answers += 1;
        let bad = match self.spoil {
            Spoil::One(nth, bad) if self.answers == nth => Some(bad),
            Spoil::Outage(bad) if (OUTAGE.0..OUTAGE.1).contains(&now.micros()) => Some(bad),
            _ => None,
        };
        let (answer, headers) = bad.unwrap_or((answer, headers));
        self.client.answered(now, request, sent, answer, headers);
    }

    fn departure(&self, request: u64) -> Departure {
        self.client.departure(request)
    }
}

/// `pace` a second, as options: by slots it is what answers of 200 ms let through.
fn typed(way: &str, pace: u32, policy: &str) -> String {
    if policy == "rampup" {
        return r#"{ "rampup": true }"#.into();
    }
    let backoff = if policy == "ladder" { r#", "backoff": {}"# } else { "" };
    let pace = match way {
        "rate" => format!(r#""rate": {pace}, "maxInFlight": 256"#),
        "delay" => format!(r#""delay": {}, "concurrency": 256"#, 1000.0 / f64::from(pace)),
        _ => format!(r#""concurrency": {}"#, pace / 5),
    };
    format!("{{ {pace}{backoff} }}")
}

/// `pace` a second, typed so, under this policy.
type How<'a> = (&'a str, u32, &'a str);

fn play(server: &str, how: How, seconds: u64, spoil: Spoil) -> Vec<Exchange> {
    play_with(server, how, seconds, spoil, (11, [0, 0]))
}

/// With this seed, and timers that are late by this range of milliseconds.
fn play_with(
    server: &str,
    (way, pace, policy): How,
    seconds: u64,
    spoil: Spoil,
    (seed, [early, late]): (u64, [u32; 2]),
) -> Vec<Exchange> {
    // At random moments within 2 ms, and by slots exactly as fast as answers are.
    let (latency, upstream, jitter) = if way == "concurrency" { (20, 180, 0) } else { (50, 0, 2) };
    let json = format!(
        r#"{{ "server": {{ {server}, "upstream": {upstream} }}, "duration": {}, "seed": {seed},
            "network": {{ "latency": {latency}, "jitter": {jitter}, "timerLag": {early}, "timerJitter": {} }},
            "throttle": {} }}"#,
        seconds * 1000,
        late - early,
        typed(way, pace, policy)
    );
    let simulation = Simulation::parse(serde_json::from_str(&json).unwrap()).unwrap().at_most(20_000_000);
    let client = |index: u64| {
        let client: Box<dyn Client> = match policy {
            "AIMD" => Box::new(Aimd::below(f64::from(pace))),
            "CUBIC" => Box::new(Cubic::below(f64::from(pace))),
            _ => Box::new(simulation.engine(index)),
        };
        Box::new(Spoiled::new(client, spoil)) as Box<dyn Client>
    };
    simulation.run_with(client).unwrap().0.exchanges
}

/// Sent from one second to another, as a share of `pace`.
fn share(sent: &[Exchange], pace: f64, from: f64, to: f64) -> f64 {
    let is_within = |each: &&Exchange| (from..to).contains(&(each.sent.micros() as f64 / 1e6));
    sent.iter().filter(is_within).count() as f64 / (pace * (to - from))
}

/// When the bad answer came.
fn bad_at(sent: &[Exchange]) -> Instant {
    let mut answered: Vec<Instant> = sent.iter().filter_map(|each| each.answered).collect();
    answered.sort();
    answered[NTH - 1]
}

/// In the minute after the bad answer, of what is sent there without it.
fn after_one(how: How, bad: Bad) -> f64 {
    let sent = play(OPEN, how, 100, Spoil::One(NTH, bad));
    let usual = play(OPEN, how, 100, Spoil::None);
    let from = bad_at(&sent).micros() as f64 / 1e6;
    share(&sent, 1.0, from, from + 60.0) / share(&usual, 1.0, from, from + 60.0)
}

/// Probes in 5 s of the outage, and the seconds from its end until five seconds are at 95 % of the pace.
fn outage(how: How, bad: Bad) -> (f64, f64) {
    let sent = play(OPEN, how, 900, Spoil::Outage(bad));
    let pace = f64::from(how.1);
    let probes = share(&sent, 1.0, 62.0, 660.0) * 5.0;
    let is_full = |from: &f64| share(&sent, pace, *from, from + 5.0) >= 0.95;
    let full = (0..235).map(|after| 660.0 + f64::from(after)).find(is_full);
    (probes, full.map_or(f64::INFINITY, |at| at - 660.0))
}

/// Each kind of limit at `rate` a second.
fn limits(rate: f64) -> Vec<(String, String)> {
    let mut limits = vec![
        ("bucket".into(), format!(r#""model": "token-bucket", "rate": {rate}, "depth": 10"#)),
        ("GCRA".into(), format!(r#""model": "gcra", "rate": {rate}, "burst": 10"#)),
    ];
    for model in ["fixed-window", "sliding-window"] {
        for seconds in [1.0, 10.0, 60.0] {
            let (limit, ms) = ((rate * seconds).floor().max(1.0), seconds * 1000.0);
            // 2.5 a second are five in two.
            let ms = ms * (limit / (rate * seconds));
            let server = format!(r#""model": "{model}", "limit": {limit}, "window": {ms}"#);
            limits.push((format!("{model} {seconds} s"), server));
        }
    }
    limits
}

/// The share of the limit that was served, the share of all that was refused, and refusals a minute.
fn limited(server: &str, how: How, limit: f64, from: f64) -> (f64, f64, f64) {
    const SECONDS: u64 = 420;
    let sent = play(server, how, SECONDS, Spoil::None);
    let to = SECONDS as f64;
    let is_late = |each: &&Exchange| each.sent.micros() as f64 / 1e6 >= from;
    let late: Vec<Exchange> = sent.iter().filter(is_late).copied().collect();
    let (served, refused): (Vec<Exchange>, Vec<Exchange>) =
        late.iter().partition(|each| each.is_served() || each.answered.is_none());
    let refused = refused.len() as f64;
    (share(&served, limit, from, to), refused / late.len() as f64, refused * 60.0 / (to - from))
}

/// Twenty clients whose twentieth answer asks them to wait: how long each does, least and most, in seconds.
fn back(how: How, bad: Bad) -> (f64, f64) {
    let wait = |seed: u64| {
        let sent = play_with(OPEN, how, 60, Spoil::One(NTH, bad), (seed, [0, 0]));
        let refused = bad_at(&sent);
        let next = sent.iter().map(|each| each.sent).filter(|&at| at > refused).min();
        next.map_or(f64::INFINITY, |next| next.since(refused).micros() as f64 / 1e6)
    };
    let waits: Vec<f64> = (1..=20).map(wait).collect();
    let of = |first: f64, than: fn(f64, f64) -> f64| waits.iter().fold(first, |own, &wait| than(own, wait));
    (of(f64::INFINITY, f64::min), of(0.0, f64::max))
}

/// Plays a case: what it comes to, and whether that meets the aim.
type Cell = (String, bool);

fn cells(kind: &str, how: How) -> Vec<(String, Cell)> {
    let full = f64::from(how.1);
    let one = |&(what, bad): &(&str, Bad)| {
        let share = after_one(how, bad);
        let aim = if bad == TOO_MANY { 0.93 } else { 0.99 };
        (what.into(), (format!("{share:.3}"), share >= aim))
    };
    let long = |&(what, bad): &(&str, Bad)| {
        let (probes, after) = outage(how, bad);
        let after_end = if after.is_finite() { format!("{after} s") } else { "never".into() };
        (what.into(), (format!("{probes:.2}, {after_end}"), probes <= 1.0 && after <= 30.0))
    };
    // In ten minutes, of what is sent without a failure.
    let often = |says: &str| {
        let failing = format!(r#"{OPEN}, "failing": 0.02, "failingStatus": {says}"#);
        let count = |server: &str| play(server, how, 600, Spoil::None).len() as f64;
        let share = count(&failing) / count(OPEN);
        (format!("2 % are {says}"), (format!("{share:.3}"), share >= 0.95))
    };
    let waits = |seconds: u32| {
        let header = if seconds == 5 { "retry-after: 5\n" } else { "retry-after: 30\n" };
        let (least, most) = back(how, (Answer::Response { status: 429 }, header));
        let (least, spread) = (least - f64::from(seconds), most - least);
        let is_met = least >= 0.0 && spread >= 0.006 * f64::from(seconds);
        (format!("`Retry-After: {seconds}`"), (format!("{least:+.3} s, {spread:.3} s"), is_met))
    };
    let late = |[least, most]: [u32; 2]| {
        // With room for what is made up.
        let server = format!(r#""model": "token-bucket", "rate": {full}, "depth": {}"#, full / 20.0 + 10.0);
        let mut sent = play_with(&server, how, 100, Spoil::None, (11, [least, most]));
        sent.retain(|each| each.is_served() || each.answered.is_none());
        let share = share(&sent, full, 40.0, 100.0);
        let is_met = (0.98..1.01).contains(&share);
        (format!("{least} to {most} ms late"), (format!("{share:.3}"), is_met))
    };
    match kind {
        "one" => ONE.iter().map(one).chain(["500", "502", "503"].map(often)).collect(),
        "outage" => OUTAGES.iter().map(long).collect(),
        "back" => [5, 30].map(waits).into(),
        // A gap from send to send begins anew with a send that was late.
        "timers" if how.0 != "rate" => Vec::new(),
        "timers" => [[1, 2], [5, 15], [15, 30]].map(late).into(),
        _ => {
            let is_half = kind == "half";
            let (limit, from) = if is_half { (full / 2.0, 60.0) } else { (full, 0.0) };
            let says =
                if kind == "told" { ["rate-limit", "x-ratelimit"] } else { ["nothing", "retry-after"] };
            let servers = limits(limit).into_iter().flat_map(|each| says.map(|says| (each.clone(), says)));
            servers
                .map(|((what, server), says)| {
                    let server = format!(r#"{server}, "says": "{says}""#);
                    let (served, refused, a_minute) = limited(&server, how, limit, from);
                    let is_met = if is_half {
                        served >= 0.95 && a_minute <= 1.5
                    } else {
                        served >= 0.9 && refused <= 0.01
                    };
                    let refused = if is_half { a_minute } else { 100.0 * refused };
                    (format!("{what}, {says}"), (format!("{served:.3}, {refused:.2}"), is_met))
                })
                .collect()
        }
    }
}

const KINDS: [(&str, &str); 7] = [
    ("one", "Bad answers, no limit: share of the pace in the next minute, or in all"),
    ("outage", "Ten minutes of outage: probes in 5 s, and the seconds from its end to the full pace"),
    ("equal", "The limit is the pace: share of it in seven minutes, and refused in percent"),
    ("half", "The limit is half of it: share of the limit after the first minute, and refusals a minute"),
    ("told", "The limit is the pace, and each answer reports it: share of it, and refused in percent"),
    (
        "back",
        "Twenty clients that are asked to wait: how much later the first comes back, and the last after it",
    ),
    ("timers", "Late timers at a bucket as fast as the pace: share of it"),
];

/// How many cases miss their aim, of those of the usual run. Of half the pace: windows of ten seconds and a
/// minute, in which a refusal tells late. Told: sliding windows and buckets whose resets are whole seconds.
const MISSED: [(&str, u32); 2] = [("half", 33), ("told", 10)];

/// `ANSWERS=1` prints the tables; `ANSWERS=one,rate` a part of them: kinds, ways, paces.
#[test]
fn a_typed_pace_survives_bad_answers() {
    let wanted = std::env::var("ANSWERS");
    let is_wanted = |kind: &str, way: &str, pace: u32| match &wanted {
        Ok(wanted) => {
            wanted == "1" || wanted.split(',').all(|of| [kind, way, &pace.to_string()].contains(&of))
        }
        Err(_) => matches!(pace, 5 | 50),
    };
    let policies = if wanted.is_ok() { &POLICIES[..] } else { &POLICIES[..1] };
    let mut missed = String::new();
    for (kind, title) in KINDS {
        let all = WAYS.into_iter().flat_map(|way| PACES.map(|pace| (way, pace)));
        let cases: Vec<(&str, u32)> = all.filter(|&(way, pace)| is_wanted(kind, way, pace)).collect();
        let jobs: Vec<How> =
            cases.iter().flat_map(|&(way, pace)| policies.iter().map(move |of| (way, pace, *of))).collect();
        let played = in_parallel(&jobs, |&how| cells(kind, how));
        let mut table = format!("\n{title}\n\n| case | typed | a second | {} |\n", policies.join(" | "));
        table += &"|---".repeat(3 + policies.len());
        table += "|\n";
        let mut met = vec![0; policies.len()];
        let (mut count, mut own_missed) = (0, String::new());
        for (&(way, pace), of) in cases.iter().zip(played.chunks(policies.len())) {
            for (index, (what, (own, is_met))) in of[0].iter().enumerate() {
                let _ = write!(table, "| {what} | {way} | {pace} |");
                for (policy, column) in of.iter().enumerate() {
                    let (text, is_met) = &column[index].1;
                    met[policy] += u32::from(*is_met);
                    let _ = write!(table, " {text}{} |", if *is_met { "" } else { " ✗" });
                }
                table += "\n";
                count += 1;
                if !is_met {
                    let _ = writeln!(own_missed, "{what}, {way}, {pace} a second: {own}");
                }
            }
        }
        let most = MISSED.iter().find(|(of, _)| *of == kind).map_or(0, |(_, most)| *most);
        if count - met[0] > most {
            let _ = write!(missed, "{kind}\n{own_missed}");
        }
        let met: Vec<String> = met.iter().map(|met| format!("{met} of {count}")).collect();
        let _ = writeln!(table, "| met | | | {} |", met.join(" | "));
        if wanted.is_ok() && count > 0 {
            println!("{table}");
        }
    }
    assert!(wanted.is_ok() || missed.is_empty(), "\n{missed}");
}
