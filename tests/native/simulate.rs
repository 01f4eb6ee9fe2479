//! Fifty servers whose limit nobody tells, and what each policy makes of them: the golden tables, the aims, and what must never happen.

use std::{fmt::Write, sync::Mutex, thread};

use autothrottle::{
    Config, Decision, Engine, Feedback, Instant, Request, Span,
    simulate::{Client, Simulation, Summary, Trace},
};

use crate::yardsticks::{Aimd, Cubic};

/// A name, and the options of a simulation without `throttle`.
struct Scenario {
    name: &'static str,
    options: &'static str,
}

/// Constant limits, cold.
const CONSTANT: &[Scenario] = &[
    Scenario {
        name: "bucket 0.2/s, depth 1",
        options: r#""server": { "model": "token-bucket", "rate": 0.2 }"#,
    },
    Scenario {
        name: "bucket 0.5/s, depth 5",
        options: r#""server": { "model": "token-bucket", "rate": 0.5, "depth": 5 }"#,
    },
    Scenario {
        name: "bucket 1/s, depth 10, 2 s away",
        options: r#""server": { "model": "token-bucket", "rate": 1, "depth": 10 }, "network": { "latency": 2000, "jitter": 20 }"#,
    },
    Scenario {
        name: "bucket 5/s, depth 1, Retry-After",
        options: r#""server": { "model": "token-bucket", "rate": 5, "says": "retry-after" }"#,
    },
    Scenario {
        name: "bucket 7/s, depth 3",
        options: r#""server": { "model": "token-bucket", "rate": 7, "depth": 3 }, "network": { "latency": 50, "jitter": 2 }"#,
    },
    Scenario {
        name: "bucket 10/s, depth 5, RateLimit",
        options: r#""server": { "model": "token-bucket", "rate": 10, "depth": 5, "says": "rate-limit" }"#,
    },
    Scenario {
        name: "bucket 10/s, depth 300",
        options: r#""server": { "model": "token-bucket", "rate": 10, "depth": 300 }"#,
    },
    Scenario {
        name: "bucket 20/s, depth 40, 500 ms away",
        options: r#""server": { "model": "token-bucket", "rate": 20, "depth": 40 }, "network": { "latency": 500, "jitter": 20 }"#,
    },
    Scenario {
        name: "bucket 50/s, depth 10",
        options: r#""server": { "model": "token-bucket", "rate": 50, "depth": 10 }, "network": { "latency": 50, "jitter": 2 }"#,
    },
    Scenario {
        name: "bucket 133/s, depth 20",
        options: r#""server": { "model": "token-bucket", "rate": 133, "depth": 20 }, "network": { "latency": 50, "jitter": 2 }"#,
    },
    Scenario {
        name: "bucket 500/s, depth 50, 5 ms away",
        options: r#""server": { "model": "token-bucket", "rate": 500, "depth": 50 }, "network": { "latency": 5, "jitter": 1 }, "duration": 300000"#,
    },
    Scenario {
        name: "bucket 2000/s, depth 100",
        options: r#""server": { "model": "token-bucket", "rate": 2000, "depth": 100 }, "network": { "latency": 20, "jitter": 1 }, "duration": 300000"#,
    },
    Scenario {
        name: "nginx 10/s",
        options: r#""server": { "model": "nginx", "rate": 10 }, "network": { "latency": 200 }"#,
    },
    Scenario {
        name: "nginx 10/s, 10 ms jitter",
        options: r#""server": { "model": "nginx", "rate": 10 }, "network": { "latency": 200, "jitter": 10 }"#,
    },
    Scenario {
        name: "nginx 7/s, burst 5",
        options: r#""server": { "model": "nginx", "rate": 7, "burst": 5 }, "network": { "latency": 200, "jitter": 5 }"#,
    },
    Scenario {
        name: "nginx 10/s, burst 20",
        options: r#""server": { "model": "nginx", "rate": 10, "burst": 20 }, "network": { "latency": 200, "jitter": 5 }"#,
    },
    Scenario {
        name: "nginx 10/s, burst 20, delay",
        options: r#""server": { "model": "nginx", "rate": 10, "burst": 20, "delay": true }, "network": { "latency": 200, "jitter": 5 }"#,
    },
    Scenario {
        name: "nginx 100/s, burst 50, delay",
        options: r#""server": { "model": "nginx", "rate": 100, "burst": 50, "delay": true }, "network": { "latency": 30, "jitter": 5 }"#,
    },
    Scenario {
        name: "nginx 200/s, burst 20",
        options: r#""server": { "model": "nginx", "rate": 200, "burst": 20 }, "network": { "latency": 20, "jitter": 2 }, "duration": 300000"#,
    },
    Scenario {
        name: "gcra 3/s, burst 2",
        options: r#""server": { "model": "gcra", "rate": 3, "burst": 2 }, "network": { "latency": 80, "jitter": 5 }"#,
    },
    Scenario {
        name: "gcra 30/s, burst 10, Retry-After",
        options: r#""server": { "model": "gcra", "rate": 30, "burst": 10, "says": "retry-after" }, "network": { "latency": 80, "jitter": 5 }"#,
    },
    Scenario {
        name: "gcra 1000/s, burst 100",
        options: r#""server": { "model": "gcra", "rate": 1000, "burst": 100 }, "network": { "latency": 10, "jitter": 1 }, "duration": 300000"#,
    },
    Scenario {
        name: "fixed 20 per minute",
        options: r#""server": { "model": "fixed-window", "limit": 20 }"#,
    },
    Scenario {
        name: "fixed 60 per minute",
        options: r#""server": { "model": "fixed-window", "limit": 60 }"#,
    },
    Scenario {
        name: "fixed 60 per minute, Retry-After",
        options: r#""server": { "model": "fixed-window", "limit": 60, "says": "retry-after" }"#,
    },
    Scenario {
        name: "fixed 60 per minute, RateLimit",
        options: r#""server": { "model": "fixed-window", "limit": 60, "says": "rate-limit" }"#,
    },
    Scenario {
        name: "fixed 600 per minute",
        options: r#""server": { "model": "fixed-window", "limit": 600 }, "network": { "latency": 100, "jitter": 5 }"#,
    },
    Scenario {
        name: "fixed 100 per 10 s",
        options: r#""server": { "model": "fixed-window", "limit": 100, "window": 10000 }, "network": { "latency": 100, "jitter": 5 }"#,
    },
    Scenario {
        name: "fixed 10 per second",
        options: r#""server": { "model": "fixed-window", "limit": 10, "window": 1000 }, "network": { "latency": 100, "jitter": 5 }"#,
    },
    Scenario {
        name: "fixed 100 per second, 2 s away",
        options: r#""server": { "model": "fixed-window", "limit": 100, "window": 1000 }, "network": { "latency": 2000, "jitter": 50 }"#,
    },
    Scenario {
        name: "fixed 1000 per second",
        options: r#""server": { "model": "fixed-window", "limit": 1000, "window": 1000 }, "network": { "latency": 20, "jitter": 2 }, "duration": 300000"#,
    },
    Scenario {
        name: "sliding 5 per second",
        options: r#""server": { "model": "sliding-window", "limit": 5, "window": 1000 }, "network": { "latency": 80, "jitter": 2 }"#,
    },
    Scenario {
        name: "sliding 5 per second, Retry-After",
        options: r#""server": { "model": "sliding-window", "limit": 5, "window": 1000, "says": "retry-after" }, "network": { "latency": 80, "jitter": 2 }"#,
    },
    Scenario {
        name: "sliding 5 per second, RateLimit",
        options: r#""server": { "model": "sliding-window", "limit": 5, "window": 1000, "says": "rate-limit" }, "network": { "latency": 80, "jitter": 2 }"#,
    },
    Scenario {
        name: "sliding 30 per second, 2 s away",
        options: r#""server": { "model": "sliding-window", "limit": 30, "window": 1000 }, "network": { "latency": 2000, "jitter": 20 }"#,
    },
    Scenario {
        name: "sliding 100 per minute",
        options: r#""server": { "model": "sliding-window", "limit": 100 }, "network": { "latency": 100, "jitter": 5 }"#,
    },
    Scenario {
        name: "sliding 300 per second",
        options: r#""server": { "model": "sliding-window", "limit": 300, "window": 1000 }, "network": { "latency": 30, "jitter": 2 }, "duration": 300000"#,
    },
    Scenario {
        name: "4 at a time, 300 ms each",
        options: r#""server": { "model": "concurrency", "slots": 4, "service": 300 }, "network": { "latency": 20, "jitter": 2 }"#,
    },
    Scenario {
        name: "20 at a time, 100 ms each",
        options: r#""server": { "model": "concurrency", "slots": 20, "service": 100 }, "network": { "latency": 20, "jitter": 2 }"#,
    },
    Scenario {
        name: "1 at a time, 2 s each",
        options: r#""server": { "model": "concurrency", "slots": 1, "service": 2000 }, "network": { "latency": 50, "jitter": 5 }"#,
    },
    Scenario {
        name: "queue, 4 workers of 200 ms, gateway 5 s",
        options: r#""server": { "model": "queue", "workers": 4, "service": 200, "spread": 0.5, "patience": 5000 }, "network": { "latency": 50, "jitter": 5 }"#,
    },
    Scenario {
        name: "queue, 8 workers of 50 ms, room for 16",
        options: r#""server": { "model": "queue", "workers": 8, "service": 50, "spread": 0.5, "room": 16 }, "network": { "latency": 50, "jitter": 5 }"#,
    },
    Scenario {
        name: "bucket 10/s, depth 10, ban 30 s",
        options: r#""server": { "model": "token-bucket", "rate": 10, "depth": 10, "ban": 30000 }, "network": { "latency": 100, "jitter": 5 }"#,
    },
    Scenario {
        name: "sliding 100 per 10 s, ban 60 s, Retry-After",
        options: r#""server": { "model": "sliding-window", "limit": 100, "window": 10000, "ban": 60000, "says": "retry-after" }, "network": { "latency": 100, "jitter": 5 }"#,
    },
    Scenario {
        name: "bucket 20/s, depth 10, 1 % fail with 503",
        options: r#""server": { "model": "token-bucket", "rate": 20, "depth": 10, "failing": 0.01 }, "network": { "latency": 100, "jitter": 5 }"#,
    },
    Scenario {
        name: "bucket 20/s, depth 10, 5 % fail with 500",
        options: r#""server": { "model": "token-bucket", "rate": 20, "depth": 10, "failing": 0.05, "failingStatus": 500 }, "network": { "latency": 100, "jitter": 5 }"#,
    },
];

/// Limits that move.
const MOVING: &[Scenario] = &[
    Scenario {
        name: "bucket 10/s doubles",
        options: r#""server": { "model": "token-bucket", "rate": 10, "depth": 5, "step": { "at": 300000, "factor": 2 } }, "network": { "latency": 100, "jitter": 2 }"#,
    },
    Scenario {
        name: "bucket 10/s halves",
        options: r#""server": { "model": "token-bucket", "rate": 10, "depth": 5, "step": { "at": 300000, "factor": 0.5 } }, "network": { "latency": 100, "jitter": 2 }"#,
    },
    Scenario {
        name: "bucket 100/s, tenfold",
        options: r#""server": { "model": "token-bucket", "rate": 100, "depth": 20, "step": { "at": 300000, "factor": 10 } }, "network": { "latency": 30, "jitter": 2 }, "duration": 600000"#,
    },
    Scenario {
        name: "nginx 20/s, burst 5, doubles",
        options: r#""server": { "model": "nginx", "rate": 20, "burst": 5, "step": { "at": 300000, "factor": 2 } }, "network": { "latency": 200, "jitter": 2 }"#,
    },
    Scenario {
        name: "fixed 100 per 10 s doubles",
        options: r#""server": { "model": "fixed-window", "limit": 100, "window": 10000, "step": { "at": 300000, "factor": 2 } }, "network": { "latency": 100, "jitter": 5 }"#,
    },
    Scenario {
        name: "sliding 10 per second halves",
        options: r#""server": { "model": "sliding-window", "limit": 10, "window": 1000, "step": { "at": 300000, "factor": 0.5 } }, "network": { "latency": 100, "jitter": 5 }"#,
    },
    Scenario {
        name: "bucket 10/s drifts to 20 and back in 10 min",
        options: r#""server": { "model": "token-bucket", "rate": 10, "depth": 10, "drift": { "period": 600000, "factor": 2 } }, "network": { "latency": 100, "jitter": 5 }, "duration": 1800000"#,
    },
];

/// One limit for several.
const SHARED: &[Scenario] = &[
    Scenario {
        name: "bucket 20/s, depth 10",
        options: r#""server": { "model": "token-bucket", "rate": 20, "depth": 10 }, "network": { "latency": 100, "jitter": 5 }"#,
    },
    Scenario {
        name: "nginx 50/s, burst 10",
        options: r#""server": { "model": "nginx", "rate": 50, "burst": 10 }, "network": { "latency": 50, "jitter": 5 }"#,
    },
    Scenario {
        name: "sliding 100 per second",
        options: r#""server": { "model": "sliding-window", "limit": 100, "window": 1000 }, "network": { "latency": 50, "jitter": 5 }"#,
    },
    Scenario {
        name: "fixed 300 per 10 s",
        options: r#""server": { "model": "fixed-window", "limit": 300, "window": 10000 }, "network": { "latency": 100, "jitter": 5 }"#,
    },
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Policy {
    Told,
    AutoThrottle,
    Backoff,
    Rampup,
    Both,
    Cubic,
    Aimd,
}

impl Policy {
    const ALL: [(Self, &str); 7] = [
        (Self::Rampup, "rampup"),
        (Self::Both, "AutoThrottle + rampup"),
        (Self::Told, "fixed delay, told the limit"),
        (Self::Backoff, "backoff alone"),
        (Self::AutoThrottle, "AutoThrottle"),
        (Self::Cubic, "CUBIC limiter (AWS SDKs)"),
        (Self::Aimd, "AIMD"),
    ];

    fn throttle(self, limit: f64) -> String {
        match self {
            Self::Told => format!(
                r#"{{ "concurrency": 200, "defaults": {{ "concurrency": 200, "delay": {}, "slotDelay": 0, "jitter": false, "backoff": false }} }}"#,
                1000.0 / limit
            ),
            Self::AutoThrottle => {
                r#"{ "concurrency": 200, "defaults": { "concurrency": 8, "delay": 0, "slotDelay": 0, "backoff": false, "autothrottle": { "targetConcurrency": 8 } } }"#.into()
            }
            Self::Backoff => {
                r#"{ "concurrency": 200, "defaults": { "concurrency": 8, "delay": 0, "slotDelay": 0 } }"#.into()
            }
            Self::Rampup | Self::Cubic | Self::Aimd => RAMPUP.into(),
            Self::Both => {
                r#"{ "concurrency": 200, "defaults": { "rampup": true, "autothrottle": { "targetConcurrency": 8 } } }"#.into()
            }
        }
    }
}

/// What is refused most of the time is sent often.
const MOST: usize = 20_000_000;

const RAMPUP: &str = r#"{ "concurrency": 200, "defaults": { "rampup": true } }"#;

/// The scenario with this throttle; fifteen minutes and nothing else unless it says so.
fn simulation(scenario: &Scenario, throttle: &str, more: &str) -> Simulation {
    let duration = if scenario.options.contains("duration") { "" } else { r#", "duration": 900000"# };
    let json = format!(r#"{{ {}{duration}{more}, "seed": 11, "throttle": {throttle} }}"#, scenario.options);
    Simulation::parse(serde_json::from_str(&json).expect(&json))
        .unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn run(scenario: &Scenario, policy: Policy, more: &str) -> (Trace, Summary) {
    let plain = simulation(scenario, RAMPUP, more);
    let limit = plain.server().limit(Instant::default());
    match policy {
        Policy::Cubic => plain.at_most(MOST).run_with(|_| Box::new(Cubic::new()) as Box<dyn Client>).unwrap(),
        Policy::Aimd => plain.at_most(MOST).run_with(|_| Box::new(Aimd::new()) as Box<dyn Client>).unwrap(),
        _ => simulation(scenario, &policy.throttle(limit), more).at_most(MOST).run().unwrap(),
    }
}

/// All of them, on as many threads as there are cores, in their own order.
fn run_all(jobs: &[(&'static Scenario, Policy, &'static str)]) -> Vec<Summary> {
    let results: Mutex<Vec<(usize, Summary)>> = Mutex::new(Vec::new());
    let next = Mutex::new(0..jobs.len());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(index) = next.lock().unwrap().next() else { break };
                    let (scenario, policy, more) = jobs[index];
                    let summary = run(scenario, policy, more).1;
                    results.lock().unwrap().push((index, summary));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, summary)| summary).collect()
}

fn seconds(ms: Option<f64>) -> String {
    ms.map_or("never".into(), |ms| format!("{:.0} s", ms / 1000.0))
}

fn rank(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

/// Compares with a golden file. `UPDATE_GOLDEN=1` writes it.
fn golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == text,
        "npm run bless writes {name} anew:\n{text}"
    );
}

/// Compares what stands between two marks in `docs/rampup.md`. `UPDATE_GOLDEN=1` writes it.
fn in_docs(mark: &str, text: &str) {
    static WRITING: Mutex<()> = Mutex::new(());
    let _guard = WRITING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/rampup.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (open, close) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let start = page.find(&open).expect("the mark opens") + open.len();
    let end = page.find(&close).expect("the mark closes");
    let wanted = format!("\n{}\n\n", text.trim());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, format!("{}{wanted}{}", &page[..start], &page[end..])).unwrap();
    } else {
        assert!(page[start..end] == wanted, "npm run bless writes docs/rampup.md anew:\n{text}");
    }
}

/// The tables of `docs/rampup.md`, from cold, nothing tuned.
#[test]
fn limits_are_found_and_kept() {
    let scenarios: Vec<&Scenario> = CONSTANT.iter().chain(MOVING).collect();
    let mut jobs = Vec::new();
    for (policy, _) in Policy::ALL {
        jobs.extend(scenarios.iter().map(|&scenario| (scenario, policy, "")));
    }
    let results = run_all(&jobs);
    let of = |policy: Policy| {
        let at = Policy::ALL.iter().position(|&(each, _)| each == policy).unwrap() * scenarios.len();
        &results[at..at + scenarios.len()]
    };
    let mut summary = String::from(
        "| policy | utilisation, median | 10th percentile | worst | refusals a minute, median | 90th percentile | share refused, median | 90th percentile | 90 % after, median |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    let constant = CONSTANT.len();
    for (policy, name) in Policy::ALL {
        let all = &of(policy)[..constant];
        let figures = |figure: fn(&Summary) -> f64| all.iter().map(figure).collect::<Vec<_>>();
        let utilisation = figures(|summary| summary.utilisation);
        let per_minute = figures(|summary| summary.refusals_per_minute);
        let share = figures(|summary| summary.share_refused * 100.0);
        let reached = figures(|summary| summary.reached_ms.unwrap_or(f64::INFINITY) / 1000.0);
        let reached = rank(reached, 0.5);
        let reached = if reached.is_finite() { format!("{reached:.1} s") } else { "never".into() };
        writeln!(
            summary,
            "| {name} | {:.3} | {:.2} | {:.2} | {:.2} | {:.1} | {:.2} % | {:.2} % | {reached} |",
            rank(utilisation.clone(), 0.5),
            rank(utilisation.clone(), 0.1),
            rank(utilisation, 0.0),
            rank(per_minute.clone(), 0.5),
            rank(per_minute, 0.9),
            rank(share.clone(), 0.5),
            rank(share, 0.9),
        )
        .unwrap();
    }
    let mut table = String::from(
        "| server | utilisation | share refused | bad ends a minute | 90 % after | after the step | largest burst | latency |\n|---|---|---|---|---|---|---|---|\n",
    );
    let header = table.clone();
    let mut tables = String::new();
    for (policy, name) in Policy::ALL {
        let mut rows = header.clone();
        for (scenario, summary) in scenarios.iter().zip(of(policy)) {
            let has_step = scenario.options.contains("step");
            let regained = if has_step { seconds(summary.regained_ms) } else { "–".into() };
            writeln!(
                rows,
                "| {} | {:.3} | {:.2} % | {:.2} | {} | {regained} | {:.0} | {:.0} ms |",
                scenario.name,
                summary.utilisation,
                summary.share_refused * 100.0,
                summary.refusals_per_minute,
                seconds(summary.reached_ms),
                summary.burst,
                summary.latency_ms,
            )
            .unwrap();
        }
        if policy == Policy::Rampup {
            table.clone_from(&rows);
        }
        write!(tables, "\n## {name}\n\n{rows}").unwrap();
    }
    golden(
        "simulate.md",
        &format!(
            "# Simulated servers\n\nWritten by `npm run bless`. From cold, nothing tuned, 15 minutes each unless the scenario says otherwise; utilisation and refusals of the second half.\n\n## Constant limits\n\n{summary}{tables}"
        ),
    );
    in_docs("policies", &summary);
    in_docs("servers", &table);
    let rampup = of(Policy::Rampup);
    let figure = |figure: fn(&Summary) -> f64| rampup[..constant].iter().map(figure).collect::<Vec<_>>();
    assert!(rank(figure(|summary| summary.utilisation), 0.5) >= 0.985);
    assert!(rank(figure(|summary| summary.utilisation), 0.1) >= 0.9);
    assert!(rank(figure(|summary| summary.refusals_per_minute), 0.5) <= 1.0);
    let reached = figure(|summary| summary.reached_ms.unwrap_or(f64::INFINITY));
    assert!(rank(reached, 0.5) <= 15_000.0);
    for (scenario, summary) in scenarios.iter().zip(rampup).filter(|(each, _)| each.options.contains("step"))
    {
        assert!(summary.regained_ms.is_some_and(|ms| ms <= 120_000.0), "{}: two windows", scenario.name);
    }
}

/// What a depth of one and a network that jitters leave to anybody: the best constant rate, found in hindsight.
#[test]
fn no_constant_rate_does_much_better_under_jitter() {
    let scenario = CONSTANT.iter().find(|each| each.name == "nginx 10/s, 10 ms jitter").unwrap();
    let best = (0..30)
        .map(|step| {
            let delay = 100.0 + f64::from(step);
            let throttle = format!(
                r#"{{ "concurrency": 200, "defaults": {{ "concurrency": 200, "delay": {delay}, "slotDelay": 0, "jitter": false, "backoff": false }} }}"#
            );
            simulation(scenario, &throttle, "").run().unwrap().1
        })
        .filter(|summary| summary.refusals_per_minute <= 1.0)
        .map(|summary| summary.utilisation)
        .fold(0.0, f64::max);
    let found = run(scenario, Policy::Rampup, "").1.utilisation;
    assert!(found >= 0.95 * best, "{found}; a constant rate could do {best}");
    in_docs(
        "hindsight",
        &format!(
            "The best constant rate with no more than one refusal a minute does {best:.3}, rampup {found:.3}."
        ),
    );
}

/// `backoffTarget` is what finding the limit may cost: more for those who want to follow a limit faster.
#[test]
fn the_target_is_what_is_paid() {
    let names = [
        "bucket 7/s, depth 3",
        "nginx 10/s",
        "sliding 5 per second",
        "gcra 3/s, burst 2",
        "bucket 50/s, depth 10",
    ];
    for (target, least, most) in [("1", 0.3, 1.0), ("[1, 3]", 0.7, 2.5), ("5", 2.0, 5.5)] {
        let throttle = format!(
            r#"{{ "concurrency": 200, "defaults": {{ "rampup": {{ "backoffTarget": {target} }} }} }}"#
        );
        for name in names {
            let scenario = CONSTANT.iter().find(|each| each.name == name).unwrap();
            let paid = simulation(scenario, &throttle, "").run().unwrap().1.refusals_per_minute;
            assert!((least..=most).contains(&paid), "{name}, backoffTarget {target}: {paid} a minute");
        }
    }
}

/// Jain's index between two and between ten clients of one limit.
#[test]
fn clients_of_one_limit_share_it() {
    let counts = [(2, r#", "clients": 2"#), (10, r#", "clients": 10"#)];
    let policies = [Policy::Rampup, Policy::Cubic, Policy::Aimd];
    let mut jobs = Vec::new();
    for policy in policies {
        for scenario in SHARED {
            jobs.extend(counts.iter().map(|&(_, more)| (scenario, policy, more)));
        }
    }
    let results = run_all(&jobs);
    let mut table = String::from(
        "| policy | server | clients | fairness | utilisation | bad ends a minute and client |\n|---|---|---|---|---|---|\n",
    );
    for ((scenario, policy, more), summary) in jobs.iter().zip(&results) {
        let (clients, _) = counts.iter().find(|(_, each)| each == more).unwrap();
        let name = Policy::ALL.iter().find(|(each, _)| each == policy).unwrap().1;
        writeln!(
            table,
            "| {name} | {} | {clients} | {:.3} | {:.3} | {:.1} |",
            scenario.name,
            summary.fairness,
            summary.utilisation,
            summary.refusals_per_minute / f64::from(*clients)
        )
        .unwrap();
    }
    golden("fairness.md", &table);
    in_docs("fairness", &table);
}

/// What the user set for the very scope, its quota, and what a server that asks for more is held to.
#[test]
fn no_bound_is_overstepped_by_a_scope_that_ramps() {
    let throttle = r#"{ "concurrency": 200, "scopes": { "server": { "rampup": { "backoffTarget": [1, 3] }, "delay": 150, "concurrency": 3,
        "quota": { "limit": 50, "window": 10000, "strict": true } } } }"#;
    for scenario in CONSTANT.iter().chain(MOVING) {
        let (trace, _) = simulation(scenario, throttle, "").run().unwrap();
        let sends: Vec<Instant> = trace.exchanges.iter().map(|exchange| exchange.sent).collect();
        for pair in sends.windows(2) {
            let gap = pair[1].since(pair[0]);
            assert!(gap >= Span::from_millis(150.0), "{}: {gap:?}", scenario.name);
        }
        for all in sends.windows(51) {
            let span = all[50].since(all[0]);
            assert!(span >= Span::from_millis(10_000.0), "{}: 51 in {span:?}", scenario.name);
        }
        let mut flying: Vec<Option<Instant>> = Vec::new();
        for exchange in &trace.exchanges {
            flying.retain(|answered| answered.is_none_or(|at| at > exchange.sent));
            flying.push(exchange.answered);
            assert!(flying.len() <= 3, "{}: {} in flight", scenario.name, flying.len());
        }
    }
}

/// Five hundred good answers, and none of them to a request that had to wait.
#[test]
fn unused_capacity_is_no_evidence() {
    let config = r#"{ "defaults": { "rampup": true } }"#;
    let mut engine = Engine::new(Config::parse(serde_json::from_str(config).unwrap()).unwrap());
    let scope = [engine.scope("x")];
    let mut now = Instant::default();
    for _ in 0..500 {
        let ticket = engine.submit(now, Request::new(&scope)).unwrap();
        assert_eq!(engine.poll(now), Decision::Send(ticket), "nobody asks for more than one in five seconds");
        now = now + Span::from_millis(50.0);
        engine.settle(now, ticket, &Feedback::response(200));
        now = now + Span::from_millis(5000.0);
    }
    let delay = engine.scope_stats(now, scope[0]).unwrap().delay_ms;
    assert!(
        delay >= 1.0,
        "five hundred requests in forty minutes prove nothing about a thousand a second: {delay}"
    );
}

/// The world is not kind: each of these is seen in the trace.
#[test]
fn the_world_is_as_unkind_as_it_was_asked_to_be() {
    let told = r#"{ "defaults": { "delay": 100, "slotDelay": 0, "concurrency": 50, "jitter": false, "backoff": false }, "concurrency": 50 }"#;
    let run = |server: &str, network: &str| {
        let json = format!(
            r#"{{ "server": {{ "model": "token-bucket", "rate": 1000, "depth": 100{server} }},
                "network": {{ "latency": 20{network} }}, "duration": 60000, "throttle": {told} }}"#
        );
        let simulation = Simulation::parse(serde_json::from_str(&json).unwrap()).expect(&json);
        simulation.run().unwrap()
    };
    let (kind, _) = run("", "");
    assert_eq!(kind.exchanges.len(), 600);
    let (late, _) = run("", r#", "timerLag": 3, "timerJitter": 4"#);
    let gaps: Vec<f64> =
        late.exchanges.windows(2).map(|pair| pair[1].sent.since(pair[0].sent).millis()).collect();
    assert!(gaps.iter().all(|gap| (103.0..=107.1).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().any(|&gap| gap > 106.0), "drawn for each timer");
    let latencies = |trace: &Trace| -> Vec<f64> {
        let known = trace.exchanges.iter().filter_map(|each| Some(each.answered?.since(each.sent).millis()));
        known.collect()
    };
    let (slow, _) = run("", r#", "slow": 0.1, "slowBy": 300"#);
    let lost = latencies(&slow).iter().filter(|&&ms| ms >= 320.0).count();
    assert!((30..=90).contains(&lost), "{lost} of 600");
    let (server, _) = run(r#", "jitter": 9"#, "");
    assert!(latencies(&server).iter().all(|ms| (20.0..=29.1).contains(ms)));
    assert!(latencies(&server).iter().any(|&ms| ms > 27.0));
    let (behind, _) = run(r#", "upstream": 200, "upstreamSpread": 0.5"#, "");
    assert!(latencies(&behind).iter().all(|ms| (119.9..=320.1).contains(ms)));
    let (_, down) = run(r#", "outage": { "at": 30000, "length": 6000 }"#, "");
    assert_eq!((down.refused, down.background), (60, 60), "all of them, and by chance");
    let (_, failing) = run(r#", "failing": 0.1"#, "");
    assert_eq!(failing.refused, failing.background);
    let shares = |server: &str| {
        let json = format!(
            r#"{{ "server": {{ "model": "token-bucket", "rate": 5{server} }}, "network": {{ "jitter": 50 }}, "duration": 60000, "throttle": {told} }}"#
        );
        Simulation::parse(serde_json::from_str(&json).unwrap()).expect(&json).run().unwrap().1
    };
    let (one, two) = (shares("").served, shares(r#", "replicas": 2"#).served);
    assert!((220..=305).contains(&one), "at most half of ten a second: {one}");
    assert!((one + 50..=480).contains(&two), "by chance two follow each other: {two}");
    let others = shares(r#", "others": { "rate": 900, "period": 20000, "share": 0.5 }"#).served;
    assert!((one * 4 / 10..=one * 7 / 10).contains(&others), "half of it for half of the time: {others}");
}

/// Each request is remembered: a simulation that would take all of the memory is an error that says so.
#[test]
fn a_simulation_of_too_many_requests_is_an_error() {
    let scenario = CONSTANT.iter().find(|each| each.name == "bucket 50/s, depth 10").unwrap();
    let error = simulation(scenario, RAMPUP, "").at_most(100).run().unwrap_err();
    assert_eq!(
        error.to_string(),
        "duration: want a time in which no more than 100 requests are sent, all clients together; got 900000"
    );
}
