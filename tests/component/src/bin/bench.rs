//! The cost of a call of the component for a host in Rust: `cargo run --release` here, once the component is
//! made.

use std::{fs, time::Instant};

use autothrottle_component_tests::{Compiled, call, wit::Needs};
use wasmtime::Config;

const OPTIONS: &str = r#"{
    "maxInFlight": 100000,
    "defaults": { "concurrency": 100000, "delay": 0, "slotDelay": 0, "jitter": false }
}"#;
const CYCLES: u64 = 100_000;

fn main() -> wasmtime::Result<()> {
    let begin = Instant::now();
    let start = begin;
    let compiled = Compiled::with(&Config::new())?;
    println!("compiled                           {:9.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let start = Instant::now();
    let instance = compiled.instance()?;
    println!("instantiated                       {:9.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let mut host = instance.engine(OPTIONS, 1)?.map_err(|problems| problems.len()).expect("options");
    let scope = call!(host, call_scope, "example.com")?;
    let mut now = 1_000_000_000;
    let needs = Needs { costs: vec![], priority: 1.0, delay: 0, waited: 0 };
    let full = [("retry-after".to_string(), "3".to_string())];
    for (name, needs, fields) in
        [("submit, poll, settle", None, &full[..0]), ("the same with all there is", Some(&needs), &full[..])]
    {
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let start = cpu(begin);
            for _ in 0..CYCLES {
                now += 1_000_000;
                drop(call!(host, call_submit, now, &[scope], needs)?);
                let ticket = call!(host, call_poll, now)?.send[0];
                call!(host, call_settle, now, ticket, &[200.0, 80.0, f64::NAN, 2.0], fields, None)?;
            }
            best = best.min((cpu(begin) - start) / CYCLES as f64);
        }
        println!("{name:34} {:9.2} µs", best * 1e6);
    }
    Ok(())
}

/// Seconds of CPU that this thread has had; where the system does not say it, of time since the beginning.
fn cpu(begin: Instant) -> f64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = told.and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    ns.map_or_else(|| begin.elapsed().as_secs_f64(), |ns| ns / 1e9)
}
