//! The reader's results for texts that servers send, right ones and odd ones, written down. The vectors
//! (`headers`, `robots`) say what must be understood; here any change of what is made of a text shows.
//!
//! `UPDATE_GOLDEN=1` writes the page anew: review it as a change of behaviour. A vector has only a
//! fingerprint of its description (FNV-1a), because its expectations stand in the vectors themselves.

use std::fmt::Write;

use autothrottle::{Hints, crawl_delay_ms, headers::Context};

use crate::{
    headers::{described, fields_of, lines},
    simulate::golden,
};

/// 20 November 2026, 19:44:00 UTC.
const NOW: i64 = 1_795_203_840_000;

fn hints(fields: &[(&str, &str)], status: u16, wall_ms: i64) -> Hints {
    Hints::read(fields.iter().copied(), Context { status, wall_ms: Some(wall_ms), ..Context::default() })
}

const DATES: &[&str] = &[
    "Fri, 20 Nov 2026 19:44:30 GMT",
    "Friday, 20-Nov-26 19:44:30 GMT",
    "Fri Nov 20 19:44:30 2026",
    "Fri Nov  6 19:44:30 2027",
    "20 Nov 2026 19:44:30 -0000",
    "Fri, 20 Nov 2026 21:44:30 +0130",
    "Fri, 20 Nov 2026 18:14:30 -0145",
    "2026-11-20T19:44:30Z",
    "2026-11-20T19:44:30.999Z",
    "2026-11-20T19:44:30.0001Z",
    "2026-11-20T19:44:30,5Z",
    "2026-11-20T14:44:30-05:00",
    "2026-11-20 19:44:30 UTC",
    "2026-11-20t19:45z",
    "20261120T194430Z",
    "2026-11-20",
    "2026-11-20T24:00:00Z",
    "2026-11-20T23:59:60Z",
    "2026-11-20T23:60:00Z",
    "Sat, 29 Feb 2028 00:00:00 GMT",
    "Mon, 01 Mar 2027 00:00:00 GMT",
    "Fri, 31 Dec 2027 23:59:59 GMT",
    "Sat, 01 Jan 2028 00:00:00 GMT",
    "Thu, 30 Apr 2026 12:00:00 GMT",
    "Sun, 28 Feb 2100 00:00:00 GMT",
    "Mon, 29 Feb 2100 00:00:00 GMT",
    "Tue, 29 Feb 2000 00:00:00 GMT",
    "Wed, 31 Jun 2027 00:00:00 GMT",
    "Wed, 00 Jun 2027 00:00:00 GMT",
    "01 Jan 0000 00:00:00 GMT",
    "01 Jan 9999 00:00:00 GMT",
    "Friday, 20-Nov-75 19:44:30 GMT",
    "Friday, 20-Nov-76 19:44:30 GMT",
    "Friday, 20-Nov-77 19:44:30 GMT",
    "Fri, 20 Nov 2026 20:44:30 EST",
    "Fri, 20 Nov 2026 20:44:30 PDT",
    "Fri, 20 Nov 2026 20:44:30 CET",
    "Fri, 20 Nov 2026 20:44:30 GMT+0100 (Central European Standard Time)",
    "Fri, 20 Nov 2026 20:44:30 GMT+01:00",
    "Fri, 20 Nov 2026 20:44:30",
    "Fri, 20 Nov 2026 8:44:30 PM",
    "Nov 20, 2026 20:44:30 GMT",
    "20/11/2026 20:44:30",
    "Fri, 20 Nov 2026 20:44:30 +2500",
    "Fri, 20 Nov 2026 20:44:30 +0160",
    "Fri, 20 November 2026 20:44:30 GMT",
    "Fri, 20 Nvo 2026 20:44:30 GMT",
];

/// As values of `Retry-After` and of `X-RateLimit-Reset`.
const WAITS: &[&str] = &[
    "0", "1", "7", "007", "1.5", "1.0000001", "0.0010001", "0.0010000", ".5", "5.", "-3", "+3", "1e3",
    "0x10", "12s", "12 s", "12ms", "1500 ms", "2m", "2m30s", "1h2m3s", "1d", "90us", "90µs", "90ns", "1.5h",
    "5 minutes", "300 seconds", "1 hour", "\"30\"", "30;x=1", "30, 60", "60, 30", "1795203900",
    "1795203900000", "1795203900.25", "1795203839", "999999999999999999999", "18446744073709551615", "86400",
    "86401", "31536000", "31536001", "", "soon", "unlimited", "1_000",
];

/// Fields of one answer.
const FIELDS: &[&[(&str, &str)]] = &[
    &[("ratelimit", r#""a";r=0;t=5"#)],
    &[("ratelimit", r#""a";r=3;t=5, "b";r=0;t=9, "c";r=0;t=2"#)],
    &[("ratelimit", r#""a";r=0;t=4;pk=:YQ==:;x;y=?1;z=1.5"#), ("ratelimit-policy", r#""a";q=100;w=60"#)],
    &[("ratelimit-policy", r#""a";q=100;w=60;qu="requests", "b";q=5000;w=60;qu="content-bytes""#)],
    &[("ratelimit-policy", r#""a";q=10;w=1;qu="concurrent-requests""#), ("ratelimit", r#""a";r=0;t=1"#)],
    &[("ratelimit", "limit=100, remaining=0, reset=50")],
    &[("ratelimit", "limit=100;w=60, remaining=50, reset=30")],
    &[("ratelimit-limit", "100"), ("ratelimit-remaining", "40"), ("ratelimit-reset", "30")],
    &[
        ("ratelimit-limit", "100, 100;w=60, 1000;w=3600"),
        ("ratelimit-remaining", "40"),
        ("ratelimit-reset", "30"),
    ],
    &[("ratelimit", "#a;r=0;t=5")],
    &[("ratelimit", "!a;r=0;t=5")],
    &[("ratelimit", "*a;r=0;t=5")],
    &[("ratelimit", "tok/en:1;r=0;t=5")],
    &[("ratelimit", "a;r=0;t=@5")],
    &[("ratelimit", "a;r=-1;t=5")],
    &[("ratelimit", "a;r=0;t=5.5")],
    &[("ratelimit", "a;r=0;t=123456789012345")],
    &[("ratelimit", "a;r=0;t=1234567890123456")],
    &[("ratelimit", "a;R=0;t=5")],
    &[("ratelimit", "a;r=0;t=5 ,")],
    &[("ratelimit", "a;r=0;t=5"), ("ratelimit", "b;r=0;t=8")],
    &[("x-ratelimit-limit", "100"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "30")],
    &[("x-ratelimit-limit", "100"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1795203900")],
    &[("x-ratelimit-limit", "100"), ("x-ratelimit-remaining", "7"), ("x-ratelimit-reset", "1795203900000")],
    &[("x-ratelimit-limit", "100"), ("x-ratelimit-remaining", "7")],
    &[("x-ratelimit-remaining", "0")],
    &[("x-ratelimit-reset-after", "2.5"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-bucket", "abc")],
    &[
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "1m3.5s"),
        ("x-ratelimit-limit-tokens", "9000"),
        ("x-ratelimit-remaining-tokens", "10"),
        ("x-ratelimit-reset-tokens", "6ms"),
    ],
    &[
        ("anthropic-ratelimit-requests-limit", "50"),
        ("anthropic-ratelimit-requests-remaining", "0"),
        ("anthropic-ratelimit-requests-reset", "2026-11-20T19:44:40Z"),
    ],
    &[
        ("x-rate-limit-limit", "1m"),
        ("x-rate-limit-remaining", "3"),
        ("x-rate-limit-reset", "2026-11-20T19:44:40.0000000Z"),
    ],
    &[("x-shopify-shop-api-call-limit", "32/40")],
    &[("x-shopify-shop-api-call-limit", "40/40")],
    &[("retry-after", "5"), ("age", "3")],
    &[("retry-after", "5"), ("age", "0")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "30"), ("age", "1")],
    &[("retry-after", "5"), ("retry-after", "9")],
    &[("retry-after", "Fri, 20 Nov 2026 19:45:30 GMT"), ("date", "Fri, 20 Nov 2026 19:44:30 GMT")],
    &[("retry-after", "Fri, 20 Nov 2026 19:45:30 GMT"), ("date", "nonsense")],
    &[("retry-after-ms", "250"), ("retry-after", "1")],
    &[("x-retry-after", "4")],
    &[("x-daylimit-remaining", "0"), ("x-minlimit-remaining", "60")],
];

const ROBOTS: &[&str] = &[
    "User-agent: bot\nCrawl-delay: 3",
    "User-agent: *\nCrawl-delay: 3\n\nUser-agent: bot\nCrawl-delay: 5",
    "User-agent: bot\nUser-agent: other\nCrawl-delay: 2\n\nUser-agent: bot\nCrawl-delay: 7",
    "User-agent: bot\nDisallow: /\nCrawl-delay: 1.25 # a comment",
    "User-agent: bot\rCrawl-delay: 4\rDisallow:",
    "User-agent: bot\r\n\r\nCrawl-delay: 4",
    "\u{feff}User-agent: bot\nCrawl-delay: 4",
    "User-agent: bot\nRequest-rate: 1/5",
    "User-agent: bot\nRequest-rate: 3/1m",
    "User-agent: bot\nRequest-rate: 2/1h 0600-0845",
    "User-agent: bot\nRequest-rate: 1/0",
    "User-agent: bot\nRequest-rate: 0/5",
    "User-agent: bot\nRequest-rate: 1/10s\nCrawl-delay: 3",
    "User-agent: bot\nCrawl-delay: 3\nRequest-rate: 1/10s",
    "User-agent: bot\nCrawl-delay: 3\nCrawl-delay: 9",
    "User-agent: bot/1.0\nCrawl-delay: 3",
    "User-agent: b\nCrawl-delay: 3",
    "User-agent: bots\nCrawl-delay: 3",
    "User-agent: bot news\nCrawl-delay: 3",
    "User-agent:\nCrawl-delay: 3",
    "Crawl-delay: 3",
    "User-agent: bot\nCrawl-delay: .5",
    "User-agent: bot\nCrawl-delay: 0",
    "User-agent: bot\nCrawl-delay: -1",
    "User-agent: bot\nCrawl-delay: 0.0001",
    "User-agent: bot\nCrawl-delay: 1,5",
    "User-agent: bot\nCrawl-delay: 10s",
    "User-agent: bot\nCrawl-delay: 1e3",
    "User-agent: bot\nCrawl-delay: 99999999",
    "User-agent: bot # x\nCrawl-delay:3",
    "User-agent: bot\nNoindex: /\nVisit-time: 1-2\nCrawl-delay: 8",
    "Sitemap: x\nUser-agent: bot\nSitemap: y\nCrawl-delay: 8",
];

fn fingerprint(text: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Everything that is made of an answer.
fn made(hints: &Hints) -> String {
    format!("{} hold {:?} pace {:?}", described(hints), hints.hold_ms(), hints.pace_ms())
}

#[test]
fn readings_of_texts_are_as_recorded() {
    let mut page =
        String::from("# What is read of texts\n\n## Dates, in milliseconds from now and from 1970\n\n");
    for text in DATES {
        let delay = |now| hints(&[("retry-after", text)], 503, now).delay_ms;
        writeln!(page, "- `{text}`: {:?} {:?}", delay(NOW), delay(0)).unwrap();
    }
    page.push_str("\n## Waits: `Retry-After`; `X-RateLimit-Reset` when nothing is left\n\n");
    for text in WAITS {
        let after = hints(&[("retry-after", text)], 429, NOW);
        let reset = hints(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", text)], 200, NOW);
        writeln!(page, "- `{text}`: {:?}; {:?}", after.hold_ms(), reset.hold_ms()).unwrap();
    }
    page.push_str("\n## Fields\n\n");
    for fields in FIELDS {
        let texts: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        writeln!(page, "- `{}`", texts.join(" | ")).unwrap();
        let [good, bad] = [200, 429].map(|status| made(&hints(fields, status, NOW)));
        writeln!(page, "  - 200: `{good}`").unwrap();
        if good != bad {
            writeln!(page, "  - 429: `{bad}`").unwrap();
        }
    }
    page.push_str("\n## robots.txt: milliseconds for `bot`\n\n");
    for text in ROBOTS {
        writeln!(page, "- `{}`: {:?}", text.escape_debug(), crawl_delay_ms(text.as_bytes(), "bot")).unwrap();
    }
    page.push_str("\n## Vectors: the name of the first of each six\n\n");
    for cases in lines("headers.jsonl").chunks(6) {
        write!(page, "- {}:", cases[0]["name"].as_str().unwrap()).unwrap();
        for case in cases {
            let context = Context {
                status: case["status"].as_u64().unwrap() as u16,
                wall_ms: case["now_epoch_ms"].as_i64(),
                ..Context::default()
            };
            let print = fingerprint(&made(&Hints::read(fields_of(case), context)));
            write!(page, " `{print:016x}`").unwrap();
        }
        page.push('\n');
    }
    golden("reading.md", &page);
}
