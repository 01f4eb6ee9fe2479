//! Servers with several budgets: GitHub's resources and Discord's routes and buckets, in the simulator. None
//! is refused, and what is left of one budget is sent whatever is used up beside it. Then, call by call, what
//! else a server may do: a budget that changes, names that go, a server that says one name only.

use std::fmt::Write as _;

use std::collections::BTreeMap;

use allocation_counter::measure;
use autothrottle::{
    Boundary, Value,
    boundary::{Outcome, Settled, WAIT},
    headers::{Context, Hints},
    simulate::{Exchange, Simulation},
};

use crate::helpers::json;

/// There and back, in milliseconds; and the time in which sixteen slots send all that windows which begin at
/// once may hold.
const WAY: u64 = 20;
const BURST: f64 = 5.0 * WAY as f64;

/// A budget: its name, its limit, its window in milliseconds, and the paths of its routes.
type Budget = (String, u64, u64, Vec<String>);

fn simulate(budgets: &[Budget], options: &str, slots: u32, minutes: u64) -> Vec<Exchange> {
    let budgets: Vec<String> = budgets
        .iter()
        .map(|(name, limit, window, routes)| {
            format!(r#""{name}": {{ "limit": {limit}, "window": {window}, "routes": {routes:?} }}"#)
        })
        .collect();
    let json = format!(
        r#"{{ "server": {{ "model": "fixed-window", "says": "x-ratelimit", "budgets": {{ {} }}, {options} }},
            "network": {{ "latency": {WAY} }}, "duration": {},
            "throttle": {{ "maxInFlight": {slots}, "defaults": {{ "concurrency": {slots}, "delay": 0 }} }} }}"#,
        budgets.join(", "),
        minutes * 60_000,
    );
    let simulation = Simulation::parse(serde_json::from_str(&json).unwrap()).expect(&json);
    let (trace, _) = simulation.run().unwrap();
    trace.exchanges
}

/// By budget and window: how many were served, and how late in it the last one left, in milliseconds.
fn windows(budgets: &[Budget], exchanges: &[Exchange]) -> BTreeMap<(usize, u64), (u64, f64)> {
    let of: Vec<usize> =
        budgets.iter().enumerate().flat_map(|(place, budget)| vec![place; budget.3.len()]).collect();
    let mut windows = BTreeMap::new();
    for exchange in exchanges.iter().filter(|exchange| exchange.is_served()) {
        let budget = of[exchange.route as usize];
        let window = budgets[budget].2;
        let index = exchange.arrived.unwrap().micros() / 1000 / window;
        let late = exchange.sent.millis() - (index * window) as f64;
        let (served, latest) = windows.entry((budget, index)).or_insert((0, f64::MIN));
        *served += 1;
        *latest = late.max(*latest);
    }
    windows
}

/// Milliseconds of each window from `from` on in which something of it was left, beyond a burst.
fn needless(budgets: &[Budget], exchanges: &[Exchange], from: u64, minutes: u64, skip: usize) -> f64 {
    let windows = windows(budgets, exchanges);
    let mut needless = 0.0;
    for (place, (name, limit, window, _)) in budgets.iter().enumerate().skip(skip) {
        for index in from.div_ceil(*window)..minutes * 60_000 / window {
            let &(served, late) = windows.get(&(place, index)).unwrap_or(&(0, *window as f64));
            if served < *limit || late > BURST {
                println!("{name}, window {index}: {served} of {limit}, the last after {late} ms");
            }
            needless += if served < *limit { *window as f64 } else { (late - BURST).max(0.0) };
        }
    }
    needless
}

fn refused(exchanges: &[Exchange]) -> usize {
    exchanges.iter().filter(|exchange| exchange.is_refused).count()
}

#[test]
fn github_has_three_resources() {
    let budget = |name: &str, limit, window, routes: &[&str]| {
        (name.into(), limit, window, routes.iter().map(|&route| route.into()).collect())
    };
    let budgets = [
        budget("core", 5000, 3_600_000, &["/user", "/repos/octocat/hello/issues", "/repos/rust-lang/rust"]),
        budget("search", 30, 60_000, &["/search/issues", "/search/users"]),
        budget("code_search", 10, 60_000, &["/search/code"]),
    ];
    let options = r#""names": "x-ratelimit-resource", "refusal": "403""#;
    let exchanges = simulate(&budgets, options, 16, 60);
    assert_eq!((refused(&exchanges), exchanges.len()), (0, 5000 + 60 * 40));
    // The first minute's slots are full of what `core` has.
    assert_eq!(needless(&budgets, &exchanges, 60_000, 60, 1), 0.0);
}

/// Forty routes.
fn discord_routes() -> impl Iterator<Item = String> {
    (0..40).map(|route| format!("/api/v10/channels/100001/r{route}"))
}

const BUCKETS: &str = r#""names": "x-ratelimit-bucket""#;

/// Forty routes in twelve buckets, which have room for `least` requests and up to four more.
fn discord(least: u64) -> Vec<Budget> {
    let bucket = |bucket: u64| {
        let routes = discord_routes().skip(bucket as usize).step_by(12).collect();
        (format!("b{bucket}"), least + bucket % 5, 1000 + 500 * (bucket % 4), routes)
    };
    (0..12).map(bucket).collect()
}

/// The first sixteen leave before an answer names a bucket: none has more than four of them.
#[test]
fn discord_has_forty_routes_in_twelve_buckets() {
    let budgets = discord(4);
    let exchanges = simulate(&budgets, BUCKETS, 16, 10);
    assert_eq!(refused(&exchanges), 0);
    assert_eq!(needless(&budgets, &exchanges, 2500, 10, 0), 0.0, "but for learning");
}

/// Slots before the first answer, for buckets that have less: no client can know. No more than those are
/// refused.
#[test]
fn the_first_burst_is_sent_before_anything_is_known() {
    let route = [("b0".into(), 3, 1000, discord_routes().take(1).collect())];
    assert_eq!([16, 1].map(|slots| refused(&simulate(&route, BUCKETS, slots, 10))), [13, 0]);
    assert_eq!([16, 32].map(|slots| refused(&simulate(&discord(1), BUCKETS, slots, 10))), [14, 13]);
}

/// Discord: a bucket is one for each channel.
#[test]
fn a_bucket_of_one_channel_holds_no_other() {
    let mut rig = Rig::new();
    let says = |left: u32| {
        format!("x-ratelimit-remaining: {left}\nx-ratelimit-reset-after: 9\nx-ratelimit-bucket: b\n")
    };
    let [one, other] = ["/api/v10/channels/1000001/r", "/api/v10/channels/1000002/r"];
    for (path, left) in [(one, 5), (other, 5), (one, 0), (other, 5)] {
        rig.ask(10.0, &[path]);
        rig.answer(20.0, path, 200.0, &says(left));
    }
    assert_eq!(rig.budgets(30.0), [("b/1000001".into(), Some(0.0)), ("b/1000002".into(), Some(5.0))]);
    assert_eq!(rig.ask(30.0, &[one, other]), [other]);
}

/// The kinds of notices since the last look.
fn kinds(boundary: &mut Boundary) -> Vec<String> {
    let Value::List(notices) = boundary.take_notices() else { return Vec::new() };
    let kind = |notice: &Value| match notice {
        Value::Map(entries) => entries.iter().find_map(|(key, value)| match value {
            Value::Text(text) if key == "kind" => Some(text.clone()),
            _ => None,
        }),
        _ => None,
    };
    notices.iter().filter_map(kind).collect()
}

/// An engine with requests of one scope, by their URLs.
pub struct Rig {
    pub boundary: Boundary,
    scope: f64,
    pub flying: Vec<(f64, String)>,
}

impl Rig {
    pub fn new() -> Self {
        let options = r#"{ "seed": 1, "maxInFlight": 8, "defaults": { "concurrency": 8, "delay": 0 } }"#;
        let mut boundary = Boundary::new(json(options)).unwrap();
        let scope = boundary.scope("api.example");
        Self { boundary, scope, flying: Vec::new() }
    }

    /// Hands requests in; gives the paths of those that leave.
    pub fn ask(&mut self, now: f64, paths: &[&str]) -> Vec<String> {
        for path in paths {
            let ticket = self.boundary.submit(now, self.scope, 1.0, 0.0, 0.0);
            self.boundary.route(now, ticket, "GET", &format!("https://api.example{path}"));
            self.flying.push((ticket, (*path).to_string()));
        }
        self.poll(now)
    }

    pub fn poll(&mut self, now: f64) -> Vec<String> {
        let mut left = Vec::new();
        loop {
            let ticket = self.boundary.poll(now);
            let Some((_, path)) = self.flying.iter().find(|&&(known, _)| known == ticket) else { break };
            left.push(path.clone());
        }
        left
    }

    /// The first request in flight of this path is answered.
    pub fn answer(&mut self, now: f64, path: &str, status: f64, lines: &str) -> Vec<String> {
        let place = self.flying.iter().position(|(_, known)| known == path).unwrap();
        let (ticket, _) = self.flying.remove(place);
        let wall_ms = 1.8e12 + now;
        let outcome = Outcome { lines, wall_ms, ..Outcome::new(status, 10.0, f64::NAN, 0) };
        let settled = self.boundary.settle_unrouted(now, ticket, &outcome).unwrap_or_else(|| {
            self.boundary.route(now, ticket, "GET", &format!("https://api.example{path}"));
            self.boundary.settle(now, ticket, &outcome)
        });
        assert_eq!(settled, Settled::Over);
        let kinds = kinds(&mut self.boundary);
        if kinds.contains(&"budgets".into()) {
            for (ticket, path) in &self.flying {
                self.boundary.route(now, *ticket, "GET", &format!("https://api.example{path}"));
            }
        }
        kinds
    }

    pub fn budgets(&self, now: f64) -> Vec<(String, Option<f64>)> {
        let stats = self.boundary.scope_stats_at(now, self.scope).unwrap();
        stats.budgets.into_iter().flatten().map(|(name, budget)| (name, budget.quota_left)).collect()
    }
}

const A: &str = "ratelimit: \"a\";r=0;t=60\n";
const B: &str = "ratelimit: \"b\";r=9;t=60\n";

#[test]
fn one_policy_is_the_hosts() {
    let mut rig = Rig::new();
    rig.ask(0.0, &["/a"]);
    assert!(rig.answer(10.0, "/a", 200.0, A).is_empty());
    assert!(rig.ask(20.0, &["/b"]).is_empty(), "all are held, as one name says nothing of others");
    assert_eq!(rig.poll(61_000.0), ["/b"]);
    assert!(rig.answer(61_010.0, "/b", 200.0, B).contains(&"budgets".into()));
    assert_eq!(rig.ask(61_020.0, &["/a", "/b"]).len(), 2);
    rig.answer(61_030.0, "/a", 200.0, A);
    rig.answer(61_030.0, "/b", 200.0, B);
    assert_eq!(rig.ask(61_040.0, &["/a", "/b", "/b"]), ["/b", "/b"]);
    assert_eq!(rig.budgets(61_040.0), [("a".into(), Some(0.0)), ("b".into(), Some(7.0))]);
    let names: Vec<_> = rig.boundary.stats_at(61_040.0).scopes.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["api.example"], "budgets are inside");
}

/// `OpenAI`: what spends no tokens is not held where none are left.
#[test]
fn tokens_hold_what_spends_tokens() {
    let mut rig = Rig::new();
    let models = "x-ratelimit-remaining-requests: 59\nx-ratelimit-reset-requests: 1s\n";
    let chat = [models, "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 6s\n"].concat();
    rig.ask(0.0, &["/v1/models", "/v1/chat"]);
    rig.answer(10.0, "/v1/models", 200.0, models);
    assert_eq!(rig.answer(11.0, "/v1/chat", 200.0, models), Vec::<String>::new());
    rig.ask(12.0, &["/v1/chat"]);
    assert_eq!(rig.answer(20.0, "/v1/chat", 200.0, &chat), ["budgets"]);
    assert_eq!(rig.ask(30.0, &["/v1/models"]), ["/v1/models"]);
    rig.answer(40.0, "/v1/models", 200.0, models);
    assert_eq!(rig.ask(50.0, &["/v1/chat", "/v1/models"]), ["/v1/models"]);
    assert_eq!(rig.poll(6021.0), ["/v1/chat"]);
}

const CORE: &str = "x-ratelimit-remaining: 50\nx-ratelimit-reset: 60\nx-ratelimit-resource: core\n";
const SEARCH: &str = "x-ratelimit-remaining: 0\nx-ratelimit-reset: 60\nx-ratelimit-resource: search\n";

/// A request of an unknown budget goes alone; then all that waits moves to it.
#[test]
fn a_waiting_request_is_moved_when_its_route_is_learned() {
    let mut rig = Rig::new();
    rig.ask(0.0, &["/search/a"]);
    assert_eq!(rig.answer(10.0, "/search/a", 200.0, CORE), ["budgets"]);
    assert_eq!(rig.ask(20.0, &["/user", "/user", "/user", "/search/a"]), ["/user", "/search/a"]);
    rig.answer(30.0, "/search/a", 200.0, SEARCH);
    assert!(rig.ask(31.0, &["/search/a"]).is_empty());
    rig.answer(40.0, "/user", 200.0, CORE);
    assert_eq!(rig.poll(41.0), ["/user", "/user"]);
    // The server changes its mind: search is core now, and what waits for the other goes.
    rig.answer(50.0, "/user", 200.0, SEARCH);
    assert!(rig.ask(51.0, &["/user"]).is_empty());
    rig.answer(52.0, "/user", 200.0, CORE);
    assert_eq!(rig.poll(53.0), ["/user"]);
    assert_eq!(rig.poll(60_051.0), ["/search/a"]);
}

/// The secondary limit is for all, and a refusal of a resource is for that one.
#[test]
fn refusals_of_a_budget_are_no_step_back_for_others() {
    let mut rig = Rig::new();
    rig.ask(0.0, &["/user"]);
    rig.answer(10.0, "/user", 200.0, CORE);
    rig.ask(20.0, &["/user", "/search/a"]);
    rig.answer(30.0, "/user", 200.0, CORE);
    rig.answer(30.0, "/search/a", 403.0, SEARCH);
    let stats = rig.boundary.scope_stats_at(31.0, rig.scope).unwrap();
    assert_eq!((stats.backoff_step, stats.hold_until), (0, None));
    assert_eq!(rig.ask(31.0, &["/user", "/search/a"]), ["/user"]);
    rig.answer(40.0, "/user", 403.0, &[CORE, "retry-after: 30\n"].concat());
    let stats = rig.boundary.scope_stats_at(41.0, rig.scope).unwrap();
    assert_eq!(stats.backoff_step, 1);
    assert!((31_040.0..32_040.0).contains(&stats.hold_until.unwrap()), "those refused come back spread");
    assert!(rig.ask(50.0, &["/user"]).is_empty());
}

#[test]
fn routes_outlive_the_process() {
    let mut rig = Rig::new();
    rig.ask(0.0, &["/user"]);
    rig.answer(10.0, "/user", 200.0, CORE);
    rig.ask(20.0, &["/user", "/search/a"]);
    rig.answer(30.0, "/user", 200.0, CORE);
    rig.answer(30.0, "/search/a", 200.0, SEARCH);
    let snapshot = rig.boundary.snapshot(1000.0, 1.8e12);
    let mut next = Rig::new();
    next.boundary.restore(snapshot, 0.0, 1.8e12 + 10_000.0).unwrap();
    next.scope = next.boundary.scope("api.example");
    assert_eq!(kinds(&mut next.boundary), ["budgets"]);
    assert_eq!(
        next.ask(0.0, &["/user", "/user", "/search/a"]),
        ["/user", "/user"],
        "both at once: it is known"
    );
    assert_eq!(next.budgets(1.0), [("core".into(), Some(48.0)), ("search".into(), Some(0.0))]);
    // A driver that has not yet heard of the budgets names no route.
    let mut silent = Rig::new();
    silent.boundary.restore(rig.boundary.snapshot(1000.0, 1.8e12), 0.0, 1.8e12 + 10_000.0).unwrap();
    silent.scope = silent.boundary.scope("api.example");
    let at_once = silent.boundary.send_at_once(0.0, silent.scope, 1.0, 0.0);
    assert!(at_once.is_nan() || at_once < 0.0, "{at_once}");
    let ticket = silent.boundary.submit(0.0, silent.scope, 1.0, 0.0, 0.0);
    assert_ne!(silent.boundary.poll(1.0), ticket);
    silent.boundary.route(2.0, ticket, "GET", "https://api.example/user");
    assert_eq!(silent.boundary.poll(2.0), ticket);
}

/// The engine says whose route it wants, so no host keeps a list of scopes.
#[test]
fn a_route_is_wanted_once() {
    let mut rig = Rig::new();
    let url = "https://api.example/user";
    let [first, early] = [0.0; 2].map(|now| rig.boundary.send_at_once(now, rig.scope, 1.0, 0.0));
    let wants =
        |rig: &Rig, ticket| [false, true].map(|has_fields| rig.boundary.wants_route(ticket, has_fields));
    assert_eq!(wants(&rig, first), [false, true], "its answer may be the first to name a budget");
    rig.boundary.route(10.0, first, "GET", url);
    let outcome = Outcome { lines: CORE, wall_ms: 1.8e12, ..Outcome::new(200.0, 10.0, f64::NAN, 0) };
    rig.boundary.settle(10.0, first, &outcome);
    assert_eq!(wants(&rig, first), [false, false], "it is over");
    assert_eq!(wants(&rig, early), [true, true], "it left before budgets were known");
    rig.boundary.route(20.0, early, "GET", url);
    assert_eq!(wants(&rig, early), [false, false]);
    assert_eq!(rig.boundary.send_at_once(20.0, rig.scope, 1.0, 0.0), WAIT, "its route is to be known first");
    let waits = rig.boundary.submit(20.0, rig.scope, 1.0, 0.0, 0.0);
    assert_eq!(wants(&rig, waits), [true, true]);
    let other = rig.boundary.scope("other");
    let both = rig.boundary.submit_many(20.0, &[rig.scope, other], &[1.0], 0.0, 0.0);
    assert_eq!(wants(&rig, both), [false, false], "a request of several scopes has no budgets of one");
}

#[test]
fn an_answer_that_tells_of_several_budgets_needs_its_route_first() {
    let mut rig = Rig::new();
    let url = "https://api.example/user";
    let mut now = 0.0;
    let mut ends = |lines, has_route| {
        now += 100_000.0;
        let ticket = rig.boundary.submit(now, rig.scope, 1.0, 0.0, 0.0);
        assert_eq!(rig.boundary.poll(now), ticket);
        if has_route {
            rig.boundary.route(now, ticket, "GET", url);
        }
        let outcome = Outcome { lines, wall_ms: 1.8e12, ..Outcome::new(200.0, 1.0, f64::NAN, 0) };
        let before = rig.boundary.scope_stats(now, rig.scope);
        let settled = rig.boundary.settle_unrouted(now, ticket, &outcome);
        let is_as_before = before == rig.boundary.scope_stats(now, rig.scope);
        assert_eq!(is_as_before, settled.is_none());
        rig.boundary.settle(now, ticket, &Outcome::new(f64::NAN, f64::NAN, f64::NAN, 0));
        settled
    };
    let other = "ratelimit: \"a\";r=8;t=60\n";
    for lines in ["", "retry-after: 0\n", other, "ratelimit: \"a\";r=7;t=60\n"] {
        assert_eq!(ends(lines, false), Some(Settled::Over), "one budget is the host's");
    }
    assert_eq!([ends(B, false), ends(B, false)], [None, None], "another name");
    assert_eq!(ends(CORE, false), None, "a resource is one of several");
    assert_eq!(ends(B, true), Some(Settled::Over));
    assert_eq!(ends(other, false), None, "they are known");
    assert_eq!(
        rig.boundary.settle_unrouted(0.0, 1e9, &Outcome::new(200.0, 1.0, 1.0, 0)),
        Some(Settled::Unknown)
    );
}

/// Requests with a cost of zero, cancelled, retried and with a delay of their own keep the books right.
#[test]
fn every_way_out_gives_back() {
    let mut rig = Rig::new();
    rig.ask(0.0, &["/user"]);
    rig.answer(10.0, "/user", 200.0, CORE);
    let (now, url) = (20.0, "https://api.example/other");
    let late = rig.boundary.submit(now, rig.scope, 1.0, 0.0, 500.0);
    rig.boundary.route(now, late, "GET", url);
    let first = rig.boundary.submit(now, rig.scope, 1.0, 0.0, 0.0);
    rig.boundary.route(now, first, "GET", url);
    let waits = rig.boundary.submit(now, rig.scope, 1.0, 0.0, 0.0);
    rig.boundary.route(now, waits, "GET", url);
    let free = rig.boundary.submit(now, rig.scope, 0.0, 0.0, 0.0);
    rig.boundary.route(now, free, "GET", url);
    assert_eq!(rig.boundary.poll(now), first);
    rig.boundary.cancel(now, waits);
    let refused = Outcome { lines: CORE, retry_delay_ms: 5.0, ..Outcome::new(500.0, 1.0, f64::NAN, 0) };
    assert_eq!(rig.boundary.settle(30.0, first, &refused), Settled::Again);
    assert_eq!(rig.boundary.poll(40.0), first, "it keeps its age");
    assert_eq!(rig.boundary.poll(40.0), free, "known by now: no longer one at a time");
    assert_eq!(rig.boundary.poll(520.0), late);
    let stats = rig.boundary.scope_stats_at(520.0, rig.scope).unwrap();
    let Some([(_, core)]) = stats.budgets.as_deref() else { panic!("{:?}", stats.budgets) };
    assert_eq!((core.in_flight, core.waiting, stats.in_flight, stats.waiting), (3, 0, 3, 0));
    for ticket in [free, first] {
        let good = Outcome { lines: CORE, ..Outcome::new(200.0, 1.0, f64::NAN, 0) };
        assert_eq!(rig.boundary.settle(530.0, ticket, &good), Settled::Over);
    }
    rig.boundary.cancel(540.0, late);
    let stats = rig.boundary.scope_stats_at(550.0, rig.scope).unwrap();
    assert_eq!((stats.budgets.unwrap()[0].1.in_flight, stats.in_flight, stats.waiting), (0, 0, 0));
}

/// Paths without end: what is kept of them has a bound.
#[test]
fn slugs_without_end_do_not_fill_the_memory() {
    let mut rig = Rig::new();
    for n in 0..3000 {
        let path = format!("/slug{}x/{n}", n % 1500);
        let now = f64::from(n) * 10.0;
        assert_eq!(rig.ask(now, &[&path]).len(), 1);
        let lines =
            format!("x-ratelimit-remaining: 9\nx-ratelimit-reset: 60\nx-ratelimit-resource: r{}\n", n % 3);
        rig.answer(now + 5.0, &path, 200.0, &lines);
    }
    let Value::Map(snapshot) = rig.boundary.snapshot(40_000.0, f64::NAN) else { panic!() };
    assert!(format!("{snapshot:?}").len() < 100_000);
    assert!(rig.boundary.scopes() < 3000.0, "{}", rig.boundary.scopes());
}

/// The answer that first names a budget holds its own route, whatever is said beside the name.
#[test]
fn the_answer_that_splits_holds_its_own_route() {
    for names in ["x-ratelimit-resource: core\n", "x-ratelimit-bucket: abc\n"] {
        for left in ["", "x-ratelimit-remaining: 0\n", "x-ratelimit-remaining: 40\nx-ratelimit-reset: 60\n"] {
            for status in [403.0, 429.0, 503.0] {
                let mut rig = Rig::new();
                rig.ask(0.0, &["/a"]);
                let lines = [names, left, "retry-after: 6\n"].concat();
                rig.answer(10.0, "/a", status, &lines);
                assert!(rig.ask(20.0, &["/a"]).is_empty(), "{status} {lines}");
                assert!(rig.poll(6009.0).is_empty(), "{status} {lines}");
                assert_eq!(rig.poll(7300.0), ["/a"], "{status} {lines}");
            }
        }
    }
}

/// Fifty answers of one budget, and a refusal for an hour: of twelve routes that no answer has named one is
/// asked, and the next five seconds after that is refused, too.
#[test]
fn routes_that_nothing_is_known_of_are_asked_one_at_a_time() {
    let mut rig = Rig::new();
    let core = |left: u32| {
        format!("x-ratelimit-remaining: {left}\nx-ratelimit-reset: 3600\nx-ratelimit-resource: core\n")
    };
    for n in 0..50 {
        let now = f64::from(n) * 100.0;
        rig.ask(now, &["/user"]);
        rig.answer(now + 10.0, "/user", 200.0, &core(50 - n));
    }
    rig.ask(5000.0, &["/user"]);
    rig.answer(5010.0, "/user", 429.0, &[&core(0), "retry-after: 3600\n"].concat());
    let unseen: Vec<String> = (0..12).map(|n| format!("/word{}/list", char::from(b'a' + n))).collect();
    let paths: Vec<&str> = unseen.iter().map(|path| &**path).collect();
    assert_eq!(rig.ask(5020.0, &paths), [paths[0]]);
    assert!(rig.poll(5100.0).is_empty(), "one at a time");
    for (turn, path) in paths.iter().enumerate().take(11) {
        let now = 5200.0 + turn as f64 * 5010.0;
        rig.answer(now, path, 429.0, &[&core(0), "retry-after: 3600\n"].concat());
        assert!(rig.poll(now + 4999.0).is_empty(), "{path}");
        assert_eq!(rig.poll(now + 5001.0), [paths[turn + 1]]);
    }
    rig.answer(70_000.0, paths[11], 200.0, SEARCH);
    assert!(rig.ask(80_000.0, &paths[..3]).is_empty(), "they are known");
}

/// A host may not say the routes of its requests.
#[test]
fn without_a_route_all_are_held() {
    let options = r#"{ "seed": 1, "defaults": { "concurrency": 8, "delay": 0 } }"#;
    for lines in [SEARCH, "retry-after: 60\nx-ratelimit-bucket: b\n"] {
        let mut boundary = Boundary::new(json(options)).unwrap();
        let scope = boundary.scope("api.example");
        let ticket = boundary.send_at_once(0.0, scope, 1.0, 0.0);
        let outcome = Outcome { lines, ..Outcome::new(429.0, 10.0, f64::NAN, 0) };
        assert_eq!(boundary.settle(10.0, ticket, &outcome), Settled::Over);
        let next = boundary.submit(20.0, scope, 1.0, 0.0, 0.0);
        assert_ne!(boundary.poll(59_000.0), next, "{lines}");
        assert_eq!(boundary.poll(70_000.0), next);
    }
}

/// Fields that tell of a limit: what is left is `LEFT`, the reset `RESET` seconds from now.
const FAMILIES: [&str; 14] = [
    "",
    "ratelimit-limit: 9\nratelimit-remaining: LEFT\nratelimit-reset: RESET\n",
    "ratelimit: \"a\";r=LEFT;t=RESET\n",
    "ratelimit: limit=9, remaining=LEFT, reset=RESET\n",
    "x-ratelimit-limit: 9\nx-ratelimit-remaining: LEFT\nx-ratelimit-reset: RESET\n",
    "x-rate-limit-limit: 9\nx-rate-limit-remaining: LEFT\nx-rate-limit-reset: EPOCH\n",
    "x-ratelimit-remaining: LEFT\nx-ratelimit-reset: EPOCH\nx-ratelimit-resource: NAME\n",
    "x-ratelimit-resource: NAME\n",
    "x-ratelimit-bucket: NAME\n",
    "x-ratelimit-remaining: LEFT\nx-ratelimit-reset-after: RESET.5\nx-ratelimit-bucket: NAME\n",
    "x-ratelimit-remaining: LEFT\nx-ratelimit-bucket: NAME\nx-ratelimit-scope: shared\n",
    "x-ratelimit-remaining-requests: LEFT\nx-ratelimit-reset-requests: RESETs\n",
    "x-ratelimit-remaining-tokens: LEFT\nx-ratelimit-reset-tokens: RESETms\n",
    "anthropic-ratelimit-tokens-remaining: LEFT\nanthropic-ratelimit-tokens-reset: ISO\n",
];

/// Whatever is said in whatever words: no request whose route is known leaves before the instant that the
/// last answer of its route named.
#[test]
fn no_request_leaves_before_its_own_answer_said() {
    for seed in 1..=4000_u64 {
        let mut draws = seed;
        let mut pick = move |below: u64| {
            draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (draws >> 33) % below
        };
        let mut rig = Rig::new();
        let paths = ["/a", "/b/c", "/search", "/channels/1/m"];
        let (mut held, mut now) = ([0.0_f64; 4], 0.0_f64);
        for _ in 0..12 {
            now += pick(4000) as f64;
            let turn = pick(4) as usize;
            let left = rig.ask(now, &paths[turn..=turn]);
            let of = |path: &str| paths.iter().position(|&known| known == path).unwrap();
            for path in &left {
                let until = held[of(path)];
                assert!(now >= until, "seed {seed}: {path} at {now}, held until {until}");
            }
            for path in left.clone() {
                let is_alone = left.iter().filter(|&other| *other == path).count() == 1;
                let of = of(&path);
                let status = [200, 200, 200, 403, 429, 503, 500][pick(7) as usize];
                let reset = pick(20);
                let family = FAMILIES[pick(FAMILIES.len() as u64) as usize];
                let epoch = (1_800_000_000_000_u64 + now as u64) / 1000 + reset;
                let mut lines = family
                    .replace("LEFT", &pick(3).to_string())
                    .replace("RESET", &reset.to_string())
                    .replace("EPOCH", &epoch.to_string())
                    .replace("ISO", "2027-01-15T08:00:30Z")
                    .replace("NAME", ["one", "two"][pick(2) as usize]);
                if pick(2) == 0 {
                    let _ = writeln!(lines, "retry-after: {}", pick(20));
                }
                now += 5.0;
                let wall_ms = Some(1_800_000_000_000 + now as i64);
                let hints = Hints::from_lines(&lines, Context { status, wall_ms, ..Context::default() });
                let wait = hints.delay_ms.filter(|_| hints.applies_to.is_none());
                // Of two good answers of one flight, the last says whose budget it is.
                if status >= 400 || is_alone {
                    held[of] = held[of].max(now + wait.unwrap_or(0) as f64);
                }
                rig.answer(now, &path, f64::from(status), &lines);
            }
        }
    }
}

/// A used-up budget outlives any number of scopes that come after it.
#[test]
fn a_scope_that_holds_is_not_forgotten_beyond_the_most_scopes() {
    let options = r#"{ "seed": 1, "maxScopes": 50, "defaults": { "concurrency": 8, "delay": 0 } }"#;
    let mut rig = Rig::new();
    rig.boundary = Boundary::new(json(options)).unwrap();
    rig.scope = rig.boundary.intern("api.example");
    rig.ask(0.0, &["/search/a"]);
    rig.answer(10.0, "/search/a", 429.0, &[SEARCH, "retry-after: 3600\n"].concat());
    for n in 0..1000 {
        let now = 20.0 + f64::from(n);
        let other = rig.boundary.intern(&format!("h{n}.example"));
        let ticket = rig.boundary.send_at_once(now, other, 1.0, 0.0);
        rig.boundary.settle(now, ticket, &Outcome::new(200.0, 10.0, f64::NAN, 0));
    }
    rig.scope = rig.boundary.intern("api.example");
    assert!(rig.ask(5000.0, &["/search/a"; 10]).is_empty());
}

/// A host that names budgets without end: those that it named last are kept, and those that are used up.
#[test]
fn budgets_without_end_are_bounded() {
    let mut rig = Rig::new();
    let name = |rig: &mut Rig, n: u32, name: &str, left: u32| {
        let (now, path) = (f64::from(n) * 10.0, format!("/word{}/list", n % 7));
        assert_eq!(rig.ask(now, &[&path]).len(), 1, "{n}");
        let name = format!("x-ratelimit-resource: {name}\n");
        let lines = format!("{name}x-ratelimit-remaining: {left}\nx-ratelimit-reset: 7200\n");
        rig.answer(now + 5.0, &path, 200.0, &lines);
    };
    let spent = "x-ratelimit-resource: spent\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 7200\n";
    rig.ask(0.0, &["/spent"]);
    rig.answer(1.0, "/spent", 200.0, spent);
    let mut bytes = 0;
    for n in 1..100_000 {
        let each = if n % 500 == 0 { "favourite".into() } else { format!("r{n}") };
        let more = measure(|| name(&mut rig, n, &each, 9)).bytes_current;
        bytes += if n > 5000 { more } else { 0 };
    }
    assert!(rig.boundary.scopes() < 1100.0, "{}", rig.boundary.scopes());
    assert!(bytes.abs() < 10_000, "{bytes} bytes more after 95,000 names");
    let budgets = rig.budgets(1_000_000.0);
    assert_eq!(budgets.len(), 1000);
    let left = |name: &str| budgets.iter().find(|(known, _)| known == name).map(|(_, left)| *left);
    assert_eq!(left("spent"), Some(Some(0.0)), "it holds");
    assert_eq!(left("favourite"), Some(Some(8.0)), "named every five seconds");
    for n in 99_100..100_000 {
        assert!(n % 500 == 0 || left(&format!("r{n}")).is_some(), "r{n}");
    }
    assert!(rig.ask(1_000_000.0, &["/spent"]).is_empty());
}

/// The same where each request goes to a route of its own: routes are forgotten like other idle scopes.
#[test]
fn routes_without_end_are_bounded() {
    let mut rig = Rig::new();
    let word = |n: u32| {
        (0..5).map(|place| char::from(b'a' + (n / 26_u32.pow(place) % 26) as u8)).collect::<String>()
    };
    let (mut most, mut bytes) = (0.0_f64, 0);
    for n in 0..15_000 {
        let (now, path) = (f64::from(n) * 10.0, format!("/{}", word(n)));
        let lines =
            format!("x-ratelimit-resource: r{n}\nx-ratelimit-remaining: 9\nx-ratelimit-reset: 7200\n");
        let more = measure(|| {
            assert_eq!(rig.ask(now, &[&path]).len(), 1, "{n}");
            rig.answer(now + 5.0, &path, 200.0, &lines);
        });
        bytes += if n > 5000 { more.bytes_current } else { 0 };
        most = most.max(rig.boundary.scopes());
    }
    assert!(most < 2600.0, "{most} scopes");
    assert!(bytes.abs() < 100_000, "{bytes} bytes more after 10,000 routes");
}

/// Of a host with more used-up budgets than are kept, none is forgotten: what else it says is for all.
#[test]
fn a_budget_that_is_used_up_is_never_forgotten() {
    let mut rig = Rig::new();
    let mut held = Vec::new();
    for n in 0..3000 {
        let letter = |place: u32| char::from(b'a' + (n / 26_u32.pow(place) % 26) as u8);
        let (now, path) = (f64::from(n) * 10.0, format!("/{}{}{}", letter(0), letter(1), letter(2)));
        if rig.ask(now, &[&path]).is_empty() {
            break;
        }
        let name = format!("x-ratelimit-resource: r{n}\n");
        let lines = format!("{name}x-ratelimit-remaining: 0\nx-ratelimit-reset: 7200\n");
        rig.answer(now + 5.0, &path, 200.0, &lines);
        held.push(path);
    }
    assert_eq!(rig.budgets(40_000.0).len(), 1000);
    let paths: Vec<&str> = held.iter().map(|path| &**path).collect();
    assert!(rig.ask(50_000.0, &paths).is_empty(), "each of them is used up, or the host is");
}

const FREE: &str = r#"{ "defaults": { "delay": 0, "slotDelay": 0, "jitter": false, "concurrency": 8 } }"#;

/// Those whose budget is not known keep their cost back in each budget, until they are over. One that was in
/// flight when the first answer named a budget, and ended without a word, was kept back for ever.
#[test]
fn a_request_in_flight_at_the_split_is_over_when_it_ends() {
    let mut boundary = Boundary::new(json(FREE)).unwrap();
    let scope = boundary.scope("api.example");
    let [first, second] = [0.0, 1.0].map(|now| boundary.send_at_once(now, scope, 1.0, 0.0));
    let lines = "x-ratelimit-resource: a\nx-ratelimit-remaining: 1\nx-ratelimit-reset: 30\n";
    boundary.route(10.0, first, "GET", "https://api.example/a");
    let outcome = Outcome { lines, wall_ms: 1.8e12, ..Outcome::new(200.0, 10.0, f64::NAN, 0) };
    assert_eq!(boundary.settle(10.0, first, &outcome), Settled::Over);
    assert_eq!(boundary.settle(20.0, second, &Outcome::new(200.0, 19.0, f64::NAN, 0)), Settled::Over);
    let third = boundary.submit(30.0, scope, 1.0, 0.0, 0.0);
    boundary.route(30.0, third, "GET", "https://api.example/a");
    assert_eq!(boundary.poll(30.0), third, "one is left of a");
}

/// Where a server says what is left, requests leave as they do where it says no word, until it is used up.
#[test]
fn a_quota_of_the_server_is_counted_also_where_no_request_waits() {
    let mut boundary = Boundary::new(json(FREE)).unwrap();
    let scope = boundary.scope("api.example");
    let first = boundary.send_at_once(0.0, scope, 1.0, 0.0);
    let lines = "ratelimit: \"default\";r=2;t=30\n";
    let outcome = Outcome { lines, wall_ms: 1.8e12, ..Outcome::new(200.0, 10.0, f64::NAN, 0) };
    assert_eq!(boundary.settle(10.0, first, &outcome), Settled::Over);
    for now in [20.0, 21.0] {
        assert!(boundary.send_at_once(now, scope, 1.0, 0.0) >= 0.0);
    }
    assert_eq!(boundary.send_at_once(22.0, scope, 1.0, 0.0), WAIT);
    let last = boundary.submit(22.0, scope, 1.0, 0.0, 0.0);
    assert_eq!((boundary.poll(22.0), boundary.wake_at()), (WAIT, 30_010.0));
    assert_eq!(boundary.poll(30_010.0), last);
}
