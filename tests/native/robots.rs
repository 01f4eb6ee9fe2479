//! The robots.txt vectors: what each file asks of a crawler, in seconds.

use autothrottle::{crawl_delay_ms, robots_allow, robots_rules};
use serde_json::Value;

/// The vectors, each with the bytes of its file.
pub fn vectors() -> Vec<(Value, Vec<u8>)> {
    let with_bytes = |line| {
        let case: Value = serde_json::from_str(line).unwrap();
        let mut text = case["text"].as_str().unwrap().to_owned();
        if let Some(times) = case["filler"][1].as_u64() {
            text = text.replace('…', &case["filler"][0].as_str().unwrap().repeat(times as usize));
        }
        let bytes = match case["utf16"].as_bool() {
            Some(_) => {
                [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
            }
            None => text.into_bytes(),
        };
        (case, bytes)
    };
    include_str!("../vectors/robots.jsonl").lines().map(with_bytes).collect()
}

#[test]
fn all_robots_vectors() {
    let cases = vectors();
    assert!(cases.len() > 50, "a part of the file is missing");
    for (case, bytes) in cases {
        let want = case["expect"].as_f64().map(|seconds| seconds * 1000.0);
        assert_eq!(crawl_delay_ms(&bytes, case["ua"].as_str().unwrap()), want, "{}", case["name"]);
    }
}

/// Lines that people write and parsers take: a star behind a token (Google reads the token's own letters
/// only), and a blank in a key where a hyphen belongs.
#[test]
fn robots_files_as_people_write_them() {
    let cases: [(&str, Option<f64>); 18] = [
        ("User-agent: *\nUser-agent: other\nCrawl-delay: 3", Some(3000.0)),
        ("User-agent: foobot\nUser-agent: other\nCrawl-delay: 3", Some(3000.0)),
        ("User-agent: *\nDisallow: /x\nUser-agent: other\nCrawl-delay: 3", None),
        ("User-agent: foobot\nDisallow: /x\nUser-agent: other\nCrawl-delay: 3", None),
        ("User-agent: foobot*\nCrawl-delay: 3", Some(3000.0)),
        ("User-agent: FooBot/2.*\nCrawl-delay: 3", Some(3000.0)),
        ("User-agent: foo*\nCrawl-delay: 3", None),
        ("User-agent: *foobot\nCrawl-delay: 3", None),
        ("User-agent: * \nCrawl-delay: 3", Some(3000.0)),
        ("User-agent: foobot*\nDisallow:\n\nUser-agent: *\nCrawl-delay: 3", None),
        ("User-agent: foobot\nCrawl delay: 3", Some(3000.0)),
        ("User agent: foobot\ncrawl\tDelay : 3", Some(3000.0)),
        ("User-agent: foobot\nCrawldelay: 3", Some(3000.0)),
        ("User-agent: foobot\nCrawl-delay 3", Some(3000.0)),
        ("User-agent: foobot\nRequest rate: 1/5", Some(5000.0)),
        ("User-agent: foobot\nCrawl the delay: 3", None),
        ("User-agent: foobot\nCrawl-delay: 3 per second", None),
        ("User-agent: foobot\nCrawl-delay: \u{e9}3", None),
    ];
    for (text, want) in cases {
        assert_eq!(crawl_delay_ms(text.as_bytes(), "foobot"), want, "{text}");
    }
}

/// A crawler is called by its token: letters, digits, hyphens and underscores. A key is short.
#[test]
fn names_and_keys_are_of_so_many_letters() {
    let text = |token: &str| format!("User-agent: {token}\nCrawl-delay: 3");
    for (token, ours, want) in [
        ("foo-bot", "foo-bot/1.0", Some(3000.0)),
        ("foo_bot", "foo_bot/1.0 (+https://foo.example)", Some(3000.0)),
        ("foo", "foo-bot/1.0", None),
        ("foo", "foo_bot/1.0", None),
        ("foo2", "foo2/1.0", Some(3000.0)),
        ("foo", "foo2/1.0", None),
    ] {
        assert_eq!(crawl_delay_ms(text(token).as_bytes(), ours), want, "{token} {ours}");
    }
    let key = |hyphens: usize| format!("User-agent: *\nCrawl{}delay: 3", "-".repeat(hyphens));
    assert_eq!(crawl_delay_ms(key(3).as_bytes(), "x"), Some(3000.0));
    assert_eq!(crawl_delay_ms(key(300).as_bytes(), "x"), None);
}

/// Hostile files: an answer, whatever they hold, and a finite one.
#[test]
fn hostile_files() {
    let nines = format!("User-agent: *\nCrawl-delay: {}", "9".repeat(400_000));
    assert!(crawl_delay_ms(nines.as_bytes(), "x").is_some_and(f64::is_finite));
    let rate = format!("User-agent: *\nRequest-rate: 0.{}1/{}h", "0".repeat(400), "9".repeat(400));
    assert!(crawl_delay_ms(rate.as_bytes(), "x").is_none_or(f64::is_finite));
    for filler in ["\r", ":", "#", "User-agent: x\n", "*", "\u{0}", "a:", "/", ".", "Crawl-delay: 1\n"] {
        let text = filler.repeat(2_000_000 / filler.len());
        let _ = crawl_delay_ms(text.as_bytes(), "x");
        let _ = crawl_delay_ms(b"User-agent: x", &text);
    }
    let far = format!("{}\nUser-agent: *\nCrawl-delay: 1", "#".repeat(512_000));
    assert_eq!(crawl_delay_ms(far.as_bytes(), "x"), None);
    assert_eq!(crawl_delay_ms(b"\xff\xfe\nUser-agent: \xff*\nCrawl-delay: 1", "x"), None);
}

/// Every browser says `Mozilla`, so beside another product it names no crawler.
#[test]
fn mozilla_is_nobody_beside_another_product() {
    let text = b"User-agent: mozilla\nCrawl-delay: 3";
    assert_eq!(crawl_delay_ms(text, "Mozilla/5.0"), Some(3000.0));
    assert_eq!(crawl_delay_ms(text, "Mozilla/5.0 (compatible; foobot/1.0)"), None);
    let text = b"User-agent: foobot\nCrawl-delay: 3";
    assert_eq!(crawl_delay_ms(text, "Mozilla/5.0 (compatible; foobot/1.0)"), Some(3000.0));
}

/// Allow and Disallow, of paths and of whole URLs.
#[test]
fn all_vectors_of_rules() {
    for line in include_str!("../vectors/robots-rules.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let rules = robots_rules(case["text"].as_str().unwrap().as_bytes(), case["ua"].as_str().unwrap());
        for (list, is_allowed) in [("allowed", true), ("refused", false)] {
            for path in case[list].as_array().unwrap().iter().map(|path| path.as_str().unwrap()) {
                let name = format!("{}: {path}", case["name"]);
                assert_eq!(robots_allow(&rules, path), is_allowed, "{name}");
                assert_eq!(
                    robots_allow(&rules, &format!("https://a.example:8080{path}")),
                    is_allowed,
                    "{name}"
                );
            }
        }
    }
    let rules = robots_rules(b"User-agent: *\nDisallow: /", "x");
    for url in ["https://a.example", "https://a.example?x", "https://a.example#x", "", "?x", "a/b:c"] {
        assert!(!robots_allow(&rules, url), "{url}");
    }
}
