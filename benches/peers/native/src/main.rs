//! A decision natively, ours and governor's: nanoseconds and bytes, as rows in JSON.
//!
//! governor's check is one number per key, moved on; ours takes a slot, hears the answer and gives the slot
//! back. So there are two lines of ours, with a rate and open, and the count of what one task needs is said
//! beside it.

use std::{alloc, hint::black_box, num::NonZeroU32, sync::atomic, time};

use autothrottle::{Config, Engine, Feedback, Instant, Request, ScopeId};
use governor::{Quota, RateLimiter};

const KEYS: usize = 100_000;
const ROUNDS: usize = 7;

/// Counts what is allocated and not yet freed.
struct Counting;

static LIVE: atomic::AtomicUsize = atomic::AtomicUsize::new(0);

// SAFETY: it forwards, and adds up.
unsafe impl alloc::GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: alloc::Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), atomic::Ordering::Relaxed);
        unsafe { alloc::GlobalAlloc::alloc(&alloc::System, layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: alloc::Layout) {
        LIVE.fetch_sub(layout.size(), atomic::Ordering::Relaxed);
        unsafe { alloc::GlobalAlloc::dealloc(&alloc::System, pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn names() -> Vec<String> {
    (0..KEYS).map(|index| format!("host-{index}.example")).collect()
}

/// The least of some rounds, in nanoseconds for each of `count` calls.
fn least(count: usize, mut call: impl FnMut(usize)) -> f64 {
    let round = |_| {
        let start = time::Instant::now();
        (0..count).for_each(&mut call);
        start.elapsed().as_nanos() as f64 / count as f64
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

struct Line {
    name: &'static str,
    one: f64,
    many: f64,
    bytes: f64,
}

fn ours(name: &'static str, options: &str) -> Line {
    let before = LIVE.load(atomic::Ordering::Relaxed);
    let mut engine = Engine::new(Config::parse(serde_json::from_str(options).unwrap()).unwrap());
    let scopes: Vec<ScopeId> = names().iter().map(|name| engine.scope(name)).collect();
    // The time stands a second further on at each call, so that no call ever waits.
    let mut now = 0.0;
    let feedback = Feedback::response(200);
    let mut task = |scope: ScopeId| {
        now += 1000.0;
        let at = Instant::from_millis(now).unwrap();
        let ticket = engine.send_at_once(at, Request::new(&[scope])).unwrap().expect("nothing waits");
        black_box(engine.settle(at, ticket, &feedback));
    };
    let one = least(KEYS, |_| task(scopes[0]));
    let many = least(KEYS, |index| task(scopes[index]));
    let bytes = (LIVE.load(atomic::Ordering::Relaxed) - before) as f64 / KEYS as f64;
    Line { name, one, many, bytes }
}

fn governors() -> Line {
    let names = names();
    let before = LIVE.load(atomic::Ordering::Relaxed);
    let quota = Quota::per_second(NonZeroU32::MAX);
    let direct = RateLimiter::direct(quota);
    let keyed = RateLimiter::keyed(quota);
    let one = least(KEYS, |_| direct.check().expect("nothing waits"));
    let many = least(KEYS, |index| keyed.check_key(&names[index].as_str()).expect("nothing waits"));
    let bytes = (LIVE.load(atomic::Ordering::Relaxed) - before) as f64 / KEYS as f64;
    Line { name: "governor, check", one, many, bytes }
}

fn main() {
    let open = r#"{ "concurrency": 1000, "maxScopes": 1000000,
        "defaults": { "delay": 0, "slotDelay": 0, "jitter": false, "concurrency": 1000 } }"#;
    let rate = r#"{ "concurrency": 1000, "maxScopes": 1000000,
        "defaults": { "rate": 1000, "jitter": false, "concurrency": 1000 } }"#;
    let lines = [
        governors(),
        ours("autothrottle, rate: sent and settled", rate),
        ours("autothrottle, open: sent and settled", open),
    ];
    let row = |line: &Line| {
        let figures = [line.one, line.many, line.bytes].map(|figure| format!("{figure:.0}"));
        serde_json::json!([line.name, figures[0], figures[1], figures[2]])
    };
    println!("{}", lines.iter().map(row).collect::<serde_json::Value>());
}
