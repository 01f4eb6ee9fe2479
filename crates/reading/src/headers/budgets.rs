//! Which budget each quota is of, and an answer taken apart by budgets.
//!
//! Rules:
//! 1. with `X-RateLimit-Resource` or `X-RateLimit-Bucket` all quotas of the answer are of that one budget;
//!    what Discord calls global is of none;
//! 2. else a quota's name is its budget: a policy's with its partition key, `requests` and `tokens` of
//!    `OpenAI` and Anthropic, `subscription-reads` of Azure, `tickets-index` of Zendesk;
//! 3. a name that is a span (`minute`, `day`) tells windows apart and no budgets;
//! 4. the wait of a refusal is for the budgets that are used up, or for the bucket if Discord says so; else
//!    for all.
//!
//! Answers of GitHub's secondary limit name a resource of which much is left, and mean all.

use std::borrow::Cow;

use super::{Hints, Quota};
use crate::scan::is;

/// Names of windows, and of both limits of Stack Overflow for Teams.
const SPANS: [&str; 12] = [
    "second", "secondly", "minute", "minutely", "hour", "hourly", "day", "daily", "month", "monthly",
    "burst", "bucket",
];
/// An answer that names more budgets than this is hostile.
const MOST: usize = 8;

/// An answer taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Hints for all that the host serves.
    pub rest: Hints,
    /// Hints for single budgets, by name. Of a bucket it ends in `/`: Discord's are one for each top-level
    /// resource, and the reader knows no URL.
    pub budgets: Vec<(String, Hints)>,
    /// The answer says by itself that its budget is one of several.
    pub is_one_of_several: bool,
    /// It is the refusal of a budget, and none of the host's.
    pub is_refusal_of_one: bool,
}

impl Hints {
    /// The budget that a quota of this answer is of, if it is not the host's.
    pub fn budget_of<'a>(&'a self, quota: &'a Quota) -> Option<Cow<'a, str>> {
        self.marked().or_else(|| {
            let name = quota.policy.as_ref()?;
            if SPANS.iter().any(|span| is(name.as_bytes(), span)) {
                return None;
            }
            Some(match &quota.partition_key {
                Some(key) => Cow::Owned([name, " ", key].concat()),
                None => Cow::Borrowed(name),
            })
        })
    }

    /// The resource or the bucket of all quotas.
    fn marked(&self) -> Option<Cow<'_, str>> {
        if self.scope.as_deref() == Some("global") {
            return None;
        }
        if let Some(resource) = &self.resource {
            return Some(Cow::Borrowed(resource));
        }
        self.bucket.as_ref().map(|bucket| Cow::Owned([bucket, "/"].concat()))
    }

    /// The budgets that the answer names, and whether it says by itself that they are some of several.
    pub fn names(&self) -> (Vec<Cow<'_, str>>, bool) {
        let marked = self.marked();
        let is_one_of_several = marked.is_some();
        let mut names = Vec::new();
        names.extend(marked);
        for quota in &self.quotas {
            place(self.budget_of(quota), &mut names);
        }
        (names, is_one_of_several)
    }

    /// The answer taken apart; `None` if it names no budget.
    pub fn parts(&self) -> Option<Parts> {
        let (mut names, is_one_of_several) = self.names();
        if names.is_empty() {
            return None;
        }
        let places: Vec<_> =
            self.quotas.iter().map(|quota| place(self.budget_of(quota), &mut names)).collect();
        let (status, _) = self.said;
        let is_own = self.scope.as_deref().is_some_and(|scope| scope == "user" || scope == "shared");
        let is_marked = self.bucket.is_some() && is_own;
        let mut quotas = self.quotas.iter().zip(&places);
        let is_refusal_of_one = matches!(status, 403 | 429 | 503)
            && (is_marked || quotas.any(|(quota, place)| place.is_some() && quota.is_exhausted()));
        let mut rest = self.part(&places, None, !is_refusal_of_one);
        rest.rate_per_million_s = self.rate_per_million_s;
        let mut budgets = Vec::with_capacity(names.len());
        for (place, name) in names.into_iter().enumerate() {
            let mut part = self.part(&places, Some(place), is_refusal_of_one);
            if is_refusal_of_one && !is_marked && !part.quotas.iter().any(Quota::is_exhausted) {
                part = self.part(&places, Some(place), false);
            }
            budgets.push((name.into_owned(), part));
        }
        Some(Parts { rest, budgets, is_one_of_several, is_refusal_of_one })
    }

    /// The hints for the budget in this place, or for none; with the wait, if that was asked of it. `places`:
    /// of which budget each quota is.
    fn part(&self, places: &[Option<usize>], place: Option<usize>, is_asked: bool) -> Self {
        let (status, explicit) = self.said;
        let mut part = Self {
            said: (status, explicit.filter(|_| is_asked)),
            is_cached: self.is_cached,
            ..Self::default()
        };
        if is_asked && place.is_none() {
            part.resource.clone_from(&self.resource);
        }
        for (quota, of) in self.quotas.iter().zip(places) {
            if *of == place {
                part.quotas.push(quota.clone());
            }
        }
        part.decide();
        part
    }
}

/// The place of a budget among those that an answer names, where it is put if there is room.
fn place<'a>(name: Option<Cow<'a, str>>, names: &mut Vec<Cow<'a, str>>) -> Option<usize> {
    let name = name?;
    let known = names.iter().position(|other| *other == name);
    if known.is_none() && names.len() < MOST {
        names.push(name);
        return Some(names.len() - 1);
    }
    known
}

#[cfg(test)]
mod tests {
    use super::super::Context;
    use super::*;

    fn parts(status: u16, lines: &str) -> Option<Parts> {
        Hints::from_lines(lines, Context { status, wall_ms: Some(1_795_203_840_000), ..Context::default() })
            .parts()
    }

    fn holds(parts: &Parts) -> (Option<u64>, Vec<(&str, Option<u64>)>) {
        let budgets = parts.budgets.iter().map(|(name, hints)| (name.as_str(), hints.hold_ms()));
        (parts.rest.hold_ms(), budgets.collect())
    }

    #[test]
    fn a_resource_that_is_used_up_holds_itself() {
        let told = "x-ratelimit-limit: 30\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 60\n\
                    x-ratelimit-resource: search\n";
        let good = parts(200, told).unwrap();
        assert_eq!(holds(&good), (None, vec![("search", Some(60_000))]));
        assert!(good.is_one_of_several && !good.is_refusal_of_one);
        let refused = parts(403, told).unwrap();
        assert_eq!(holds(&refused), (None, vec![("search", Some(61_000))]));
        assert!(refused.is_refusal_of_one);
    }

    /// GitHub's secondary limit: much is left of the resource, and everything is to wait.
    #[test]
    fn a_secondary_limit_is_for_all() {
        let left = "x-ratelimit-remaining: 4990\nx-ratelimit-reset: 60\nx-ratelimit-resource: core\n";
        let asked = parts(403, &[left, "retry-after: 30\n"].concat()).unwrap();
        assert_eq!((holds(&asked), asked.is_refusal_of_one), ((Some(31_000), vec![("core", None)]), false));
        let silent = parts(429, left).unwrap();
        assert_eq!(holds(&silent), (Some(60_000), vec![("core", None)]));
    }

    #[test]
    fn a_bucket_is_one_for_each_channel_and_global_is_for_all() {
        let told = "x-ratelimit-bucket: abc\nx-ratelimit-remaining: 0\nx-ratelimit-reset-after: 1.5\n";
        let one = parts(429, &[told, "retry-after: 2\nx-ratelimit-scope: user\n"].concat()).unwrap();
        assert_eq!(holds(&one), (None, vec![("abc/", Some(3000))]));
        assert_eq!(parts(429, "x-ratelimit-global: true\nretry-after: 2\n"), None);
        let global = [told, "x-ratelimit-scope: global\nretry-after: 2\n"].concat();
        assert_eq!(parts(429, &global), None);
    }

    #[test]
    fn policies_are_budgets_and_windows_are_not() {
        let told = parts(200, "ratelimit: \"a\";r=0;t=9, \"b\";r=5;t=3;pk=:Yw==:\n").unwrap();
        assert_eq!(holds(&told), (None, vec![("a", Some(9000)), ("b Yw==", None)]));
        assert!(!told.is_one_of_several);
        assert_eq!(parts(200, "x-ratelimit-limit-minute: 9\nx-ratelimit-remaining-minute: 0\n"), None);
        let model = "x-ratelimit-remaining-requests: 9\nx-ratelimit-remaining-tokens: 0\n\
                     x-ratelimit-reset-tokens: 6s\n";
        assert_eq!(holds(&parts(200, model).unwrap()).1, [("tokens", Some(6000)), ("requests", None)]);
        let rest = parts(429, "ratelimit: \"a\";r=4;t=9\nretry-after: 7\n").unwrap();
        assert_eq!((holds(&rest).0, rest.is_refusal_of_one), (Some(8000), false));
    }
}
