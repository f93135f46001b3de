//! Moments as people read and write them, in UTC and to the millisecond.
//!
//! It reads no clock: what is counted back is counted from a moment that the caller knows.

use std::str::FromStr;

use pinpriq_proto::time::{Span, Timestamp};

use crate::json::Json;
use crate::units::duration_ms;

/// A moment of which the state is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// The newest that there is.
    Latest,
    /// This one.
    At(Timestamp),
    /// This long before the newest.
    Before(Span),
}

/// A number below this, which is the year 2001, is one of seconds.
const MS_MIN: u64 = 978_307_200_000;

const RULE: &str = "give one such as `2026-11-26T14:03:00.250Z`, Unix milliseconds, `-10m` for ten \
                    minutes before the newest one, or `latest`";

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("latest") {
            return Ok(Self::Latest);
        }
        if let Some(back) = text.strip_prefix('-') {
            let back = duration_ms(back).map_err(|refusal| format!("{refusal}; {RULE}"))?;
            return Ok(Self::Before(Span::from_ms(back)));
        }
        let is_ms = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let ms = if is_ms { text.parse().ok() } else { ms_of(text) };
        if is_ms && ms.is_some_and(|ms| ms < MS_MIN) {
            return Err(format!(
                "`{text}` lies before 2001 in Unix milliseconds: if these are seconds, append 000"
            ));
        }
        if ms.is_none() && ms_of(&format!("{text}Z")).is_some() {
            return Err(format!(
                "the zone is missing in `{text}`: append Z for UTC, or such as +02:00"
            ));
        }
        let at = ms.map(|ms| Self::At(Timestamp::from_ms(ms)));
        at.ok_or_else(|| format!("`{text}` is no moment: {RULE}"))
    }
}

/// Returns a moment as the members of a report, by RFC 3339 and in Unix milliseconds.
pub(crate) fn members(
    name: &'static str,
    name_ms: &'static str,
    at: Timestamp,
) -> [(&'static str, Json); 2] {
    [(name, Json::text(shown(at))), (name_ms, Json::Number(at.ms()))]
}

/// Reads a moment by RFC 3339, since 1970.
pub(crate) fn ms_of(text: &str) -> Option<u64> {
    let at: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(at.as_millisecond()).ok()
}

/// Returns a moment by RFC 3339, in UTC and with milliseconds.
pub(crate) fn shown(at: Timestamp) -> String {
    let ms = i64::try_from(at.ms()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |at| format!("{at:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_date_milliseconds_or_counted_back() {
        let at = |ms| Ok(Moment::At(Timestamp::from_ms(ms)));
        let table = [
            ("latest", Ok(Moment::Latest)),
            ("LATEST", Ok(Moment::Latest)),
            ("2026-01-02T03:04:05.678Z", at(1_767_323_045_678)),
            ("2026-01-02T04:04:05.678+01:00", at(1_767_323_045_678)),
            ("1767323045678", at(1_767_323_045_678)),
            ("978307200000", at(978_307_200_000)),
            ("-10m", Ok(Moment::Before(Span::from_ms(600_000)))),
            ("-1h30m", Ok(Moment::Before(Span::from_ms(5_400_000)))),
            ("-250", Ok(Moment::Before(Span::from_ms(250)))),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<Moment>(), expected, "{text}");
        }
    }

    #[test]
    fn other_moments_are_refused_with_the_rule() {
        for text in ["", "-", "--5", "soon", "10m", "+5", "-1.5h", "1969-01-01T00:00:00Z", "-x"] {
            let refusal = text.parse::<Moment>().expect_err(text);
            assert!(refusal.contains("`latest`") && refusal.contains("`-10m`"), "{refusal}");
        }
    }

    #[test]
    fn what_is_missing_in_a_moment_is_told() {
        let table = [
            ("0", "append 000"),
            ("1767323045", "`1767323045` lies before 2001"),
            ("2026-01-02T03:04:05", "the zone is missing in `2026-01-02T03:04:05`"),
            ("2026-01-02 03:04:05.6", "append Z"),
        ];
        for (text, words) in table {
            let refusal = text.parse::<Moment>().expect_err(text);
            assert!(refusal.contains(words), "{refusal}");
        }
    }

    #[test]
    fn a_moment_is_shown_to_the_millisecond() {
        let at = Timestamp::from_ms(1_767_323_045_600);
        assert_eq!(shown(at), "2026-01-02T03:04:05.600Z");
        assert_eq!(shown(at).parse(), Ok(Moment::At(at)));
    }
}
