//! Names in paths and values in queries: percent-encoded bytes.

use super::super::problem::Problem;

/// Returns the bytes that a percent-encoded text stands for. In a query a plus is a plus.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let decoded = match *rest {
            [high, low, ..] => digit(high).zip(digit(low)),
            _ => None,
        };
        let Some((high, low)) = decoded else {
            let sentence = "a % in the target is not followed by two hexadecimal digits: write %25 \
                            for the sign itself";
            return Err(Problem::bad(sentence));
        };
        bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
        rest = &rest[2..];
    }
    Ok(bytes)
}

/// Returns a text of the target as text.
pub(crate) fn decode_text(text: &str) -> Result<String, Problem> {
    let bytes = decode(text)?;
    String::from_utf8(bytes).map_err(|_| Problem::bad("the name of a parameter is not UTF-8"))
}

/// Splits the last segment of a path from the verb after its last colon.
pub(crate) fn split_verb(path: &str) -> (&str, Option<&str>) {
    let last = path.rfind('/').map_or(0, |slash| slash + 1);
    match path[last..].rfind(':') {
        Some(colon) => (&path[..last + colon], Some(&path[last + colon + 1..])),
        None => (path, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stand_for_bytes() {
        assert_eq!(decode("a%2Fb+c%ff%3a").unwrap(), b"a/b+c\xff:");
        for wrong in ["%", "%1", "%g0", "a%0", "%-1"] {
            assert!(decode(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_last_colon_of_the_last_segment_begins_the_verb() {
        assert_eq!(split_verb("/v1/queues/a:b/tasks"), ("/v1/queues/a:b/tasks", None));
        assert_eq!(split_verb("/v1/queues/a:b:take"), ("/v1/queues/a:b", Some("take")));
        assert_eq!(split_verb("/v1/queues/a%3Ab"), ("/v1/queues/a%3Ab", None));
    }
}
