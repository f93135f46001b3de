//! What comes before the body of an answer: status, content type, header fields.
//!
//! The door writes a head in front of the bytes of each answer, and the part that turns these into
//! a response takes it off again.

/// What the bytes of a body are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// There is no body.
    Nothing,
    Json,
    /// A refusal: RFC 9457.
    Problem,
    /// The payload of a task.
    Octets,
}

impl Content {
    const ALL: [Self; 4] = [Self::Nothing, Self::Json, Self::Problem, Self::Octets];

    /// Returns the media type.
    pub(crate) const fn media_type(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Json => Some("application/json"),
            Self::Problem => Some("application/problem+json"),
            Self::Octets => Some("application/octet-stream"),
        }
    }
}

/// The head of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) content: Content,
    /// Further header fields: names and values.
    pub(crate) fields: Vec<(&'static str, String)>,
    /// Whether the answer hands tasks over.
    pub(crate) hands_over: bool,
}

/// The header fields that an answer may have besides its content type, each with the field of a
/// task that it has.
pub(crate) const FIELDS: [(&str, &str); 9] = [
    ("pinpriq-id", "id"),
    ("pinpriq-receipt", "receipt"),
    ("pinpriq-queue", "queue"),
    ("pinpriq-key", "key"),
    ("pinpriq-priority", "priority"),
    ("pinpriq-attempts", "attempts"),
    ("pinpriq-failures", "failures"),
    ("pinpriq-state", "state"),
    ("pinpriq-lease-until", "lease_until"),
];

impl Head {
    /// Returns a head without further fields.
    pub(crate) const fn new(status: u16, content: Content) -> Self {
        Self { status, content, fields: Vec::new(), hands_over: false }
    }

    /// Appends the head.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.status.to_le_bytes());
        out.push(self.content as u8);
        out.push(u8::from(self.hands_over));
        let count = u8::try_from(self.fields.len()).unwrap_or(u8::MAX);
        out.push(count);
        for (name, value) in self.fields.iter().take(usize::from(count)) {
            let place = FIELDS.iter().position(|(known, _)| known == name).unwrap_or_default();
            out.push(u8::try_from(place).unwrap_or_default());
            let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&value.as_bytes()[..usize::from(length)]);
        }
    }

    /// Reads the head in front of `bytes`. Returns it and the number of its bytes.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let [low, high, content, hands_over, count, ref rest @ ..] = *bytes else { return None };
        let mut head =
            Self::new(u16::from_le_bytes([low, high]), *Content::ALL.get(usize::from(content))?);
        head.hands_over = hands_over != 0;
        let mut rest: &[u8] = rest;
        for _ in 0..count {
            let [place, low, high, ref after @ ..] = *rest else { return None };
            let (value, after) =
                after.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
            let (name, _) = FIELDS.get(usize::from(place))?;
            head.fields.push((name, String::from_utf8_lossy(value).into_owned()));
            rest = after;
        }
        Some((head, bytes.len() - rest.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_from_their_bytes() {
        let mut head = Head::new(201, Content::Octets);
        head.fields = FIELDS.iter().map(|(name, _)| (*name, format!("of {name}"))).collect();
        for hands_over in [false, true] {
            head.hands_over = hands_over;
            let mut bytes = Vec::new();
            head.write(&mut bytes);
            let length = bytes.len();
            bytes.extend_from_slice(b"rest");
            assert_eq!(Head::read(&bytes), Some((head.clone(), length)));
            for cut in 0..length {
                assert_eq!(Head::read(&bytes[..cut]), None, "{cut}");
            }
        }
    }
}
