//! Header fields beside other readers: `sfv` for structured fields (RFC 9651), `httpdate` for dates.
//! `HOSTILE_TEXTS=1000000` compares as many texts.
//!
//! A text that one reader takes and the other does not is where they differ. The test therefore spoils texts
//! that servers sent by a letter or two.

use std::time::{Duration, SystemTime};

use autothrottle::{Hints, headers::Context};
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};

const WALL_MS: u64 = 1_795_203_840_000;

/// Name, what is left, and milliseconds until it is whole again, of each quota, in an order of its own.
type Quotas = Vec<(Option<String>, Option<u64>, Option<u64>)>;

fn ours(text: &str) -> Quotas {
    let context = Context { status: 200, wall_ms: Some(WALL_MS as i64), ..Context::default() };
    let hints = Hints::read([("ratelimit", text)], context);
    let mut quotas: Quotas = hints
        .quotas
        .iter()
        .map(|quota| (quota.policy.as_ref().map(ToString::to_string), quota.remaining, quota.reset_ms))
        .collect();
    quotas.sort();
    quotas
}

fn whole(item: Option<&BareItem>) -> Option<i64> {
    item?.as_integer().map(i64::from)
}

fn left(item: Option<&BareItem>) -> Option<u64> {
    whole(item).map(|number| number.try_into().unwrap_or(0))
}

fn millis(item: Option<&BareItem>) -> Option<u64> {
    whole(item)?.try_into().ok().map(|seconds: u64| seconds * 1000)
}

/// An item of drafts 8 and later: `"burst";r=0;t=4`.
fn of_item(item: &Item) -> Option<(Option<String>, Option<u64>, Option<u64>)> {
    let name = match &item.bare_item {
        BareItem::String(name) => name.as_str(),
        BareItem::Token(name) => name.as_str(),
        _ => return None,
    };
    let param = |key: &str| item.params.get(key);
    Some((Some(name.to_owned()), left(param("r")), millis(param("t"))))
}

/// The reading of sfv, as the drafts want it understood: a list of quotas, else the dictionary of draft 7.
fn theirs(text: &str) -> Quotas {
    if let Ok(list) = Parser::new(text).parse::<List>() {
        let items: Option<Vec<&Item>> = list
            .iter()
            .map(|entry| if let ListEntry::Item(item) = entry { Some(item) } else { None })
            .collect();
        let is_told = |item: &&Item| item.params.contains_key("r") || item.params.contains_key("t");
        if let Some(items) = items.filter(|items| items.iter().any(is_told)) {
            let quotas: Option<Quotas> = items.into_iter().map(of_item).collect();
            if let Some(mut quotas) = quotas {
                quotas.sort();
                return quotas;
            }
        }
    }
    let Ok(members) = Parser::new(text).parse::<Dictionary>() else { return vec![] };
    let value = |key: &str| match members.get(key)? {
        ListEntry::Item(item) => Some(&item.bare_item),
        ListEntry::InnerList(_) => None,
    };
    let (remaining, reset) = (left(value("remaining")), millis(value("reset")));
    if remaining.is_some() || reset.is_some() { vec![(None, remaining, reset)] } else { vec![] }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as usize % most.max(1)
    }
}

const SENT: [&str; 10] = [
    r#""default";r=50;t=30"#, r#""burst";r=0;t=2,"daily";r=0;t=5400"#,
    r#""a \"b\" \\";r=1, token;t=5;pk=:dHJpYWw=:"#,
    r#""hour";r=3;t=9;qu="requests";x;y=?1;z=1.5, "day";r=7"#, "limit=100, remaining=50, reset=5",
    "limit=10;w=1, remaining=0;x=?0, reset=10, limit=9", r#"limit=3, remaining=0, reset=4, policy="3;w=4""#,
    r#"("a" "b");r=1, "c";r=2"#, r#""a";r=1;qu=%"f%c3%bc";t=@5, "b";t=7"#,
    r#""a";r=1;r=2;t=-3, "b";r=-4;t=999999999999999"#,
];

fn texts() -> impl Iterator<Item = String> {
    let count = std::env::var("HOSTILE_TEXTS").map_or(20_000, |count| count.parse().expect("a number"));
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    (0..count).map(move |_| {
        let mut text = SENT[dice.below(SENT.len())].as_bytes().to_vec();
        for _ in 0..dice.below(4) {
            let at = dice.below(text.len());
            match dice.below(4) {
                0 => text[at] = 32 + dice.below(95) as u8,
                1 => text.insert(at, b" \t,;=\"\\()?:-.*19aZ_@%"[dice.below(21)]),
                2 => drop(text.remove(at)),
                _ => text.truncate(at + 1),
            }
            if text.is_empty() {
                text.push(b' ');
            }
        }
        String::from_utf8(text).expect("ASCII")
    })
}

#[test]
fn structured_fields_are_read_as_sfv_reads_them() {
    let mut wrong = Vec::new();
    for text in SENT.map(String::from).into_iter().chain(texts()) {
        // Tabs around a field are HTTP's. The bytes of base64 and of display strings are no reader's
        // business.
        let text = text.trim_matches(['\t', ' ']);
        let [ours, theirs] = [ours(text), theirs(text)];
        let is_lenient = theirs.is_empty() && (text.contains(':') || text.contains("%\""));
        if ours != theirs && !is_lenient {
            wrong.push(format!("{text}\n  ours {ours:?}\n  sfv  {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ, as\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

/// The forms that RFC 9110 §5.6.7 knows, whose year has four digits.
#[test]
fn dates_are_read_as_httpdate_reads_them() {
    let mut dice = Dice(7);
    for _ in 0..20_000 {
        let seconds = WALL_MS / 1000 + 1 + dice.below(300 * 86_400) as u64;
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let fixdate = httpdate::fmt_http_date(time);
        let [weekday, day, month, year, clock, _] = fixdate.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{fixdate}")
        };
        let day_of_two = format!("{:>2}", day.trim_start_matches('0'));
        let asctime = format!("{} {month} {day_of_two} {clock} {year}", weekday.trim_end_matches(','));
        for text in [fixdate.clone(), asctime] {
            assert!(httpdate::parse_http_date(&text).is_ok_and(|read| read == time), "{text}");
            let context = Context { status: 503, wall_ms: Some(WALL_MS as i64), ..Context::default() };
            let asked = Hints::read([("retry-after", &text[..])], context).delay_ms;
            assert_eq!(asked, Some(seconds * 1000 - WALL_MS), "{text}");
        }
    }
}
