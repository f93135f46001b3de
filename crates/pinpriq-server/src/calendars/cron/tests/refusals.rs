//! What is refused, and in which words.

use crate::calendars::{Cron, EXPRESSION_BYTES_MAX};

#[track_caller]
fn refused(expression: &str, zone: Option<&str>) -> String {
    let refusal = Cron::new(expression, zone).expect_err(expression);
    refusal.to_string()
}

#[test]
fn refusals_say_what_was_given_and_what_is_allowed() {
    let fields = "a cron expression has five fields (minute, hour, day of month, month, day of \
                  week), and this one has";
    let words = "a cron expression of one word is @hourly, @daily, @midnight, @weekly, @monthly, \
                 @yearly or @annually, not";
    let rows = [
        ("", format!("{fields} 0")),
        ("* * * *", format!("{fields} 4")),
        ("0 * * * * *", format!("{fields} 6")),
        ("0 0 0 1 1 * 2030", format!("{fields} 7")),
        ("@reboot", format!("{words} \"@reboot\"")),
        ("@every 5m", format!("{words} \"@every 5m\"")),
        ("60 * * * *", "minute is 0 to 59, not \"60\"".into()),
        ("* 24 * * *", "hour is 0 to 23, not \"24\"".into()),
        ("* * 0 * *", "day of month is 1 to 31, not \"0\"".into()),
        ("* * * 13 *", "month is 1 to 12 or jan to dec, not \"13\"".into()),
        ("* * * * 8", "day of week is 0 to 7 or sun to sat, not \"8\"".into()),
        ("* * * january *", "month is 1 to 12 or jan to dec, not \"january\"".into()),
        ("* * * * jan", "day of week is 0 to 7 or sun to sat, not \"jan\"".into()),
        ("+5 * * * *", "minute is 0 to 59, not \"+5\"".into()),
        ("-5 * * * *", "minute is 0 to 59, not \"\"".into()),
        ("5, * * * *", "minute is 0 to 59, not \"\"".into()),
        ("1-2-3 * * * *", "minute is 0 to 59, not \"2-3\"".into()),
        ("256 * * * *", "minute is 0 to 59, not \"256\"".into()),
        ("** * * * *", "minute is 0 to 59, not \"**\"".into()),
        ("* * ? * *", "day of month is 1 to 31, not \"?\"".into()),
        ("* * L * *", "day of month is 1 to 31, not \"L\"".into()),
        ("* * * * 5#2", "day of week is 0 to 7 or sun to sat, not \"5#2\"".into()),
        ("\u{661} * * * *", "minute is 0 to 59, not \"\u{661}\"".into()),
        ("\u{1} * * * *", "minute is 0 to 59, not \"\\u{1}\"".into()),
        ("*/0 * * * *", "a step of minute is 1 to 59, not \"0\"".into()),
        ("*/60 * * * *", "a step of minute is 1 to 59, not \"60\"".into()),
        ("*/ * * * *", "a step of minute is 1 to 59, not \"\"".into()),
        ("* */2/3 * * *", "a step of hour is 1 to 23, not \"2/3\"".into()),
        (
            "5/10 * * * *",
            "a step of minute follows * or a range, as in 5-59/10, not \"5/10\"".into(),
        ),
        (
            "* 22-2 * * *",
            "a range of hour goes from the lower to the higher value, unlike \"22-2\"".into(),
        ),
        (
            "* * * * sat-mon",
            "a range of day of week goes from the lower to the higher value, unlike \"sat-mon\""
                .into(),
        ),
        (
            "0 0 30 2 *",
            "a cron expression matches some date, and \"0 0 30 2 *\" matches none".into(),
        ),
        (
            "* * 31 4,6,9,11 *",
            "a cron expression matches some date, and \"* * 31 4,6,9,11 *\" matches none".into(),
        ),
    ];
    for (expression, sentence) in rows {
        assert_eq!(refused(expression, None), sentence, "{expression}");
    }
}

#[test]
fn zones_are_iana_names() {
    for zone in ["", "Mars/Olympus", "CEST", "+02:00", "UTC+2", "Etc/Unknown", "Europe/Berlin "] {
        let sentence = format!("a zone is an IANA name such as Europe/Berlin or UTC, not {zone:?}");
        assert_eq!(refused("@daily", Some(zone)), sentence);
    }
    for zone in ["UTC", "utc", "Etc/UTC", "europe/berlin", "Asia/Calcutta"] {
        assert!(Cron::new("@daily", Some(zone)).is_ok(), "{zone}");
    }
}

#[test]
fn texts_are_limited_and_shortened() {
    let long = "5".repeat(100);
    let shown = format!("minute is 0 to 59, not \"{}…\"", "5".repeat(48));
    assert_eq!(refused(&format!("{long} * * * *"), None), shown);
    let fill = |bytes: usize| format!("* * * * *{}", " ".repeat(bytes - 9));
    assert!(Cron::new(&fill(EXPRESSION_BYTES_MAX), None).is_ok());
    let sentence = "a cron expression has at most 512 bytes, and this one has 513";
    assert_eq!(refused(&fill(EXPRESSION_BYTES_MAX + 1), None), sentence);
}

#[test]
fn every_value_may_be_listed() {
    let list = |from: u32, to: u32| {
        (from..=to).map(|value| value.to_string()).collect::<Vec<_>>().join(",")
    };
    let fields = [list(0, 59), list(0, 23), list(1, 31), list(1, 12), list(0, 7)];
    assert!(Cron::new(&fields.join(" "), None).is_ok());
}
