//! 20,000 steps of `AutoThrottle` as Scrapy 2.19's own code took them: every delay must be the same bits.

use autothrottle::policy::autothrottle::{Config, State};
use serde_json::Value;

#[test]
fn every_step_is_bit_for_bit_scrapys() {
    let mut steps_taken = 0;
    for line in include_str!("../vectors/autothrottle_vectors.jsonl").lines().skip(1) {
        let vector: Value = serde_json::from_str(line).unwrap();
        let setting = |name: &str, default: f64| vector["settings"][name].as_f64().unwrap_or(default);
        let config = Config {
            start: setting("AUTOTHROTTLE_START_DELAY", 5.0),
            min: setting("DOWNLOAD_DELAY", 0.0),
            max: setting("AUTOTHROTTLE_MAX_DELAY", 60.0),
            target_concurrency: setting("AUTOTHROTTLE_TARGET_CONCURRENCY", 1.0),
        };
        let slot_delay = vector["slot"]["delay"].as_f64();
        let mut state = slot_delay.map_or_else(|| State::new(&config), |delay| State { delay });
        assert_eq!(state.delay.to_bits(), vector["start"].as_f64().unwrap().to_bits(), "{}", vector["id"]);
        let (steps, delays) = (vector["steps"].as_array().unwrap(), vector["delays"].as_array().unwrap());
        assert_eq!(steps.len(), delays.len());
        for (step, delay) in steps.iter().zip(delays) {
            let is_asked_not_to = step[2] == Value::Bool(true);
            if let (Some(latency), false) = (step[0].as_f64(), is_asked_not_to) {
                state = state.on_response(&config, latency, step[1].as_u64().unwrap() as u16);
            }
            assert_eq!(state.delay.to_bits(), delay.as_f64().unwrap().to_bits(), "{} {step}", vector["id"]);
            steps_taken += 1;
        }
    }
    assert_eq!(steps_taken, 20_000);
}
