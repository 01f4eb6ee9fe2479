//! The interface `reading`: what servers say, for hosts that decide for themselves.

use autothrottle::boundary::{nanos::wall, parse_crawl_delay, parse_hints};

use crate::{Component, bindings::exports::autothrottle::engine::reading::Guest, documents::write, lines};

impl Guest for Component {
    fn limits_of(status: u16, fields: Vec<(String, String)>, bits: u32, wall_ns: Option<u64>) -> String {
        write(&parse_hints(&lines(&fields), f64::from(status), wall(wall_ns), bits))
    }

    fn crawl_delay(robots: Vec<u8>, user_agent: String) -> Option<u64> {
        let ms = parse_crawl_delay(&robots, &user_agent);
        (!ms.is_nan()).then(|| (ms * 1e6).ceil() as u64)
    }
}
