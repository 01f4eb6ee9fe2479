//! Suggestions for a name that is no setting: ours for a word of another library (p-queue, p-limit,
//! p-throttle, bottleneck, got, ky, axios, Crawlee), else the nearest.

use super::table::{Row, Section};

/// Where the words may stand; the words, in lower case and without hyphens; what to type.
const ANSWERS: &[(&[Section], &str, &str)] = &[
    (
        &[Section::Root, Section::Scope],
        "maxconcurrent maxconcurrency concurrencylimit concurrent concurrentrequests maxconcurrentrequests \
         maxsockets parallel parallelism perhost maxperhost concurrencyperhost maxconcurrentperhost \
         maxrequestsperhost",
        "concurrency",
    ),
    (
        &[Section::Root],
        "maxtotal total totalconcurrency globalconcurrency maxtotalconcurrency maxconnections inflight",
        "maxInFlight",
    ),
    (&[Section::Scope], "maxinflight inflight", "concurrency"),
    (&[Section::Root, Section::Scope], "mintime delayms delayseconds mindelay", "delay"),
    (
        &[Section::Root, Section::Scope],
        "interval intervalcap limit per burst maxrequests",
        "rate: { limit, window }",
    ),
    (
        &[Section::Root, Section::Scope],
        "requestsperminute maxrequestsperminute perminute rpm maxrpm",
        "rate: \"60/min\"",
    ),
    (
        &[Section::Root, Section::Scope],
        "requestspersecond maxrequestspersecond persecond rps maxrps qps ratelimit ratelimits",
        "rate",
    ),
    (
        &[Section::Root, Section::Scope],
        "reservoir reservoirrefreshamount reservoirrefreshinterval tokens tokensperinterval points \
         requestsperday",
        "quota: { limit, window }",
    ),
    (&[Section::Root], "timeout timeoutms responsetimeout headerstimeout", "requestTimeout"),
    (
        &[Section::Root],
        "retries maxretries retrycount retrylimit maxrequestretries attempts maxattempts numofattempts",
        "retry: { limit }",
    ),
    (&[Section::Root], "statuscodes httpcodes retryon", "retry: { statusCodes }"),
    (&[Section::Root, Section::Scope], "maxdelay backofflimit", "backoff: { maxDelay }"),
    (&[Section::Root], "highwater maxqueue maxqueuesize queuesize queuelimit", "maxWaiting"),
    (
        &[Section::Root],
        "useragent respectrobotstxt respectrobotstxtfile obeyrobots robotstxt",
        "robots: { userAgent }",
    ),
    (
        &[Section::Root, Section::Scope],
        "priority cost weight signal",
        "an option of a single request: throttle: { priority }",
    ),
    (
        &[Section::Root, Section::Scope],
        "maxwait waittimeout queuetimeout",
        "an option of a single request: throttle: { maxWait }",
    ),
    (&[Section::Retry], "retries maxretries count attempts maxattempts times", "limit"),
    (&[Section::Retry], "on codes statuses retryon", "statusCodes"),
    (&[Section::Rampup], "max maxslots slots", "maxConcurrency"),
    (&[Section::Root], "hosts domains perdomain", "scopes"),
    (&[Section::Backoff], "initialdelay startdelay basedelay mintimeout", "minDelay"),
    (&[Section::Backoff], "maxtimeout limit cap", "maxDelay"),
    (&[Section::Backoff], "multiplier base rate", "factor"),
    (&[Section::Robots], "useragents name agent bot", "userAgent"),
    (&[Section::Rate], "interval per span duration", "window"),
    (&[Section::Rate, Section::Quota], "max count amount requests points tokens", "limit"),
    (&[Section::Quota], "interval per duration", "window"),
];

/// The known key of `section` that is meant by `key`: what is ours for another library's word, else the
/// nearest name if one is near enough. At the top the settings of scopes are known, too, and what only a
/// driver takes.
pub(super) fn nearest(rows: &'static [Row], section: Section, key: &str) -> Option<&'static str> {
    if let Some(answer) = answer(section, key) {
        return Some(answer);
    }
    let is_near = |other: Section| {
        other == section || section == Section::Root && matches!(other, Section::Scope | Section::Driver)
    };
    // Scrapy's name for it, and ours until 0.1.
    let key = if matches!(key, "httpCodes" | "http_codes") { "statusCodes" } else { key };
    nearest_of(key, rows.iter().filter(|row| is_near(row.section)).map(|row| row.key))
}

/// The advice for another library's word.
fn answer(section: Section, key: &str) -> Option<&'static str> {
    let typed: String = fold(key).collect();
    let is_it = |(sections, words, _): &&(&[Section], &str, &str)| {
        sections.contains(&section) && words.split(' ').any(|word| word == typed)
    };
    ANSWERS.iter().find(is_it).map(|&(_, _, answer)| answer)
}

/// The name that is nearest to `typed`, if one is near enough to be meant.
pub(crate) fn nearest_of<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if typed.len() > 64 {
        return None;
    }
    known
        .map(|name| (distance(typed, name), name))
        .min()
        .filter(|&(edits, name)| edits * 3 <= name.len().max(3))
        .map(|(_, name)| name)
}

/// A name without regard to case, underscores and hyphens: `DOWNLOAD_delay` and `downloadDelay` are one.
fn fold(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|&c| c != '_' && c != '-').map(|c| c.to_ascii_lowercase())
}

/// Edits between two names: a letter more, less or another one, or two neighbours that are swapped.
fn distance(typed: &str, known: &str) -> usize {
    let (typed, known): (Vec<char>, Vec<char>) = (fold(typed).collect(), fold(known).collect());
    let mut before = Vec::new();
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (i, &a) in typed.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, &b) in known.iter().enumerate() {
            let mut edits = (row[j] + usize::from(a != b)).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a == known[j - 1] && b == typed[i - 1] {
                edits = edits.min(before[j - 1] + 1);
            }
            next.push(edits);
        }
        before = core::mem::replace(&mut row, next);
    }
    row[known.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::table::ROWS;

    #[test]
    fn no_word_is_one_of_ours() {
        for (sections, words, _) in ANSWERS {
            let is_there = |row: &&Row| {
                let is_at_top = sections.contains(&Section::Root)
                    && matches!(row.section, Section::Scope | Section::Driver);
                sections.contains(&row.section) || is_at_top
            };
            for row in ROWS.iter().filter(is_there) {
                let ours: String = fold(row.key).collect();
                assert!(words.split(' ').all(|word| word != ours), "{}", row.key);
            }
        }
    }

    #[test]
    fn words_of_others_are_answered_with_ours() {
        for (section, typed, meant) in [
            (Section::Root, "maxConcurrent", "concurrency"),
            (Section::Scope, "max-concurrency", "concurrency"),
            (Section::Root, "minTime", "delay"),
            (Section::Root, "intervalCap", "rate: { limit, window }"),
            (Section::Root, "requests_per_minute", "rate: \"60/min\""),
            (Section::Root, "requestsPerSecond", "rate"),
            (Section::Root, "timeout", "requestTimeout"),
            (Section::Root, "maxRetries", "retry: { limit }"),
            (Section::Retry, "retries", "limit"),
            (Section::Retry, "on", "statusCodes"),
            (Section::Rampup, "max", "maxConcurrency"),
            (Section::Root, "hosts", "scopes"),
        ] {
            assert_eq!(answer(section, typed), Some(meant), "{typed}");
        }
        assert_eq!(answer(Section::Root, "colour"), None);
        assert_eq!(answer(Section::Network, "interval"), None);
    }
}
