//! All native tests in one binary, so that they link once.

#[path = "native/baselines.rs"]
mod baselines;
#[path = "native/boundary.rs"]
mod boundary;
#[path = "native/budgets.rs"]
mod budgets;
#[path = "native/config.rs"]
mod config;
#[path = "native/corpus.rs"]
mod corpus;
#[path = "native/down.rs"]
mod down;
#[path = "native/drawn.rs"]
mod drawn;
#[path = "native/elsewhere.rs"]
mod elsewhere;
#[path = "native/engine.rs"]
mod engine;
#[path = "native/eviction.rs"]
mod eviction;
#[path = "native/headers.rs"]
mod headers;
#[path = "native/hostile.rs"]
mod hostile;
#[path = "native/layers.rs"]
mod layers;
#[path = "native/live.rs"]
mod live;
#[path = "native/memory.rs"]
mod memory;
#[path = "native/notices.rs"]
mod notices;
#[path = "native/pace.rs"]
mod pace;
#[path = "native/player.rs"]
mod player;
#[path = "native/precedence.rs"]
mod precedence;
#[path = "native/properties.rs"]
mod properties;
#[path = "native/python.rs"]
mod python;
#[path = "native/quota.rs"]
mod quota;
#[path = "native/rampup.rs"]
mod rampup;
#[path = "native/readers.rs"]
mod readers;
#[path = "native/reading.rs"]
mod reading;
#[path = "native/reference.rs"]
mod reference;
#[path = "native/replay.rs"]
mod replay;
#[path = "native/robots.rs"]
mod robots;
#[path = "native/scale.rs"]
mod scale;
#[path = "native/scenarios.rs"]
mod scenarios;
#[path = "native/scrapy_parity.rs"]
mod scrapy_parity;
#[path = "native/scrapy_table.rs"]
mod scrapy_table;
#[path = "native/settings.rs"]
mod settings;
#[path = "native/simulate.rs"]
mod simulate;
#[path = "native/snapshot.rs"]
mod snapshot;
#[path = "native/soak.rs"]
mod soak;
#[path = "native/takeover.rs"]
mod takeover;
#[path = "native/tidy.rs"]
mod tidy;
