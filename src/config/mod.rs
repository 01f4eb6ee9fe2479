//! Options (as typed) → [`Config`] (as meant). Parse, don't validate: what comes out can only hold sense.
//!
//! Three layers lie on each other, key by key: the built-in defaults, `defaults`, and one of `scopes`. A
//! setting of a scope at the top is another way to write it in `defaults`.

pub mod driver;
mod effect;
mod field;
mod precedence;
mod quota;
mod rate;
pub(crate) mod reader;
mod retry;
mod scope;
pub mod scrapy;
pub(crate) mod setting;
pub(crate) mod suggestions;
pub mod table;

use std::sync::Arc;

pub use self::{
    precedence::Typed,
    scope::ScopeConfig,
    table::{AutoThrottle, Rampup},
};
use self::{
    reader::{Fields, Problems, join},
    table::Section,
};
use crate::{
    error::ConfigError, policy::retry as retry_policy, sorted::SortedIndex, time::Span, value::Value,
};

/// The limit of all scopes together where the options set none.
const GLOBAL: u32 = table::number(Section::Root, "maxInFlight") as u32;

/// The same where a scope ramps: what it finds may need more than sixteen at a time.
const GLOBAL_RAMPED: u32 = 256;

/// The engine's options, complete and in order.
#[derive(Clone, Debug)]
pub struct Config {
    /// Requests in flight, all scopes together.
    pub max_in_flight: u32,
    /// Whether the user said so.
    is_max_in_flight_typed: bool,
    /// Settings of `defaults` that stand at the top.
    short: Vec<String>,
    /// Of every scope that is not named.
    pub defaults: Arc<ScopeConfig>,
    /// Of the named ones.
    scopes: Vec<(String, Arc<ScopeConfig>)>,
    by_name: SortedIndex,
    /// For jitter; `None` if the driver should draw one.
    pub seed: Option<u64>,
    /// The most requests that may wait; `None` for no bound.
    pub max_waiting: Option<u32>,
    /// The most scopes to keep. Beyond it the engine forgets the least recently used idle ones.
    pub max_scopes: u32,
    /// Waiting requests that cause a warning.
    pub warn_threshold: u32,
    /// A scope that only answered badly for so long has stalled.
    pub stall_after: Span,
    /// After what a request is sent again, for drivers that say that it may be.
    pub retry: retry_policy::Config,
}

impl Config {
    /// Reads options. All problems are reported at once.
    pub fn parse(options: Value) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let mut fields = Fields::of(options, String::new(), Section::Root, &mut problems);
        let typed_global = fields.whole("maxInFlight");
        let (value, path) = fields.object("defaults").unwrap_or((Value::Nothing, "defaults".into()));
        let outer = fields.take_all(Section::Scope);
        let short = outer.iter().map(|(key, _)| key.clone()).collect();
        let layer = Fields::beside(outer, value, path, Section::Scope, fields.problems());
        let mut defaults = ScopeConfig::default().with(layer);
        defaults.own = Typed::default();
        defaults.check_delay("defaults.delay", fields.problems());
        let (mut named, mut by_name): (Vec<(String, _)>, _) = (Vec::new(), SortedIndex::default());
        if let Some((value, path)) = fields.object("scopes") {
            match value {
                Value::Map(entries) => {
                    for (name, value) in entries {
                        let path = join(&path, &name);
                        driver::check_name(&name, &path, fields.problems());
                        let layer = Fields::of(value, path.clone(), Section::Scope, fields.problems());
                        let config = defaults.with(layer);
                        if (config.delay, config.backoff.max) != (defaults.delay, defaults.backoff.max) {
                            config.check_delay(&join(&path, "delay"), fields.problems());
                        }
                        by_name.insert(named.len() as u32, &|other| named[other as usize].0.cmp(&name));
                        named.push((name, config));
                    }
                }
                other => fields.problems().add(&path, "an object", other.describe()),
            }
        }
        let retry = fields.object("retry").map(|(value, path)| retry::read(value, &path, fields.problems()));
        let scopes = named.iter().map(|(_, scope)| scope).chain([&defaults]);
        let global =
            typed_global.unwrap_or_else(|| scopes.map(ScopeConfig::in_flight).fold(GLOBAL, u32::max));
        let in_force = |mut scope: ScopeConfig| {
            scope.global = global;
            scope.resolve();
            Arc::new(scope)
        };
        let seed = fields.number("seed").map(|seed| seed as u64);
        let max_waiting = fields.whole("maxWaiting");
        let max_scopes = fields.number_or_default("maxScopes") as u32;
        let warn_threshold = fields.number_or_default("warnThreshold") as u32;
        let stall_after = Span::from_millis(fields.number_or_default("stallAfter"));
        fields.finish();
        if !problems.0.is_empty() {
            return Err(ConfigError { problems: problems.0 });
        }
        Ok(Self {
            max_in_flight: global,
            is_max_in_flight_typed: typed_global.is_some(),
            short,
            defaults: in_force(defaults),
            scopes: named.into_iter().map(|(name, scope)| (name, in_force(scope))).collect(),
            by_name,
            seed,
            max_waiting,
            max_scopes,
            warn_threshold,
            stall_after,
            retry: retry.unwrap_or_else(retry::usual),
        })
    }

    /// A scope was configured at run time: the limit of all scopes must not be in its way. Beside a rate it
    /// is the scope's own, too.
    pub(crate) fn follow(&mut self, scope: &mut ScopeConfig) {
        if !self.is_max_in_flight_typed {
            self.max_in_flight = self.max_in_flight.max(scope.in_flight());
            scope.global = self.max_in_flight;
            scope.resolve();
        }
    }

    /// The options of the scope called `name`.
    pub fn scope(&self, name: &str) -> &Arc<ScopeConfig> {
        let found = self.by_name.get(&|other| (*self.scopes[other as usize].0).cmp(name));
        found.map_or(&self.defaults, |index| &self.scopes[index as usize].1)
    }

    /// For how long any limit remembers what was sent: the longest delay and window.
    pub fn longest_window(&self) -> Span {
        let all = self.scopes.iter().map(|(_, scope)| scope).chain([&self.defaults]);
        let spans = all.flat_map(|scope| {
            let rate = scope.rate.map(|rate| rate.window());
            let windows = scope.quotas.iter().map(|quota| quota.window);
            windows.chain(rate).chain([Span::from_millis(scope.delay)])
        });
        spans.max().unwrap_or_default()
    }

    /// Where a setting of the scope called `name` is set, if `config` is in force there: at the top, in
    /// `defaults`, or in `scopes`.
    pub(crate) fn path_of(&self, name: &str, config: &Arc<ScopeConfig>, setting: &str) -> String {
        let is_default = Arc::ptr_eq(config, &self.defaults);
        if !is_default && config.own.has(Typed::named(setting)) {
            join(&join("scopes", name), setting)
        } else if self.short.iter().any(|short| short == setting) {
            setting.into()
        } else {
            join("defaults", setting)
        }
    }
}

/// The host of a name that is a URL: scopes are called by hosts, so no request would ever be in this one.
fn host_of(name: &str) -> Option<&str> {
    // (The library's searches for a text bring two kilobytes along.)
    let scheme = name.as_bytes().windows(3).position(|part| part == b"://")?;
    let rest = name.get(scheme + 3..)?;
    let end = rest.bytes().position(|byte| b"/?#".contains(&byte)).unwrap_or(rest.len());
    let user = rest.bytes().take(end).rposition(|byte| byte == b'@');
    rest.get(user.map_or(0, |at| at + 1)..end)
}
