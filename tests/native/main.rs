//! All native tests in one binary, so that they link once.

mod answers;
mod baselines;
mod beside;
mod boundary;
mod bounds;
mod budgets;
mod config;
mod elsewhere;
mod engine;
mod fairness;
mod headers;
mod holds;
mod hostile;
mod live;
mod made;
mod memory;
mod notices;
mod pace;
mod player;
mod properties;
mod python;

mod quota;
mod rampup;
mod reading;
mod records;
mod reference;
mod replay;
mod robots;
mod scenarios;
mod settings;
mod simulate;
mod snapshot;
mod soak;
mod tidy;
mod tower;
