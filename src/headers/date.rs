//! Dates as servers write them: RFC 9110 §5.6.7's three forms, RFC 3339, and JavaScript's `Date#toString`.
//!
//! The traps: a host's date parser reads `-5` and `1, 1` as dates of 2001 and rolls 31 February over into March; a
//! weekday that is wrong is not worth a refusal; two digits of a year that are more than fifty years ahead mean the
//! last century. Words are told apart by their shape, so one reader serves all forms but RFC 3339.

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Milliseconds since 1970; `None` for what is no date. `now_ms` decides the century of a two-digit year.
pub(super) fn parse(text: &str, now_ms: i64) -> Option<i64> {
    let text = text.trim();
    if text.len() > 80 || !text.is_ascii() {
        return None;
    }
    if text.as_bytes().get(4) == Some(&b'-') {
        return rfc3339(text);
    }
    let lower = text.to_ascii_lowercase();
    let (mut year, mut month, mut day, mut time, mut zone) = (None, None, None, None, None);
    for (index, word) in lower.split([' ', ',']).filter(|word| !word.is_empty()).enumerate() {
        if word.starts_with('(') {
            break; // the name of the zone, in V8's words
        } else if index == 0 && is_weekday(word) {
        } else if word.contains(':') {
            set(&mut time, clock(word)?)?;
        } else if let Some(number) = month_of(word) {
            set(&mut month, number)?;
        } else if let Some((d, rest)) = word.split_once('-').filter(|(d, _)| !d.is_empty() && is_number(d)) {
            let (m, y) = rest.split_once('-')?;
            set(&mut day, whole(d)?)?;
            set(&mut month, month_of(m)?)?;
            set(&mut year, if y.len() == 2 { century(whole(y)?, now_ms) } else { whole(y)? })?;
        } else if is_number(word) && word.len() == 4 && day.is_some() {
            set(&mut year, whole(word)?)?;
        } else if is_number(word) && word.len() <= 2 {
            set(&mut day, whole(word)?)?;
        } else {
            set(&mut zone, offset(word)?)?;
        }
    }
    instant(year?, month?, day?, time?, zone.unwrap_or(0))
}

/// `2026-11-20T19:44:45.123Z`, or with an offset.
fn rfc3339(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.split('-').map(whole);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let end = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(end);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let millis = format!("{fraction:0<3}").get(..3).and_then(whole)?;
    let zone = if zone.is_empty() { 0 } else { offset(&zone.to_ascii_lowercase().replace(':', ""))? };
    Some(instant(year, month, day, clock(time)?, zone)? + millis)
}

fn set(place: &mut Option<i64>, value: i64) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn whole(word: &str) -> Option<i64> {
    if is_number(word) && word.len() <= 9 { word.parse().ok() } else { None }
}

fn is_weekday(word: &str) -> bool {
    word.len() >= 3 && WEEKDAYS.contains(&&word[..3]) && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn month_of(word: &str) -> Option<i64> {
    MONTHS.iter().position(|&month| month == word.to_ascii_lowercase()).map(|index| index as i64 + 1)
}

/// Seconds of the day. A leap second counts as the last one.
fn clock(word: &str) -> Option<i64> {
    let mut parts = word.split(':').map(whole);
    let (h, m, s) = (parts.next()??, parts.next()??, parts.next()??);
    (parts.next().is_none() && h < 24 && m < 60 && s <= 60).then_some(h * 3600 + m * 60 + s.min(59))
}

/// `gmt`, `z`, `+0100`, `gmt+0100`: seconds east of Greenwich.
fn offset(word: &str) -> Option<i64> {
    let rest = ["gmt", "utc", "z"].iter().find_map(|zone| word.strip_prefix(zone)).unwrap_or(word);
    if rest.is_empty() {
        return Some(0);
    }
    let sign = match rest.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = whole(&rest[1..]).filter(|_| rest.len() == 5)?;
    Some(sign * (digits / 100 * 3600 + digits % 100 * 60))
}

/// RFC 9110 §5.6.7: more than fifty years in the future means the century before.
fn century(two_digits: i64, now_ms: i64) -> i64 {
    let this_year = 1970 + now_ms / 31_556_952_000;
    let year = this_year - this_year % 100 + two_digits;
    if year > this_year + 50 { year - 100 } else { year }
}

fn instant(year: i64, month: i64, day: i64, seconds: i64, zone: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days_in_month).contains(&day) || !(1..=9999).contains(&year) {
        return None;
    }
    // Days since 1970 with the year beginning in March, so that the leap day is the last one.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    Some((days * 86_400 + seconds - zone) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_instant_in_every_form() {
        let forms = [
            "Fri, 20 Nov 2026 19:44:30 GMT",
            "Friday, 20-Nov-26 19:44:30 GMT",
            "Fri Nov 20 19:44:30 2026",
            "fri, 20 nov 2026 19:44:30 gmt",
            "Mon, 20 Nov 2026 19:44:30 GMT",
            "20 Nov 2026 19:44:30 -0000",
            "Fri, 20 Nov 2026 20:44:30 +0100",
            "2026-11-20T19:44:30Z",
            "2026-11-20T19:44:30.000Z",
            "2026-11-20T14:44:30-05:00",
            "Fri Nov 20 2026 20:44:30 GMT+0100 (Central European Standard Time)",
        ];
        for form in forms {
            assert_eq!(parse(form, 1_795_203_840_000), Some(1_795_203_870_000), "{form}");
        }
        assert_eq!(parse("1970-01-01T00:00:00.5Z", 0), Some(500));
        assert_eq!(parse("Thu, 29 Feb 2024 00:00:00 GMT", 0), Some(1_709_164_800_000));
    }

    #[test]
    fn what_is_no_date() {
        let not = [
            "",
            "-5",
            "1, 1",
            "soon",
            "0x10",
            "Fri, 31 Feb 2026 19:44:28 GMT",
            "Fri, 20 Nov 2026",
            "20 Nov 2026 25:00:00 GMT",
            "20 20 Nov 2026 19:44:30 GMT",
            "2026-13-01T00:00:00Z",
            "2026-11-20",
            "Fri, 20 Nov 2026 19:44:30 CEST",
            "2026-11-20Tx",
            "ééé, 20 Nov 2026 19:44:30 GMT",
        ];
        for text in not {
            assert_eq!(parse(text, 1_795_203_840_000), None, "{text}");
        }
    }
}
