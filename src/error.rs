//! Errors as types: *never* (a cost above the whole quota), *wrong* (options), *full*. That a request may not
//! leave *yet* is no error but a decision.

use core::fmt;

use crate::{decision::ScopeId, time::Span};

/// One thing that is wrong with the options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: `scopes."api.example".backoff.factor`.
    pub path: String,
    /// The expected value.
    pub want: String,
    /// The value that was found.
    pub got: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "options" } else { &self.path };
        write!(formatter, "{path}: want {}; got {}", self.want, self.got)
    }
}

/// Where problems are gathered: a reader never stops at the first one.
#[derive(Default)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Notes that `path` was given something else than was wanted.
    pub fn add(&mut self, path: &str, want: impl Into<String>, got: impl Into<String>) {
        self.0.push(Problem { path: path.into(), want: want.into(), got: got.into() });
    }
}

/// Everything that is wrong with the options, at least one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// In the order of the settings table.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// As a boundary hands it out: `[path, want, got]` of each.
    pub fn triples(self) -> Vec<[String; 3]> {
        self.problems.into_iter().map(|problem| [problem.path, problem.want, problem.got]).collect()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(formatter, "{line_break}{problem}")?;
        }
        Ok(())
    }
}

impl core::error::Error for ConfigError {}

/// Why a request was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitError {
    /// No scope at all, or a handle that this engine did not give or has since forgotten.
    UnknownScope,
    /// `maxWaiting` requests wait already.
    QueueFull,
    /// The cost is larger than the whole quota of a scope, or than the burst of its rate: it could never be
    /// sent. See `Engine::config_path`.
    CostExceedsQuota {
        /// The first scope of that kind, by handle.
        scope: ScopeId,
        /// Which of its settings says so.
        setting: &'static str,
    },
    /// A cost, priority or delay that is not a finite number in its range.
    NotANumber,
    /// A scope is down (`downAfter`), and a request that looks whether it is back is on its way, or may not
    /// leave yet.
    ScopeDown {
        /// The first scope of that kind, by handle.
        scope: ScopeId,
        /// For how long no answer has come.
        span: Span,
    },
}

impl fmt::Display for SubmitError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::UnknownScope => "the request names no scope that the engine knows",
            Self::QueueFull => "as many requests wait as maxWaiting allows",
            Self::CostExceedsQuota { .. } => "the request costs more than a scope ever allows",
            Self::ScopeDown { .. } => "no answer has come from a scope for downAfter",
            Self::NotANumber => "cost and delay must be finite and not below 0, priority finite",
        })
    }
}

impl core::error::Error for SubmitError {}
