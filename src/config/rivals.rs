//! Words of other libraries (p-queue, p-limit, p-throttle, bottleneck, got, ky, axios, Crawlee), with ours
//! for the same thing.

use super::table::{
    Section::{self, Backoff, Quota, Rate, Retry, Robots, Root, Scope},
    fold,
};

/// Where the words may stand; the words, in lower case and without hyphens; what to type.
const ANSWERS: &[(&[Section], &str, &str)] = &[
    (
        &[Root, Scope],
        "maxconcurrent maxconcurrency concurrencylimit concurrent concurrentrequests maxconcurrentrequests \
         maxsockets maxinflight parallel parallelism",
        "concurrency",
    ),
    (
        &[Root],
        "perhost maxperhost concurrencyperhost maxconcurrentperhost maxrequestsperhost",
        "defaults: { concurrency }",
    ),
    (&[Root, Scope], "mintime delayms delayseconds mindelay", "delay"),
    (&[Root, Scope], "interval intervalcap limit per burst maxrequests", "rate: { limit, per }"),
    (&[Root, Scope], "requestsperminute maxrequestsperminute perminute rpm maxrpm", "rate: \"60/min\""),
    (
        &[Root, Scope],
        "requestspersecond maxrequestspersecond persecond rps maxrps qps ratelimit ratelimits",
        "rate",
    ),
    (
        &[Root, Scope],
        "reservoir reservoirrefreshamount reservoirrefreshinterval tokens tokensperinterval points \
         requestsperday",
        "quota: { limit, window }",
    ),
    (&[Root], "timeout timeoutms responsetimeout headerstimeout", "requestTimeout"),
    (
        &[Root],
        "retries maxretries retrycount retrylimit maxrequestretries attempts maxattempts numofattempts",
        "retry: { limit }",
    ),
    (&[Root], "statuscodes httpcodes retryon", "retry: { statusCodes }"),
    (&[Root, Scope], "maxdelay backofflimit", "backoff: { maxDelay }"),
    (&[Root], "highwater maxqueue maxqueuesize queuesize queuelimit", "maxWaiting"),
    (
        &[Root],
        "useragent respectrobotstxt respectrobotstxtfile obeyrobots robotstxt",
        "robots: { userAgent }",
    ),
    (&[Root, Scope], "priority cost weight signal", "an option of a single request: throttle: { priority }"),
    (&[Retry], "retries maxretries count attempts maxattempts times", "limit"),
    (&[Backoff], "initialdelay startdelay basedelay mintimeout", "minDelay"),
    (&[Backoff], "maxtimeout limit cap", "maxDelay"),
    (&[Backoff], "multiplier base rate", "factor"),
    (&[Robots], "useragents name agent bot", "userAgent"),
    (&[Rate], "interval window span", "per"),
    (&[Rate, Quota], "max count amount requests points tokens", "limit"),
    (&[Quota], "interval per duration", "window"),
];

/// What to type in place of another library's word.
pub fn answer(section: Section, key: &str) -> Option<&'static str> {
    let typed: String = fold(key).collect();
    let is_it = |(sections, words, _): &&(&[Section], &str, &str)| {
        sections.contains(&section) && words.split(' ').any(|word| word == typed)
    };
    ANSWERS.iter().find(is_it).map(|&(_, _, answer)| answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::table::{ROWS, Row};

    #[test]
    fn no_word_is_one_of_ours() {
        for (sections, words, _) in ANSWERS {
            let is_there = |row: &&Row| {
                let is_at_top = sections.contains(&Root) && matches!(row.section, Scope | Section::Driver);
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
            (Root, "maxConcurrent", "concurrency"),
            (Scope, "max-concurrency", "concurrency"),
            (Root, "minTime", "delay"),
            (Root, "intervalCap", "rate: { limit, per }"),
            (Root, "requests_per_minute", "rate: \"60/min\""),
            (Root, "requestsPerSecond", "rate"),
            (Root, "timeout", "requestTimeout"),
            (Root, "maxRetries", "retry: { limit }"),
            (Retry, "retries", "limit"),
        ] {
            assert_eq!(answer(section, typed), Some(meant), "{typed}");
        }
        assert_eq!(answer(Root, "colour"), None);
        assert_eq!(answer(Section::Network, "interval"), None);
    }
}
