//! The golden traces of the engine, played by the driver in paused time: each request leaves at the
//! millisecond at which every other host of the engine sends it.

use std::{cell::RefCell, collections::BTreeMap, fs, rc::Rc, time::Duration};

use autothrottle_tower::{Failure, Outcome, Permit, Target, Throttle};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::{
    task::{JoinHandle, LocalSet, yield_now},
    time::{Instant, advance, sleep, sleep_until},
};

/// Events that only the engine has, or that a driver counts by itself.
const NOT_OURS: [&str; 12] = [
    "adopt", "crawl-delay", "prioritize", " cost=", " wall=", " retry=", " keep", " bad", " good",
    " waited=", " cost=", "pause\n",
];

#[derive(Default)]
struct Played {
    sent: RefCell<Vec<String>>,
    permits: RefCell<BTreeMap<String, Permit>>,
    serve: RefCell<Option<(Duration, u16, HeaderMap)>>,
}

fn told(line: &str) -> (u16, HeaderMap) {
    let mut headers = HeaderMap::new();
    let mut status = 200;
    for word in line.split_whitespace() {
        if let Some(text) = word.strip_prefix("status=") {
            status = text.parse().unwrap();
        } else if let Some((name, value)) =
            word.strip_prefix("header=").and_then(|field| field.split_once(':'))
        {
            let value = HeaderValue::from_str(value.replace('_', " ").trim()).unwrap();
            headers.append(name.parse::<HeaderName>().unwrap(), value);
        }
    }
    (status, headers)
}

fn argument<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|word| word.strip_prefix(key))
}

async fn play(trace: &str) -> Vec<String> {
    let played = Rc::new(Played::default());
    let mut throttle = None;
    let mut waiting: BTreeMap<String, JoinHandle<()>> = BTreeMap::new();
    let start = Instant::now();
    let at = |word: &str| start + Duration::from_secs_f64(word.parse::<f64>().unwrap() / 1000.0);
    for line in trace.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let json = || serde_json::from_str::<serde_json::Value>(&line[line.find('{').unwrap()..]).unwrap();
        if words[0] == "options" {
            match Throttle::new(json()) {
                Ok(made) => throttle = Some(made),
                Err(_) => return Vec::new(),
            }
            continue;
        }
        let throttle = throttle.as_ref().expect("options come first");
        match words[0] {
            "submit" | "send" => {
                let mut names = words[2].split(',');
                let mut target = Target::scope(names.next().unwrap());
                for name in names {
                    target = target.and(name, 1.0);
                }
                if let Some(priority) = argument(line, "priority=") {
                    target = target.priority(priority.parse().unwrap());
                }
                if let Some(delay) = argument(line, "delay=") {
                    target = target.delay(Duration::from_millis(delay.parse().unwrap()));
                }
                let (name, throttle, played) = (words[1].to_owned(), throttle.clone(), played.clone());
                let acquired = tokio::task::spawn_local(async move {
                    let Ok(permit) = throttle.acquire(&target).await else { return };
                    let ms = start.elapsed().as_secs_f64() * 1000.0;
                    played.sent.borrow_mut().push(format!("{ms:.3} send {name}"));
                    let serve = played.serve.borrow().clone();
                    if let Some((latency, status, headers)) = serve {
                        sleep(latency).await;
                        permit.settle(&Outcome::Response { status, headers: Some(&headers) });
                    } else {
                        played.permits.borrow_mut().insert(name, permit);
                    }
                });
                waiting.insert(words[1].into(), acquired);
            }
            "settle" => {
                // Traces settle one request twice, and one that waits: neither means anything.
                let Some(permit) = played.permits.borrow_mut().remove(words[1]) else { continue };
                let (status, headers) = told(line);
                match (line.contains("status="), line.contains(" error")) {
                    (true, _) => permit.settle(&Outcome::Response { status, headers: Some(&headers) }),
                    (false, true) => permit.settle(&Outcome::Failed(Failure::Connection)),
                    (false, false) => permit.settle(&Outcome::Nothing),
                };
            }
            "serve" => {
                let latency = argument(line, "latency=").map(|ms| Duration::from_millis(ms.parse().unwrap()));
                let (status, headers) = told(line);
                *played.serve.borrow_mut() = latency.map(|latency| (latency, status, headers));
            }
            "at" => advance(at(words[1]).saturating_duration_since(Instant::now())).await,
            "run" => sleep_until(at(words[1])).await,
            "configure" => drop(throttle.configure(words[1], json())),
            "hold" => throttle.hold(words[1], Duration::from_millis(words[2].parse().unwrap())),
            "pause" => throttle.pause(words[1]),
            "resume" => throttle.resume(words[1]),
            "reset" => throttle.reset(words[1]),
            "cancel" => {
                if let Some(request) = waiting.remove(words[1]) {
                    request.abort();
                }
                drop(played.permits.borrow_mut().remove(words[1]));
            }
            "stats" | "peek" => {}
            other => panic!("no such event: {other}"),
        }
        for _ in 0..8 {
            yield_now().await;
        }
    }
    played.sent.take()
}

#[tokio::test(start_paused = true)]
async fn every_request_of_a_trace_leaves_when_it_leaves_elsewhere() {
    let mut played = 0;
    let files = fs::read_dir("../tests/traces").unwrap().map(|file| file.unwrap().path());
    let texts: Vec<String> = files.map(|file| fs::read_to_string(file).unwrap()).collect();
    for story in texts.iter().flat_map(|text| text.split("\n== ").skip(1)) {
        let trace: String =
            story.lines().filter_map(|line| line.strip_prefix("> ")).flat_map(|line| [line, "\n"]).collect();
        let sent: Vec<String> = story
            .lines()
            .filter(|line| !line.starts_with(['>', '#']) && line.contains(" send "))
            .map(|line| line.trim().trim_end_matches(" at once").to_owned())
            .collect();
        // tokio's timers have milliseconds.
        let is_finer = sent.iter().any(|line| !line.contains(".000 "));
        // A driver measures latency by itself.
        let is_told = trace.lines().any(|line| line.starts_with("settle") && line.contains(" latency="));
        if is_finer || is_told || sent.is_empty() || NOT_OURS.iter().any(|words| trace.contains(words)) {
            continue;
        }
        let name = story.lines().next().unwrap();
        assert_eq!(LocalSet::new().run_until(play(&trace)).await, sent, "{name}");
        played += 1;
    }
    assert!(played >= 14, "only {played} traces are played");
}
