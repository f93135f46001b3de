//! Times and sizes as people write them: `30s`, `1h30m`, `64MiB`, and numbers as they read them.
//!
//! Bounds of a setting or an option are not known here.

/// The units of time, the longest first, and how many milliseconds each has.
const TIMES: &[(&str, u64)] =
    &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The units of size, in lower case, and how many bytes each has.
const SIZES: &[(&str, u64)] = &[
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

const TIME_EXAMPLE: &str = "give a time such as `500ms`, `30s` or `1h30m`";
const SIZE_EXAMPLE: &str = "give a size such as `4096`, `64MiB` or `1GB`";

/// Returns the milliseconds of a time: a plain number of them, or numbers with the units d, h, m, s
/// and ms, the longest first.
pub(crate) fn duration_ms(text: &str) -> Result<u64, String> {
    let too_long = || format!("`{text}` is too long a time: {TIME_EXAMPLE}");
    refuse_other_numbers(text, "time", TIME_EXAMPLE)?;
    if is_number(text) {
        return text.parse().map_err(|_| too_long());
    }
    let (mut rest, mut units, mut total) = (text, TIMES, 0_u64);
    while !rest.is_empty() {
        let (number, unit, behind) =
            first_part(rest).ok_or_else(|| format!("`{text}` is not a time: {TIME_EXAMPLE}"))?;
        if unit.is_empty() {
            return Err(format!("`{text}` has a number without a unit: {TIME_EXAMPLE}"));
        }
        let place = units.iter().position(|(name, _)| *name == unit).ok_or_else(|| {
            if TIMES.iter().any(|(name, _)| *name == unit) {
                format!("`{text}` has its units out of order or twice: {TIME_EXAMPLE}")
            } else {
                format!(
                    "`{text}` has the unknown unit `{unit}`; the units are d, h, m, s and ms: \
                     {TIME_EXAMPLE}"
                )
            }
        })?;
        let (tried, left) = units.split_at(place + 1);
        let length = tried.last().map_or(0, |(_, length)| *length);
        let number: u64 = number.parse().map_err(|_| too_long())?;
        let part = number.checked_mul(length).ok_or_else(too_long)?;
        total = total.checked_add(part).ok_or_else(too_long)?;
        (rest, units) = (behind, left);
    }
    if text.is_empty() { Err(format!("`` is not a time: {TIME_EXAMPLE}")) } else { Ok(total) }
}

/// Returns a time for people, in its two longest units.
pub(crate) fn brief(ms: u64) -> String {
    let mut rest = ms;
    let mut parts = Vec::new();
    for (unit, length) in TIMES {
        if rest >= *length && parts.len() < 2 {
            parts.push(format!("{}{unit}", rest / length));
        } else if !parts.is_empty() {
            break;
        }
        rest %= length;
    }
    // Who waits for seconds does not count in milliseconds.
    if parts.len() == 2 && ms >= 1_000 && parts.last().is_some_and(|part| part.ends_with("ms")) {
        parts.pop();
    }
    if parts.is_empty() { "0ms".to_owned() } else { parts.concat() }
}

/// Returns the bytes of a size: a plain number of them, or a number with a unit. KB, MB and GB are
/// powers of 1000, and KiB, MiB and GiB powers of 1024.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let too_large = || format!("`{text}` is too large a size: {SIZE_EXAMPLE}");
    refuse_other_numbers(text, "size", SIZE_EXAMPLE)?;
    if is_number(text) {
        return text.parse().map_err(|_| too_large());
    }
    let (number, unit) = match first_part(text) {
        Some((number, unit, "")) => (number, unit.to_ascii_lowercase()),
        _ => return Err(format!("`{text}` is not a size: {SIZE_EXAMPLE}")),
    };
    let found = SIZES.iter().find(|(name, _)| *name == unit);
    let (_, length) = found.ok_or_else(|| {
        format!(
            "`{text}` has an unknown unit; the units are B, KB, MB, GB (powers of 1000) and KiB, \
             MiB, GiB (powers of 1024): {SIZE_EXAMPLE}"
        )
    })?;
    let number: u64 = number.parse().map_err(|_| too_large())?;
    number.checked_mul(*length).ok_or_else(too_large)
}

/// Returns a number with commas between thousands, for people.
pub(crate) fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && place % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number of things, for people. The name is that of one.
pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", with_commas(number), if number == 1 { "" } else { "s" })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Refuses negative numbers and fractions, each with its own remedy.
fn refuse_other_numbers(text: &str, what: &str, example: &str) -> Result<(), String> {
    let unsigned = text.strip_prefix('-');
    if unsigned.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit())) {
        return Err(format!("`{text}` is negative, which no {what} is: {example}"));
    }
    let fraction = text.split_once(['.', ',']).is_some_and(|(whole, rest)| {
        whole.bytes().any(|byte| byte.is_ascii_digit())
            || rest.starts_with(|first: char| first.is_ascii_digit())
    });
    if fraction {
        return Err(format!(
            "`{text}` has a fraction; use whole numbers of a smaller unit: {example}"
        ));
    }
    Ok(())
}

/// Splits off the first number and its unit.
fn first_part(text: &str) -> Option<(&str, &str, &str)> {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end).filter(|(number, _)| !number.is_empty())?;
    let end = rest.find(|it: char| it.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, behind) = rest.split_at_checked(end)?;
    Some((number, unit, behind))
}

#[cfg(test)]
mod tests {
    use super::{brief, bytes, counted, duration_ms, with_commas};

    #[test]
    fn thousands_are_kept_apart() {
        let table = [(0, "0"), (999, "999"), (1_000, "1,000"), (123_456, "123,456")];
        for (number, expected) in table {
            assert_eq!(with_commas(number), expected);
        }
        for (number, expected) in [(0, "0 tasks"), (1, "1 task"), (4_813, "4,813 tasks")] {
            assert_eq!(counted(number, "task"), expected);
        }
    }

    #[test]
    fn times_have_units_or_are_milliseconds() {
        let table = [
            ("0", 0),
            ("1500", 1_500),
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("90m", 5_400_000),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, expected) in table {
            assert_eq!(duration_ms(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn people_read_two_units() {
        let table = [
            (0, "0ms"),
            (7, "7ms"),
            (1_999, "1s"),
            (60_000, "1m"),
            (61_999, "1m1s"),
            (3_600_001, "1h"),
            (5_430_000, "1h30m"),
            (200_000_000, "2d7h"),
        ];
        for (ms, expected) in table {
            assert_eq!(brief(ms), expected);
        }
    }

    #[test]
    fn sizes_have_units_or_are_bytes() {
        let table = [
            ("0", 0),
            ("4096", 4_096),
            ("7B", 7),
            ("1KB", 1_000),
            ("64MB", 64_000_000),
            ("1GB", 1_000_000_000),
            ("1KiB", 1_024),
            ("64MiB", 67_108_864),
            ("4gib", 4_294_967_296),
        ];
        for (text, expected) in table {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_times_are_refused_with_the_value_and_an_example() {
        let table = [
            ("", "is not a time"),
            ("soon", "is not a time"),
            ("s30", "is not a time"),
            (" 30s", "is not a time"),
            ("+5", "is not a time"),
            ("-", "is not a time"),
            ("-5", "is negative"),
            ("-5s", "is negative"),
            ("1.5", "has a fraction"),
            ("1,5s", "has a fraction"),
            (".5s", "has a fraction"),
            ("30x", "the unknown unit `x`"),
            ("30S", "the unknown unit `S`"),
            ("1h 30m", "the unknown unit `h `"),
            ("3µs", "the unknown unit `µs`"),
            ("30m1h", "out of order or twice"),
            ("1s1s", "out of order or twice"),
            ("1h30", "a number without a unit"),
            ("18446744073709551616", "too long"),
            ("18446744073709551616s", "too long"),
            ("18446744073709551615s", "too long"),
            ("18446744073709551s1000ms", "too long"),
        ];
        for (text, words) in table {
            let refusal = duration_ms(text).expect_err(text);
            assert!(refusal.starts_with(&format!("`{text}` ")), "{refusal}");
            assert!(refusal.contains(words) && refusal.contains("`1h30m`"), "{refusal}");
        }
    }

    #[test]
    fn other_sizes_are_refused_with_the_value_and_an_example() {
        let table = [
            ("", "is not a size"),
            ("MiB", "is not a size"),
            ("1MiB1KiB", "is not a size"),
            ("-5", "is negative"),
            ("1.5GB", "has a fraction"),
            ("64M", "an unknown unit"),
            ("64 MiB", "an unknown unit"),
            ("18446744073709551616", "too large"),
            ("18446744074GB", "too large"),
        ];
        for (text, words) in table {
            let refusal = bytes(text).expect_err(text);
            assert!(refusal.starts_with(&format!("`{text}` ")), "{refusal}");
            assert!(refusal.contains(words) && refusal.contains("`64MiB`"), "{refusal}");
        }
    }
}
