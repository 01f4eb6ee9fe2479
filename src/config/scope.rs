//! One scope's options: its settings in layers, read. Which of them wins is in `precedence.rs`.

use super::{
    GLOBAL, GLOBAL_RAMPED,
    field::Settings,
    precedence::Typed,
    quota::{Quota, read_quotas},
    reader::{Choice, Fields, Problems},
    table::{self, AutoThrottle, ScopeSettings, Section},
};
use crate::{
    error::ConfigError,
    feedback::Failure,
    policy::{autothrottle, backoff, jitter, quota, rampup, rate},
    time::Span,
    value::{Value, number_text, text},
};
use core::ops::{Deref, DerefMut};

/// One scope's options, read.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeConfig {
    /// Those of the table that stand in no object.
    settings: ScopeSettings,
    /// How the delay follows bad answers.
    pub backoff: backoff::Config,
    /// The longest wait that a server may ask for.
    pub max_hold: Span,
    /// Statuses that are bad answers, in order; none without backoff.
    status_codes: Box<[u16]>,
    /// Failures that are bad answers; none without backoff.
    failures: Vec<Failure>,
    is_backoff: bool,
    /// The user asked for the ladder of backoff.
    pub(super) is_ladder: bool,
    /// The settings that the user typed for the pace of this very scope.
    pub own: Typed,
    /// The settings that the user typed for the pace, here or in the defaults.
    pub typed: Typed,
    /// The limit of all scopes together.
    pub(crate) global: u32,
    /// Whether the driver has a strategy of its own for this scope: the engine only classifies answers.
    pub is_managed: bool,
    /// The product made it by itself, so no notice names its settings.
    pub is_made: bool,
    /// The host makes it anew where it is forgotten.
    pub is_passing: bool,
    /// It is a budget of a server's, or a route to one: it has no limit but what the server says.
    pub is_budget: bool,
    /// Budgets per window, complete.
    pub quotas: Box<[quota::Config]>,
    pub(super) quota: Vec<Quota>,
}

impl Default for ScopeConfig {
    fn default() -> Self {
        use table::{codes, flag, number};
        let span = Span::from_millis;
        Self {
            settings: ScopeSettings::default(),
            backoff: backoff::Config {
                factor: const { number(Section::Backoff, "factor") },
                min: span(const { number(Section::Backoff, "minDelay") }),
                max: span(const { number(Section::Backoff, "maxDelay") }),
                window: span(const { number(Section::Backoff, "window") }),
                jitter: jitter::Config::around(const { number(Section::Backoff, "jitter") }),
                concurrency_factor: const { number(Section::Backoff, "concurrencyFactor") },
            },
            max_hold: span(const { number(Section::Backoff, "maxHold") }),
            status_codes: const { codes(Section::Backoff, "statusCodes") }.into(),
            failures: Failure::ALL.into(),
            is_backoff: const { flag(Section::Scope, "backoff") },
            is_ladder: false,
            own: Typed::default(),
            typed: Typed::default(),
            global: GLOBAL,
            is_managed: false,
            is_made: false,
            is_passing: false,
            is_budget: false,
            quotas: Box::default(),
            quota: Vec::new(),
        }
    }
}

impl Deref for ScopeConfig {
    type Target = ScopeSettings;

    fn deref(&self) -> &ScopeSettings {
        &self.settings
    }
}

impl DerefMut for ScopeConfig {
    fn deref_mut(&mut self) -> &mut ScopeSettings {
        &mut self.settings
    }
}

/// The words by which a host says that it configures a scope by itself; and that it will again, so that the
/// scope may be forgotten.
const MADE: &str = "\u{a0}made";
const PASSING: &str = "\u{a0}passing";

impl ScopeConfig {
    /// This configuration with a few settings changed, as `scope(name).configure(partial)` does it.
    pub fn changed(&self, partial: Value) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let mut fields = Fields::of(partial, String::new(), Section::Scope, &mut problems);
        let (is_made, is_passing) = (fields.mark(MADE), fields.mark(PASSING));
        let mut config = self.with(fields);
        config.is_made |= is_made;
        config.is_passing |= is_passing;
        config.check_delay("delay", &mut problems);
        if problems.0.is_empty() { Ok(config) } else { Err(ConfigError { problems: problems.0 }) }
    }

    /// The settings of a budget of this scope's server, or on the way to one: what the server says.
    #[must_use]
    pub fn budget(&self) -> Self {
        Self {
            settings: ScopeSettings {
                concurrency: u32::MAX,
                delay: 0.0,
                slot_delay: Span::ZERO,
                jitter: jitter::Config::NONE,
                follow_rate_limit: self.follow_rate_limit || self.rampup.is_some(),
                ignore_robots_txt: self.ignore_robots_txt,
                window: self.window,
                strict: self.strict,
                ..ScopeSettings::default()
            },
            backoff: self.backoff,
            max_hold: self.max_hold,
            status_codes: self.status_codes.clone(),
            failures: self.failures.clone(),
            is_backoff: false,
            global: self.global,
            is_budget: true,
            ..Self::default()
        }
    }

    /// As many as the limit of all scopes together must let through where none was typed.
    pub(super) fn in_flight(&self) -> u32 {
        let typed = if self.typed.has(Typed::CONCURRENCY) { self.concurrency } else { 0 };
        typed.max(if self.rampup.is_some() { GLOBAL_RAMPED } else { 0 })
    }

    /// Whether a setting of the pace is on that `send_express` of a scope does not know.
    #[inline(always)]
    pub fn is_slow(&self) -> bool {
        self.settings.is_slow()
    }

    /// The delay as a span.
    pub fn delay_span(&self) -> Span {
        Span::from_millis(self.delay)
    }

    /// Whether the user said how fast this very scope may be.
    pub fn has_own_pace(&self) -> bool {
        self.own.has(Typed::DELAY | Typed::RATE | Typed::CONCURRENCY)
    }

    /// The settings of the rate.
    pub fn rate_policy(&self) -> Option<&rate::Config> {
        self.rate.as_ref()
    }

    /// The settings of the rampup policy.
    pub fn rampup_policy(&self) -> Option<rampup::Config> {
        let rampup = self.rampup?;
        let own = if self.own.has(Typed::DELAY) { self.delay_span() } else { Span::ZERO };
        Some(rampup::Config {
            start: rampup.start.max(own),
            min: rampup.min.max(own),
            max: self.backoff.max,
            window: self.backoff.window,
            target: rampup.target.0,
            is_ceiling: false,
            spread: if self.typed.has(Typed::JITTER) { self.jitter.high.max(0.0) } else { 0.0 },
        })
    }

    /// Whether the pace that was typed is a ceiling of rampup's law, in place of the ladder of backoff.
    pub fn is_ceiling(&self) -> bool {
        let is_paced = self.typed.has(Typed::PACE) || self.autothrottle.is_some();
        let is_free = self.is_backoff && !self.is_ladder && !self.is_managed && !self.is_budget;
        is_free && is_paced && self.rampup.is_none()
    }

    /// The settings of rampup's law where the pace is a ceiling with this gap.
    pub fn ceiling_policy(&self, gap: Span, spread: f64) -> rampup::Config {
        rampup::Config {
            start: gap,
            min: gap,
            max: self.backoff.max.max(gap),
            window: self.backoff.window,
            target: const { table::number(Section::Rampup, "backoffTarget") },
            is_ceiling: true,
            spread,
        }
    }

    /// Whether a response with this status is a bad answer.
    #[inline]
    pub fn is_bad_status(&self, status: u16) -> bool {
        // Most answers are good, and their status is below all of these.
        self.status_codes.first().is_some_and(|&least| least <= status)
            && self.hears_answers()
            && self.status_codes.binary_search(&status).is_ok()
    }

    /// Whether this failure is a bad answer.
    pub fn is_bad_failure(&self, failure: Failure) -> bool {
        self.hears_answers() && self.failures.contains(&failure)
    }

    /// Whether answers may be bad.
    pub fn hears_answers(&self) -> bool {
        self.is_backoff || self.is_managed
    }

    /// The settings of the `AutoThrottle` policy, in Scrapy's seconds.
    pub fn autothrottle_policy(&self) -> Option<autothrottle::Config> {
        let AutoThrottle { start_delay, max_delay, target_concurrency } = self.autothrottle?;
        // The defaults' delay is no bound where rampup looks for the right one.
        let is_bound = self.rampup.is_none() || self.own.has(Typed::DELAY);
        Some(autothrottle::Config {
            start: start_delay / 1000.0,
            min: if is_bound { self.delay / 1000.0 } else { 0.0 },
            max: max_delay / 1000.0,
            target_concurrency,
        })
    }

    /// Backoff only ever makes the delay longer: one that begins above its longest makes no sense.
    pub(super) fn check_delay(&self, path: &str, problems: &mut Problems) {
        let longest = self.backoff.max;
        if self.delay_span() > longest {
            let want = text(&["at most backoff.maxDelay, ", &number_text(longest.millis())]);
            problems.add(path, want, number_text(self.delay));
        }
    }

    pub(super) fn with(&self, mut fields: Fields) -> Self {
        let mut config = self.clone();
        // A manager is there from the beginning or not at all: a driver could not follow.
        if !fields.path().is_empty() {
            config.is_managed |= fields.take("manager").is_some();
        }
        let near = Typed::read(&mut fields);
        config.typed = self.typed.and(near);
        config.own = self.own.and(near);
        config.settings = ScopeSettings::read(&mut fields, &self.settings);
        read_backoff(&mut fields, &mut config);
        if let Some((value, path)) = fields.object("quota") {
            config.quota = read_quotas(value, &path, fields.problems());
        }
        fields.finish();
        if config.is_managed {
            config.rampup = None;
        }
        config.resolve();
        config
    }

    /// The settings that follow from everything that was typed. A setting of the pace that was not typed gets
    /// the default that fits what was:
    ///
    /// | typed | delay | slotDelay | jitter | concurrency |
    /// |---|---|---|---|---|
    /// | nothing, `jitter` | 1000 | 1000 | 50 % | 1 |
    /// | `concurrency` | 0 | 0 | 50 % | |
    /// | `autothrottle` | 1000 | 0 | 50 % | 1 |
    /// | `delay` | | 0 | 50 % | 1 |
    /// | `slotDelay` | 1000 | | 50 % | 1 |
    /// | `rampup`, `quota` | 0 | 0 | 50 % | 1 |
    /// | `rate` | 0 | 0 | none | all of the throttle |
    ///
    /// If a default stayed in force beside the pace that you type, `delay: 200` would be a request a second:
    /// a slot delay of a second would bind.
    pub(super) fn resolve(&mut self) {
        let usual = Self::default();
        let all = self.typed;
        let typed = |setting| all.has(setting);
        let is_rate = typed(Typed::RATE);
        let has_slots = typed(Typed::CONCURRENCY);
        let is_paced = is_rate || has_slots || self.rampup.is_some() || !self.quota.is_empty();
        if !is_rate {
            self.rate = None;
        }
        if !typed(Typed::DELAY) {
            self.delay = if is_paced { 0.0 } else { usual.delay };
        }
        if !typed(Typed::SLOT_DELAY) {
            let is_typed = is_paced || typed(Typed::DELAY) || self.autothrottle.is_some();
            self.slot_delay = if is_typed { Span::ZERO } else { usual.slot_delay };
        }
        if !typed(Typed::JITTER) {
            self.jitter = if is_rate { jitter::Config::NONE } else { usual.jitter };
        }
        if !has_slots {
            self.concurrency = if is_rate { self.global } else { usual.concurrency };
        }
        if !typed(Typed::MAX_DELAY) {
            // A pace that is slower than any backoff was meant so: backoff begins with it.
            let gap = self.rate.map_or(Span::ZERO, |rate| rate.gap());
            self.backoff.max = usual.backoff.max.max(self.delay_span()).max(gap);
        }
        self.rate = self.rate.map(|rate| rate.spread(self.jitter.high - self.jitter.low));
        self.quotas = self
            .quota
            .iter()
            .map(|quota| quota::Config {
                limit: quota.limit,
                window: quota.window.unwrap_or(self.window),
                strict: quota.strict.unwrap_or(self.strict),
            })
            .collect();
    }
}

fn read_backoff(fields: &mut Fields, config: &mut ScopeConfig) {
    let mut fields = match fields.flag_or("backoff") {
        None => return,
        Some(Choice::Flag(flag)) => {
            (config.is_backoff, config.is_ladder) = (flag, flag);
            return;
        }
        Some(Choice::Fields(fields)) => fields,
    };
    (config.is_backoff, config.is_ladder) = (true, true);
    let old = config.backoff;
    if fields.has("maxDelay") {
        config.typed = config.typed | Typed::MAX_DELAY;
    }
    config.max_hold = fields.millis("maxHold").unwrap_or(config.max_hold);
    let mut span = |key: &str, old: Span| fields.millis(key).unwrap_or(old);
    let (min, max) = (span("minDelay", old.min), span("maxDelay", old.max));
    let window = span("window", old.window);
    if let Some(codes) = fields.codes("statusCodes") {
        config.status_codes = codes;
    }
    if let Some(failures) = fields.failures("errors") {
        config.failures = failures;
    }
    config.backoff = backoff::Config {
        factor: fields.number("factor").unwrap_or(old.factor),
        min,
        max,
        window,
        jitter: fields.jitter("jitter").unwrap_or(old.jitter),
        concurrency_factor: fields.number("concurrencyFactor").unwrap_or(old.concurrency_factor),
    };
    if min > max {
        let want = text(&["at least minDelay, ", &number_text(min.millis())]);
        let path = fields.path_of("maxDelay");
        fields.problems().add(&path, want, number_text(max.millis()));
    }
    fields.finish();
}
