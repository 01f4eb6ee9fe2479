use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use wasmtime::{
    Config, Engine, Store,
    component::{Component, Linker, bindgen},
};

bindgen!({ path: "../../crates/bindings/component/wit", world: "throttle" });

fn main() -> wasmtime::Result<()> {
    let engine = Engine::new(&Config::new())?;
    let component = Component::from_file(&engine, "../../dist/autothrottle.wasm")?;
    let mut store = Store::new(&engine, ());
    let world = Throttle::instantiate(&mut store, &component, &Linker::new(&engine))?;
    let api = world.autothrottle_engine_throttling().engine();

    let options = r#"{ "defaults": { "delay": 100, "jitter": false } }"#;
    let throttle = api.call_constructor(&mut store, options, 1)?.map_err(|problems| problems.len());
    let throttle = throttle.expect("options that make sense");
    let scope = api.call_scope(&mut store, throttle, "example.com")?;

    let start = Instant::now();
    let now = || start.elapsed().as_nanos() as u64;
    for _ in 0..3 {
        api.call_submit(&mut store, throttle, now(), &[scope], None)?.expect("a request that makes sense");
    }
    loop {
        let decision = api.call_poll(&mut store, throttle, now())?;
        for ticket in decision.send {
            println!("send {ticket} at {} ms", start.elapsed().as_millis());
            // A status, and the latency in milliseconds.
            api.call_settle(&mut store, throttle, now(), ticket, &[200.0, 1.0], &[], None)?;
        }
        // The settled request may have changed the next decision.
        let decision = api.call_poll(&mut store, throttle, now())?;
        match decision.wake {
            Some(wake) => sleep(Duration::from_nanos(wake.saturating_sub(now()))),
            None if decision.because.is_none() => break Ok(()),
            None => unreachable!("nothing is in flight, and nothing is paused"),
        }
    }
}
