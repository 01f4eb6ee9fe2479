//! Servers with several budgets, in virtual time: GitHub's resources and Discord's buckets. None is refused,
//! and no request waits for a budget that is not its own.
//!
//! What the servers assume is theirs to break, too: a budget that changes, names that go, a server that says
//! one name only.

use std::collections::{BTreeMap, VecDeque};

use autothrottle::{
    Boundary, Value,
    boundary::{Outcome, Settled},
};

/// From send to the server, and back again.
const WAY: u64 = 40;

/// One budget of a server: a number a window, which begins with its first request.
#[derive(Clone, Debug)]
struct Budget {
    name: &'static str,
    limit: u64,
    window: u64,
    used: u64,
    until: u64,
}

impl Budget {
    fn new(name: &'static str, limit: u64, window: u64) -> Self {
        Self { name, limit, window, used: 0, until: 0 }
    }

    fn left(&self, now: u64) -> u64 {
        if now >= self.until { self.limit } else { self.limit - self.used }
    }

    /// Whether a request is served.
    fn take(&mut self, now: u64) -> bool {
        if now >= self.until {
            let until = now + self.window;
            let is_whole = self.window >= 60_000;
            (self.used, self.until) = (0, if is_whole { until.div_ceil(1000) * 1000 } else { until });
        }
        let is_served = self.used < self.limit;
        self.used += u64::from(is_served);
        is_served
    }
}

/// A server: from a URL to its budget, and how it says so.
struct Server {
    budgets: BTreeMap<String, Budget>,
    of: fn(&str) -> (String, Budget),
    says: fn(&Budget, u64) -> String,
}

/// What came of a run.
#[derive(Debug, Default)]
struct Run {
    refused: usize,
    served: usize,
    /// Milliseconds in which a request waited although its own budget had had room for a round trip.
    needless: u64,
    /// The last of them.
    needless_until: u64,
    took: u64,
}

impl Server {
    fn answer(&mut self, url: &str, now: u64) -> (f64, String) {
        let (key, new) = (self.of)(url);
        let budget = self.budgets.entry(key).or_insert(new);
        let status = if budget.take(now) { 200.0 } else { 429.0 };
        (status, (self.says)(budget, now))
    }

    fn left(&self, url: &str, now: u64) -> u64 {
        let (key, new) = (self.of)(url);
        self.budgets.get(&key).unwrap_or(&new).left(now)
    }

    /// Sends all of it through an engine with this number of slots.
    fn serve(&mut self, boundary: &mut Boundary, requests: &[(&str, String)]) -> Run {
        let scope = boundary.intern("api.example");
        let mut run = Run::default();
        let mut pending: BTreeMap<u64, (&str, &str)> = BTreeMap::new();
        let mut is_split = false;
        let methods: BTreeMap<&str, &str> =
            requests.iter().map(|(method, url)| (url.as_str(), *method)).collect();
        for (method, url) in requests {
            let ticket = boundary.submit(0.0, scope, 1.0, 0.0, 0.0);
            pending.insert(ticket as u64, (method, url));
        }
        // Arrival, ticket, URL; and the answers on their way back.
        let mut going: VecDeque<(u64, u64, &str)> = VecDeque::new();
        let mut coming: VecDeque<(u64, u64, &str, f64, String)> = VecDeque::new();
        // Since when each budget that requests wait for has room.
        let mut open: BTreeMap<String, u64> = BTreeMap::new();
        // These, with one URL each: read anew where a request has left.
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        let mut read_with = 0;
        let mut now = 0;
        loop {
            let at = now as f64;
            while going.front().is_some_and(|&(due, ..)| due <= now) {
                let (_, ticket, url) = going.pop_front().unwrap();
                let (status, lines) = self.answer(url, now);
                coming.push_back((now + WAY, ticket, url, status, lines));
            }
            while coming.front().is_some_and(|&(due, ..)| due <= now) {
                let (_, ticket, url, status, lines) = coming.pop_front().unwrap();
                if is_split {
                    // As hosts do it for what left before.
                    boundary.route(at, ticket as f64, methods[url], url);
                }
                let wall = [1.8e12 + at, f64::NAN];
                let outcome = Outcome::new(status, 2.0 * WAY as f64, f64::NAN, 0).with(&lines, &wall);
                let settled = boundary.settle(at, ticket as f64, &outcome);
                assert_ne!(settled, Settled::Unknown, "a ticket that is none");
                if status == 200.0 {
                    run.served += 1;
                } else {
                    run.refused += 1;
                }
                let notices = Value::from_notices(boundary);
                if notices.iter().any(|kind| kind == "budgets") {
                    is_split = true;
                    for (&ticket, (method, url)) in &pending {
                        boundary.route(at, ticket as f64, method, url);
                    }
                }
            }
            loop {
                let ticket = boundary.poll(at);
                if ticket < 0.0 {
                    break;
                }
                let (_, url) = pending.remove(&(ticket as u64)).expect("no retries here");
                going.push_back((now + WAY, ticket as u64, url));
            }
            // By the server's own books: what is left and not on its way.
            let flying = |url: &str| {
                let key = (self.of)(url).0;
                let going = going.iter().filter(|(.., other)| (self.of)(other).0 == key).count();
                going as u64
            };
            let is_full = boundary.in_flight() >= 16.0;
            if read_with != pending.len() {
                read_with = pending.len();
                seen.clear();
                for (_, url) in pending.values() {
                    seen.entry((self.of)(url).0).or_insert(*url);
                }
            }
            open.retain(|key, _| seen.contains_key(key));
            let mut is_needless = false;
            for (key, url) in &seen {
                let left = self.left(url, now);
                if is_full || left == 0 || left <= flying(url) {
                    open.remove(key);
                    continue;
                }
                let since = *open.entry(key.clone()).or_insert(now);
                is_needless |= now > since + 2 * WAY;
            }
            let events = [going.front().map(|&(due, ..)| due), coming.front().map(|&(due, ..)| due)];
            let wake = boundary.wake_at();
            let wake = if wake.is_finite() { wake.ceil() as u64 } else { u64::MAX };
            // The server's own windows turn unseen.
            let next =
                events.into_iter().flatten().min().unwrap_or(u64::MAX).min(wake).clamp(now + 1, now + 10);
            if is_needless {
                run.needless += next - now;
                run.needless_until = next;
            }
            if pending.is_empty() && going.is_empty() && coming.is_empty() {
                run.took = now;
                break;
            }
            assert!(now < 1_000_000, "it ends: {run:?}, {} wait", pending.len());
            now = next;
        }
        run
    }
}

/// The kinds of notices since the last look.
trait Kinds {
    fn from_notices(boundary: &mut Boundary) -> Vec<String>;
}

impl Kinds for Value {
    fn from_notices(boundary: &mut Boundary) -> Vec<String> {
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
}

fn engine(slots: f64) -> Boundary {
    let settings = Value::object(vec![("concurrency", slots.into()), ("delay", 0.0.into())]);
    Boundary::new(Value::object(vec![
        ("seed", 1.0.into()),
        ("concurrency", slots.into()),
        ("defaults", settings),
    ]))
    .unwrap()
}

fn github() -> Server {
    Server {
        budgets: BTreeMap::new(),
        of: |url| {
            // Its windows end on whole seconds.
            let budget = if url.contains("/search/code") {
                Budget::new("code_search", 10, 60_000)
            } else if url.contains("/search/") {
                Budget::new("search", 30, 60_000)
            } else {
                Budget::new("core", 5000, 3_600_000)
            };
            (budget.name.into(), budget)
        },
        says: |budget, now| {
            // As GitHub says it: whole seconds since 1970. Its clock is the wall's.
            let reset = (1_800_000_000_000 + budget.until.max(now)).div_ceil(1000);
            format!(
                "x-ratelimit-limit: {}\nx-ratelimit-remaining: {}\nx-ratelimit-used: {}\n\
                 x-ratelimit-reset: {reset}\nx-ratelimit-resource: {}\n",
                budget.limit,
                budget.limit - budget.used,
                budget.used,
                budget.name
            )
        },
    }
}

/// Every repository is a path of its own; each third request is a search.
fn github_requests() -> Vec<(&'static str, String)> {
    let of = |n: u32| match n % 3 {
        0 => format!("https://api.example/search/{}?q={n}", ["code", "issues", "users"][n as usize / 3 % 3]),
        _ => format!("https://api.example/repos/owner{}/name{n}/issues", n % 7),
    };
    (0..600).map(|n| ("GET", of(n))).collect()
}

#[test]
fn github_has_three_resources() {
    let mut boundary = engine(16.0);
    let run = github().serve(&mut boundary, &github_requests());
    println!("github: {run:?}");
    assert_eq!((run.refused, run.served), (0, 600));
    assert!(run.needless_until < 1000, "but for learning: {run:?}");
}

/// Discord's buckets.
const NAMES: [&str; 12] = ["b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10", "b11"];

/// Forty routes, twelve buckets, each bucket for each of three channels.
fn discord() -> Server {
    Server {
        budgets: BTreeMap::new(),
        of: |url| {
            let route: usize = url.rsplit('/').next().unwrap()[1..].parse().unwrap();
            let channel = url.split('/').nth(6).unwrap();
            let bucket = route % 12;
            let budget = Budget::new(NAMES[bucket], 3 + bucket as u64 % 5, 1000 + 500 * (bucket as u64 % 4));
            (format!("{bucket} {channel}"), budget)
        },
        says: |budget, now| {
            let after = budget.until.saturating_sub(now);
            format!(
                "x-ratelimit-limit: {}\nx-ratelimit-remaining: {}\nx-ratelimit-reset-after: {}.{:03}\n\
                 x-ratelimit-bucket: {}\n",
                budget.limit,
                budget.limit - budget.used,
                after / 1000,
                after % 1000,
                budget.name
            )
        },
    }
}

fn discord_requests(channels: u32) -> Vec<(&'static str, String)> {
    let mut requests = Vec::new();
    for n in 0..20 {
        for route in 0..40 {
            let channel = 1_000_000 + (n + route) % channels;
            let letter = ["a", "b", "c", "d"][route as usize % 4];
            let url = format!("https://api.example/api/v10/channels/{channel}/{letter}/r{route}");
            requests.push((["GET", "POST"][route as usize % 2], url));
        }
    }
    requests
}

/// The bucket of a route is unknown until its first answer. So while one is used up and routes are unknown,
/// those wait for it: for a window of it, at most. Who knows the routes waits for no other's budget.
#[test]
fn discord_has_forty_routes_in_twelve_buckets() {
    for channels in [1, 3] {
        let mut boundary = engine(16.0);
        let run = discord().serve(&mut boundary, &discord_requests(channels));
        println!("discord, {channels} channels: {run:?}");
        assert_eq!((run.refused, run.served), (0, 800));
        let longest = 2500;
        assert!(run.needless_until < longest && run.needless <= 2000, "but for learning: {run:?}");
        let mut knowing = engine(16.0);
        knowing.restore(boundary.snapshot(run.took as f64, 1.8e12), 0.0, 1.9e12).unwrap();
        let known = discord().serve(&mut knowing, &discord_requests(channels));
        println!("the same, with its routes known: {known:?}");
        assert_eq!((known.refused, known.served), (0, 800));
        assert!(known.needless < 2 * WAY, "all of it together is no round trip: {known:?}");
        assert!(run.took * 100 <= known.took * 105, "learning costs no time: {run:?} {known:?}");
    }
}

/// Sixteen slots before the first answer, and the first sixteen are of one bucket, which has three: no client
/// can know. No more than those are refused.
#[test]
fn the_first_burst_is_sent_before_anything_is_known() {
    let mut requests = discord_requests(1);
    requests.sort_by_key(|(_, url)| url.clone());
    let run = discord().serve(&mut engine(16.0), &requests);
    println!("grouped: {run:?}");
    assert!(run.refused <= 13, "{run:?}");
    let run = discord().serve(&mut engine(1.0), &requests);
    println!("grouped, one slot: {run:?}");
    assert_eq!(run.refused, 0, "{run:?}");
}

/// An engine with requests of one scope, by their URLs.
struct Rig {
    boundary: Boundary,
    scope: f64,
    flying: Vec<(f64, String)>,
}

impl Rig {
    fn new() -> Self {
        let mut boundary = engine(8.0);
        let scope = boundary.scope("api.example");
        Self { boundary, scope, flying: Vec::new() }
    }

    /// Hands requests in; gives the paths of those that leave.
    fn ask(&mut self, now: f64, paths: &[&str]) -> Vec<String> {
        for path in paths {
            let ticket = self.boundary.submit(now, self.scope, 1.0, 0.0, 0.0);
            self.boundary.route(now, ticket, "GET", &format!("https://api.example{path}"));
            self.flying.push((ticket, (*path).to_string()));
        }
        self.poll(now)
    }

    fn poll(&mut self, now: f64) -> Vec<String> {
        let mut left = Vec::new();
        loop {
            let ticket = self.boundary.poll(now);
            let Some((_, path)) = self.flying.iter().find(|&&(known, _)| known == ticket) else { break };
            left.push(path.clone());
        }
        left
    }

    /// The first request in flight of this path is answered.
    fn answer(&mut self, now: f64, path: &str, status: f64, lines: &str) -> Vec<String> {
        let place = self.flying.iter().position(|(_, known)| known == path).unwrap();
        let (ticket, _) = self.flying.remove(place);
        self.boundary.route(now, ticket, "GET", &format!("https://api.example{path}"));
        let wall = [1.8e12 + now, f64::NAN];
        let outcome = Outcome::new(status, 10.0, f64::NAN, 0).with(lines, &wall);
        assert_eq!(self.boundary.settle(now, ticket, &outcome), Settled::Over);
        Value::from_notices(&mut self.boundary)
    }

    fn budgets(&self, now: f64) -> Vec<(String, Option<f64>)> {
        let stats = self.boundary.scope_stats_at(now, self.scope).unwrap();
        stats.budgets.into_iter().map(|(name, budget)| (name, budget.quota_left)).collect()
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
    assert_eq!(rig.budgets(61_040.0), [("b".into(), Some(7.0)), ("a".into(), Some(0.0))]);
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
    rig.ask(30.0, &["/v1/chat", "/v1/models"]);
    rig.answer(40.0, "/v1/chat", 200.0, &chat);
    rig.answer(40.0, "/v1/models", 200.0, models);
    assert_eq!(rig.ask(50.0, &["/v1/chat", "/v1/models"]), ["/v1/models"]);
    assert_eq!(rig.poll(6041.0), ["/v1/chat"]);
}

const CORE: &str = "x-ratelimit-remaining: 50\nx-ratelimit-reset: 60\nx-ratelimit-resource: core\n";
const SEARCH: &str = "x-ratelimit-remaining: 0\nx-ratelimit-reset: 60\nx-ratelimit-resource: search\n";

/// Whose budget is not known goes one at a time; then all that waits moves to it.
#[test]
fn what_waits_is_moved_when_its_route_is_learned() {
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
    assert_eq!((stats.backoff_step, stats.hold_until), (1, Some(31_040.0)));
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
    assert_eq!(Value::from_notices(&mut next.boundary), ["budgets"]);
    assert_eq!(
        next.ask(0.0, &["/user", "/user", "/search/a"]),
        ["/user", "/user"],
        "both at once: it is known"
    );
    assert_eq!(next.budgets(1.0), [("core".into(), Some(48.0)), ("search".into(), Some(0.0))]);
}

/// Requests with a cost of zero, cancelled, retried and with a delay of their own keep the books right.
#[test]
fn every_way_out_gives_back() {
    let mut rig = Rig::new();
    rig.ask(0.0, &["/user"]);
    rig.answer(10.0, "/user", 200.0, CORE);
    let (now, url) = (20.0, "https://api.example/user");
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
    let again = [f64::NAN, 5.0];
    let refused = Outcome::new(500.0, 1.0, f64::NAN, 0).with(CORE, &again);
    assert_eq!(rig.boundary.settle(30.0, first, &refused), Settled::Again);
    assert_eq!(rig.boundary.poll(40.0), first, "it keeps its age");
    assert_eq!(rig.boundary.poll(40.0), free, "known by now: no longer one at a time");
    assert_eq!(rig.boundary.poll(520.0), late);
    let stats = rig.boundary.scope_stats_at(520.0, rig.scope).unwrap();
    let [(_, core)] = &stats.budgets[..] else { panic!("{:?}", stats.budgets) };
    assert_eq!((core.in_flight, core.waiting, stats.in_flight, stats.waiting), (3, 0, 3, 0));
    for ticket in [free, first] {
        let wall = [f64::NAN; 2];
        let good = Outcome::new(200.0, 1.0, f64::NAN, 0).with(CORE, &wall);
        assert_eq!(rig.boundary.settle(530.0, ticket, &good), Settled::Over);
    }
    rig.boundary.cancel(540.0, late);
    let stats = rig.boundary.scope_stats_at(550.0, rig.scope).unwrap();
    assert_eq!((stats.budgets[0].1.in_flight, stats.in_flight, stats.waiting), (0, 0, 0));
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
