//! Hours and hours of virtual time: random settings against random servers, and what was typed is kept all
//! the while, to the microsecond. A usual run takes twenty hours; `SOAK_HOURS=10000 cargo test --release
//! soak` takes as many.
//!
//! Each send is held against what was typed: the delay, the rate, the slots, the quota, wherever a window
//! begins.

use std::collections::VecDeque;

use autothrottle::{
    Instant, Rng,
    simulate::{Exchange, Simulation},
};

const SERVERS: [&str; 8] = [
    r#""model": "token-bucket", "rate": 5, "depth": 5"#,
    r#""model": "token-bucket", "rate": 1, "depth": 30, "says": "retry-after""#,
    r#""model": "fixed-window", "limit": 100, "window": 60000, "says": "rate-limit""#,
    r#""model": "sliding-window", "limit": 20, "window": 10000"#,
    r#""model": "concurrency", "slots": 3, "service": 400"#,
    r#""model": "gcra", "rate": 3, "burst": 6, "failing": 0.05"#,
    r#""model": "nginx", "rate": 4, "burst": 10, "delay": true"#,
    r#""model": "token-bucket", "rate": 50, "depth": 100"#,
];

/// The typed settings; times in milliseconds, 0 for none.
#[derive(Debug)]
struct Typed {
    delay: u64,
    concurrency: usize,
    /// Requests a second.
    rate: u64,
    /// Requests in any ten seconds.
    quota: usize,
    more: &'static str,
}

const MORE: [&str; 5] = [
    "",
    r#", "backoff": false"#,
    r#", "autothrottle": true"#,
    r#", "autothrottle": { "targetConcurrency": 4 }, "followRateLimit": true"#,
    r#", "backoff": { "minDelay": 200, "maxDelay": 20000, "window": 5000 }"#,
];

impl Typed {
    fn draw(pick: &mut impl FnMut(u64) -> u64) -> Self {
        let rate = [0, 0, 2, 7][pick(4) as usize];
        Self {
            // A scope has the one or the other.
            delay: if rate > 0 { 0 } else { [100, 250, 1000, 3000][pick(4) as usize] },
            concurrency: 1 + pick(12) as usize,
            rate,
            quota: [0, 0, 15, 40][pick(4) as usize],
            more: MORE[pick(MORE.len() as u64) as usize],
        }
    }

    fn json(&self) -> String {
        let Self { delay, concurrency, rate, quota, more } = self;
        let pace = if *rate > 0 {
            format!(r#""rate": {rate}"#)
        } else {
            format!(r#""slotDelay": 0, "delay": {delay}"#)
        };
        let quota = match quota {
            0 => String::new(),
            limit => {
                format!(r#", "quota": {{ "limit": {limit}, "window": 10000, "strict": true }}"#)
            }
        };
        format!(
            r#"{{ "maxInFlight": 64, "defaults": {{ "jitter": false,
                "concurrency": {concurrency}, {pace}{quota}{more} }} }}"#
        )
    }

    /// Holds every send against it.
    fn check(&self, exchanges: &[Exchange], why: &str) {
        let (mut flying, mut recent) = (Vec::<u64>::new(), VecDeque::<u64>::new());
        let mut second = VecDeque::<u64>::new();
        let mut last = None;
        for one in exchanges {
            let sent = one.sent.micros();
            // `AutoThrottle` sets the delay itself.
            if let Some(last) = last.filter(|_| !self.more.contains("autothrottle")) {
                let delay = self.delay * 1000;
                assert!(sent - last >= delay, "{why}: {last} and {sent} are closer than {delay}");
            }
            last = Some(sent);
            // A rate makes up for late timers, by one request at most.
            while second.front().is_some_and(|&before| before + 1_000_000 <= sent) {
                second.pop_front();
            }
            second.push_back(sent);
            let most = self.rate as usize + 1;
            assert!(self.rate == 0 || second.len() <= most, "{why}: {} in a second by {sent}", second.len());
            flying.retain(|&answered| answered > sent);
            flying.push(one.answered.map_or(u64::MAX, Instant::micros));
            assert!(flying.len() <= self.concurrency, "{why}: {} in flight at {sent}", flying.len());
            while recent.front().is_some_and(|&before| before + 10_000_000 <= sent) {
                recent.pop_front();
            }
            recent.push_back(sent);
            assert!(self.quota == 0 || recent.len() <= self.quota, "{why}: {} by {sent}", recent.len());
        }
    }
}

#[test]
fn typed_settings_are_kept_for_hours() {
    let hours: u64 =
        std::env::var("SOAK_HOURS").map_or(20, |hours| hours.parse().expect("a number of hours"));
    let (mut sent, mut refused) = (0, 0);
    for hour in 0..hours {
        let mut rng = Rng::new(hour);
        let mut pick = |below: u64| (rng.draw().unit() * below as f64) as u64;
        let typed = Typed::draw(&mut pick);
        let server = SERVERS[pick(SERVERS.len() as u64) as usize];
        let latency = [5, 80, 700][pick(3) as usize];
        let json = format!(
            r#"{{ "server": {{ {server}, "jitter": 1 }}, "duration": 3600000, "seed": {hour},
                "network": {{ "latency": {latency}, "jitter": 20, "slow": 0.002, "slowBy": 400, "timerLag": 0.3,
                              "timerJitter": 2 }}, "throttle": {} }}"#,
            typed.json()
        );
        let simulation = Simulation::parse(serde_json::from_str(&json).expect(&json))
            .unwrap_or_else(|error| panic!("{error}: {json}"));
        let (trace, summary) = simulation.at_most(1_000_000).run().unwrap();
        typed.check(&trace.exchanges, &format!("hour {hour}, {typed:?}, {server}"));
        assert!(summary.served > 0, "hour {hour}: nothing was served with {typed:?} by {server}");
        sent += trace.exchanges.len();
        refused += summary.refused;
    }
    println!("{hours} hours, {sent} requests, {refused} refused");
}
