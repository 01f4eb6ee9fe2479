//! Strangers that share one limit: how even their shares are, what is refused, and how long a newcomer waits.
//!
//! `npm run bench:fairness` plays 2 to 16 clients of each server for 40 minutes; the last of them comes after
//! 20. The usual run plays one server for twelve. Everything is virtual time.

use autothrottle::{
    Answer, Instant, Span,
    simulate::{Client, Departure, Exchange, Next, Simulation},
};

use crate::{
    baselines::{Aimd, Cubic},
    simulate::in_parallel,
};

/// The name, and what `server` of a simulation takes, without braces.
const SERVERS: [(&str, &str); 6] = [
    ("nginx 50/s, burst 10, 503", r#""model": "nginx", "rate": 50, "burst": 10"#),
    ("nginx 50/s, burst 10, 429", r#""model": "nginx", "rate": 50, "burst": 10, "refusal": "429""#),
    ("bucket 20/s, depth 10", r#""model": "token-bucket", "rate": 20, "depth": 10"#),
    ("GCRA 30/s, burst 5", r#""model": "gcra", "rate": 30, "burst": 5"#),
    ("fixed 600 a minute", r#""model": "fixed-window", "limit": 600"#),
    ("nginx 20/s, no burst, 429", r#""model": "nginx", "rate": 20, "refusal": "429""#),
];

/// A client that comes later.
struct Late {
    client: Box<dyn Client>,
    from: Instant,
}

impl Client for Late {
    fn next(&mut self, now: Instant) -> Next {
        if now < self.from { Next::At(self.from) } else { self.client.next(now) }
    }

    fn answered(&mut self, now: Instant, request: u64, sent: Instant, answer: Answer, headers: &str) {
        self.client.answered(now, request, sent, answer, headers);
    }

    fn departure(&self, request: u64) -> Departure {
        self.client.departure(request)
    }
}

/// How several clients share a limit.
struct Shares {
    /// Jain's index in the last third: 1 is even.
    jain: f64,
    /// Refused of what was sent in that time, as a share.
    refused: f64,
    /// Seconds until the latecomer was served half an even share for half a minute; none: never.
    newcomer: Option<u64>,
}

fn share(server: &str, policy: &str, clients: u32, minutes: u64, seed: u64) -> Shares {
    let json = format!(
        r#"{{ "server": {{ {server}, "jitter": 0.5 }}, "network": {{ "latency": 50, "jitter": 5, "timerLag": 0.3,
            "timerJitter": 1, "slow": 0.001, "slowBy": 250 }}, "duration": {}, "seed": {seed},
            "clients": {clients}, "throttle": {{ "defaults": {{ "rampup": true }} }} }}"#,
        minutes * 60_000
    );
    let simulation = Simulation::parse(serde_json::from_str(&json).unwrap()).unwrap().at_most(20_000_000);
    let half = Instant::default() + Span::from_micros(minutes * 30_000_000);
    let client = |index: u64| {
        let client: Box<dyn Client> = match policy {
            "AIMD" => Box::new(Aimd::new()),
            "CUBIC" => Box::new(Cubic::new()),
            _ => Box::new(simulation.engine(index)),
        };
        let from = if index + 1 == u64::from(clients) { half } else { Instant::default() };
        Box::new(Late { client, from }) as Box<dyn Client>
    };
    let trace = simulation.run_with(client).unwrap().0;
    let settled = Instant::default() + Span::from_micros(minutes * 40_000_000);
    let late = || trace.exchanges.iter().filter(|each| each.sent >= settled);
    let served = |client: u32| late().filter(|each| each.client == client && each.is_served()).count() as f64;
    let served: Vec<f64> = (0..clients).map(served).collect();
    let squares = served.iter().map(|each| each * each).sum::<f64>();
    let sum = served.iter().sum::<f64>();
    let refused = late().filter(|each| each.is_refused).count() as f64;
    Shares {
        jain: sum * sum / (f64::from(clients) * squares),
        refused: refused / late().count() as f64,
        newcomer: newcomer(&trace.exchanges, clients, half, minutes),
    }
}

/// Even shares of half minutes: the first in which the last client has half of one, its end in seconds.
fn newcomer(exchanges: &[Exchange], clients: u32, from: Instant, minutes: u64) -> Option<u64> {
    let count = minutes as usize;
    let (mut own, mut all) = (vec![0u32; count], vec![0u32; count]);
    for each in exchanges.iter().filter(|each| each.sent >= from && each.is_served()) {
        let at = (each.sent.since(from).micros() / 30_000_000) as usize;
        if at < count {
            all[at] += 1;
            own[at] += u32::from(each.client + 1 == clients);
        }
    }
    let half = |(own, all): (&u32, &u32)| *all > 0 && 2 * own * clients >= *all;
    own.iter().zip(&all).position(half).map(|index| 30 * (index as u64 + 1))
}

/// `FAIRNESS=1` prints the table; `FAIRNESS=AIMD` a part of it, by policy or server.
#[test]
fn strangers_share_a_limit() {
    let Ok(wanted) = std::env::var("FAIRNESS") else {
        let four = share(SERVERS[1].1, "rampup", 4, 12, 11);
        assert!(four.jain > 0.8 && four.refused < 0.03, "{:.3}, {:.4}", four.jain, four.refused);
        assert!(four.newcomer.is_some_and(|seconds| seconds <= 120), "{:?}", four.newcomer);
        return;
    };
    let mut jobs = Vec::new();
    for policy in ["rampup", "AIMD", "CUBIC"] {
        for server in SERVERS {
            jobs.extend([2, 4, 8, 16].map(|clients| (server, policy, clients)));
        }
    }
    jobs.retain(|((name, _), policy, _)| wanted == "1" || name.contains(&wanted) || *policy == wanted);
    println!("| policy | server | clients | Jain | refused | newcomer has half its share after |");
    println!("|---|---|---|---|---|---|");
    let lines = in_parallel(&jobs, |((name, server), policy, clients)| {
        let Shares { jain, refused, newcomer } = share(server, policy, *clients, 40, 11);
        let newcomer = newcomer.map_or("never".into(), |seconds| format!("{seconds} s"));
        format!("| {policy} | {name} | {clients} | {jain:.2} | {:.2} % | {newcomer} |", 100.0 * refused)
    });
    for line in &lines {
        println!("{line}");
    }
}
