//! Dates as servers write them: RFC 9110 §5.6.7's three forms, ISO 8601 (RFC 3339, and without seconds), and
//! JavaScript's `Date#toString`.
//!
//! A host's date parser reads `-5` and `1, 1` as dates of 2001 and rolls 31 February over into March. A
//! weekday that is wrong is not worth a refusal. Two digits of a year that are more than fifty years ahead
//! mean the last century. Words differ by their shape, so one reader serves all forms but ISO's.

use crate::scan::{Scan, is, is_digit, is_letter, whole};

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// No form is longer, not even with the name of its zone.
const MOST_BYTES: usize = 80;

/// Milliseconds since 1970; `None` for what is no date. `now_ms` decides the century of a two-digit year.
pub(super) fn parse(text: &[u8], now_ms: i64) -> Option<i64> {
    let mut scan = Scan(text.trim_ascii());
    if scan.0.len() > MOST_BYTES {
        return None;
    }
    if scan.0.get(4) == Some(&b'-') {
        return iso(&mut scan);
    }
    let (mut year, mut month, mut day, mut time, mut zone) = (None, None, None, None, None);
    let mut is_first = true;
    loop {
        scan.take(|byte| byte == b' ' || byte == b',');
        match scan.peek() {
            0 if scan.is_done() => break,
            b'(' => break, // the name of the zone, in V8's words
            b'0'..=b'9' => {
                let digits = scan.take(is_digit);
                let number = number(digits)?;
                match scan.peek() {
                    b':' => set(&mut time, clock(number, &mut scan, true)?)?,
                    b'-' => {
                        set(&mut day, number)?;
                        let (m, y) = month_and_year(&mut scan, now_ms)?;
                        set(&mut month, m)?;
                        set(&mut year, y)?;
                    }
                    _ if digits.len() <= 2 => set(&mut day, number)?,
                    _ if digits.len() == 4 && day.is_some() => set(&mut year, number)?,
                    _ => return None,
                }
            }
            b'+' | b'-' => set(&mut zone, zone_of(&mut scan)?)?,
            _ => match word(&mut scan)? {
                name if is_first && is_weekday(name) => {}
                name if is_zone(name) => set(&mut zone, zone_of(&mut scan)?)?,
                name => set(&mut month, month_of(name)?)?,
            },
        }
        is_first = false;
    }
    instant(year?, month?, day?, time?, zone.unwrap_or(0))
}

/// `2026-11-20T19:44:45.123Z`, or with an offset, or without seconds.
fn iso(scan: &mut Scan) -> Option<i64> {
    let year = number(scan.take(is_digit))?;
    let month = scan.eat(b'-').then(|| number(scan.take(is_digit)))??;
    let day = scan.eat(b'-').then(|| number(scan.take(is_digit)))??;
    if !(scan.eat(b'T') || scan.eat(b't') || scan.eat(b' ')) {
        return None;
    }
    let hour = number(scan.take(is_digit))?;
    let time = clock(hour, scan, false)?;
    let mut millis = 0;
    if scan.eat(b'.') {
        let digits = scan.take(is_digit);
        let digit = |place: usize| digits.get(place).map_or(0, |digit| i64::from(digit - b'0'));
        millis = digit(0) * 100 + digit(1) * 10 + digit(2);
    }
    scan.skip_blanks();
    let name = scan.take(is_letter);
    let zone = if name.is_empty() || is_zone(name) { zone_of(scan)? } else { return None };
    scan.is_done().then_some(())?;
    Some(instant(year, month, day, time, zone)? + millis)
}

/// `-Nov-26`, which follows the day in RFC 850's form.
fn month_and_year(scan: &mut Scan, now_ms: i64) -> Option<(i64, i64)> {
    scan.eat(b'-');
    let month = month_of(word(scan)?)?;
    let digits = scan.eat(b'-').then(|| scan.take(is_digit))?;
    let year = number(digits)?;
    Some((month, if digits.len() == 2 { century(year, now_ms) } else { year }))
}

fn set(place: &mut Option<i64>, value: i64) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

fn word<'a>(scan: &mut Scan<'a>) -> Option<&'a [u8]> {
    Some(scan.take(is_letter)).filter(|word| !word.is_empty())
}

fn number(digits: &[u8]) -> Option<i64> {
    whole(digits).filter(|_| digits.len() <= 9).map(|number| number as i64)
}

fn is_weekday(word: &[u8]) -> bool {
    word.get(..3).is_some_and(|start| WEEKDAYS.iter().any(|day| is(start, day)))
}

fn month_of(word: &[u8]) -> Option<i64> {
    MONTHS.iter().position(|month| is(word, month)).map(|index| index as i64 + 1)
}

/// Seconds of the day, from behind the hour. A leap second counts as the last one.
fn clock(hour: i64, scan: &mut Scan, needs_seconds: bool) -> Option<i64> {
    let mut part = || scan.eat(b':').then(|| number(scan.take(is_digit)));
    let minute = part()??;
    let second = match part() {
        None if needs_seconds => return None,
        None => 0,
        Some(second) => second?,
    };
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second.min(59))
}

fn is_zone(word: &[u8]) -> bool {
    ["gmt", "utc", "z"].iter().any(|zone| is(word, zone))
}

/// `+0100`, `+01:00` or no offset, behind the name of a zone: seconds east of Greenwich.
fn zone_of(scan: &mut Scan) -> Option<i64> {
    let sign = match scan.peek() {
        b'+' => 1,
        b'-' => -1,
        _ => return Some(0),
    };
    scan.eat(b'+');
    scan.eat(b'-');
    let digits = scan.take(is_digit);
    let (hours, minutes) = match digits.len() {
        4 => digits.split_at(2),
        2 if scan.eat(b':') => (digits, scan.take(is_digit)),
        _ => return None,
    };
    (minutes.len() == 2).then_some(sign * (number(hours)? * 3600 + number(minutes)? * 60))
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
        2 => 28 + i64::from(is_leap),
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
            "2026-11-20 19:44:30 UTC",
            "2026-11-20 20:44:30 +0100",
            "Fri Nov 20 2026 20:44:30 GMT+0100 (Central European Standard Time)",
        ];
        for form in forms {
            assert_eq!(parse(form.as_bytes(), 1_795_203_840_000), Some(1_795_203_870_000), "{form}");
        }
        assert_eq!(parse(b"1970-01-01T00:00:00.5Z", 0), Some(500));
        assert_eq!(parse(b"1970-01-01T00:01Z", 0), Some(60_000));
        assert_eq!(parse(b"Thu, 29 Feb 2024 00:00:00 GMT", 0), Some(1_709_164_800_000));
    }

    #[test]
    fn texts_that_are_no_date() {
        let not = [
            "", "-5", "1, 1", "soon", "0x10", "Fri, 31 Feb 2026 19:44:28 GMT", "Fri, 20 Nov 2026",
            "20 Nov 2026 19:44 GMT", "20 Nov 2026 25:00:00 GMT", "20 20 Nov 2026 19:44:30 GMT",
            "2026-13-01T00:00:00Z", "2026-11-20", "2026-11-20T19", "2026-11-20T19:44:30+1",
            "2026-11-20T19:44:30 CEST", "Fri, 20 Nov 2026 19:44:30 CEST", "Fri, 20 Nov 2026 19:44:30 GMT\0",
            "2026-11-20Tx", "ééé, 20 Nov 2026 19:44:30 GMT",
        ];
        for text in not {
            assert_eq!(parse(text.as_bytes(), 1_795_203_840_000), None, "{text}");
        }
    }
}
