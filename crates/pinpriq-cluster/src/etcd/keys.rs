//! The keys of a log, the texts in them, and the keys of the registry. Nothing here knows what they
//! are compared for.

use std::fmt;

use crate::remote::records::read_instance;
use crate::{Instance, ShardNumber};
use pinpriq_store::ledger::{Seq, Tenure, Term, Writer};
use prost::bytes::Bytes;

/// The keys of the log of one shard.
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    /// The name must have been checked, and the shard must have at most four digits.
    pub(crate) fn new(name: &str, shard: u16) -> Self {
        Self { prefix: format!("pinpriq/{name}/s/{shard:04}/") }
    }

    fn key(&self, rest: &str) -> Bytes {
        Bytes::from([&self.prefix, rest].concat())
    }

    pub(crate) fn fence(&self) -> Bytes {
        self.key("fence")
    }

    pub(crate) fn head(&self) -> Bytes {
        self.key("head")
    }

    pub(crate) fn first(&self) -> Bytes {
        self.key("first")
    }

    pub(crate) fn entry(&self, seq: Seq) -> Bytes {
        self.key(&format!("e/{:020}", seq.0))
    }

    /// The key behind all entries.
    pub(crate) fn end_of_entries(&self) -> Bytes {
        // The character after the slash.
        self.key("e0")
    }

    /// The entry that has this key.
    pub(crate) fn seq(&self, key: &[u8]) -> Option<Seq> {
        let digits = key.strip_prefix(self.prefix.as_bytes())?.strip_prefix(b"e/")?;
        if digits.len() == 20 { number(digits).map(Seq) } else { None }
    }
}

/// The keys of the registry.
pub(crate) struct RegistryKeys {
    prefix: String,
}

impl RegistryKeys {
    /// The name must have been checked.
    pub(crate) fn new(name: &str) -> Self {
        Self { prefix: format!("pinpriq/{name}/") }
    }

    fn key(&self, folder: &str, rest: &str) -> Bytes {
        Bytes::from([&self.prefix, folder, rest].concat())
    }

    pub(crate) fn meta(&self) -> Bytes {
        self.key("meta", "")
    }

    pub(crate) fn node(&self, instance: Instance) -> Bytes {
        self.key("node/", &instance.to_string())
    }

    pub(crate) fn own(&self, shard: ShardNumber) -> Bytes {
        self.key("own/", &format!("{shard:04}"))
    }

    pub(crate) fn target(&self, shard: ShardNumber) -> Bytes {
        self.key("target/", &format!("{shard:04}"))
    }

    pub(crate) fn drain(&self, name: &str) -> Bytes {
        self.key("drain/", name)
    }

    /// The first key of a folder, and the one behind its last one: `0` comes after the slash.
    pub(crate) fn folder(&self, name: &str) -> (Bytes, Bytes) {
        (self.key(name, "/"), self.key(name, "0"))
    }

    /// What a key in this folder is called there.
    fn rest<'k>(&self, key: &'k [u8], folder: &str) -> Option<&'k str> {
        let rest = key.strip_prefix(self.prefix.as_bytes())?.strip_prefix(folder.as_bytes())?;
        std::str::from_utf8(rest).ok()
    }

    pub(crate) fn instance(&self, key: &[u8]) -> Option<Instance> {
        read_instance(self.rest(key, "node/")?)
    }

    pub(crate) fn shard(&self, key: &[u8]) -> Option<ShardNumber> {
        let shard = number(self.rest(key, "own/")?.as_bytes())?;
        let shard = ShardNumber::try_from(shard).ok()?;
        (self.own(shard) == key).then_some(shard)
    }

    pub(crate) fn target_of(&self, key: &[u8]) -> Option<ShardNumber> {
        let shard = number(self.rest(key, "target/")?.as_bytes())?;
        let shard = ShardNumber::try_from(shard).ok()?;
        (self.target(shard) == key).then_some(shard)
    }

    pub(crate) fn drained<'k>(&self, key: &'k [u8]) -> Option<&'k str> {
        self.rest(key, "drain/")
    }
}

/// A number as it is in a value.
pub(crate) fn decimal(number: u64) -> Bytes {
    Bytes::from(number.to_string())
}

/// The number in a value.
pub(crate) fn number(value: &[u8]) -> Option<u64> {
    let is_decimal = value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| is_decimal)?.parse().ok()
}

/// What an append is compared with: whose log it is, and the bar that it must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fence {
    pub(crate) tenure: Tenure,
    /// Rises with each resolve that raises it. What was sent before has a lower one.
    pub(crate) bar: u64,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:032x}", self.tenure.term.0, self.tenure.writer.0)?;
        if self.bar == 0 { Ok(()) } else { write!(f, ":{}", self.bar) }
    }
}

impl Fence {
    pub(crate) fn value(self) -> Bytes {
        Bytes::from(self.to_string())
    }

    /// Reads a value. There is one text for each fence, and nothing else is one.
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let mut parts = value.split(|byte| *byte == b':');
        let term = Term(number(parts.next()?)?);
        let writer = std::str::from_utf8(parts.next()?).ok()?;
        let writer = Writer(u128::from_str_radix(writer, 16).ok()?);
        let bar = parts.next().map_or(Some(0), number)?;
        let fence = Self { tenure: Tenure { term, writer }, bar };
        (fence.to_string().as_bytes() == value).then_some(fence)
    }
}

#[cfg(test)]
mod tests {
    use crate::Instance;
    use pinpriq_store::ledger::{Seq, Tenure, Term, Writer};

    use super::{Fence, Keys, RegistryKeys, decimal, number};

    #[test]
    fn keys_are_as_documented() {
        let keys = Keys::new("a-B_9", 7);
        assert_eq!(&keys.fence()[..], b"pinpriq/a-B_9/s/0007/fence");
        assert_eq!(&keys.entry(Seq(12))[..], b"pinpriq/a-B_9/s/0007/e/00000000000000000012");
        assert!(keys.entry(Seq(u64::MAX)) < keys.end_of_entries());
        for seq in [Seq(0), Seq(1), Seq(u64::MAX)] {
            assert_eq!(keys.seq(&keys.entry(seq)), Some(seq));
        }
        for key in ["pinpriq/a-B_9/s/0007/e/12", "pinpriq/a-B_9/s/0008/e/00000000000000000012"] {
            assert_eq!(keys.seq(key.as_bytes()), None, "{key}");
        }
    }

    #[test]
    fn keys_of_the_registry_are_as_documented() {
        let keys = RegistryKeys::new("a");
        assert_eq!(&keys.meta()[..], b"pinpriq/a/meta");
        assert_eq!(
            &keys.node(Instance(10))[..],
            b"pinpriq/a/node/0000000000000000000000000000000a"
        );
        assert_eq!(&keys.own(7)[..], b"pinpriq/a/own/0007");
        assert_eq!(&keys.target(7)[..], b"pinpriq/a/target/0007");
        assert_eq!(&keys.drain("n/1")[..], b"pinpriq/a/drain/n/1");
        assert_eq!(keys.instance(&keys.node(Instance(u128::MAX))), Some(Instance(u128::MAX)));
        assert_eq!(keys.drained(&keys.drain("")), Some(""));
        for shard in [0, 7, 1023, 9_999, u16::MAX] {
            assert_eq!(keys.shard(&keys.own(shard)), Some(shard));
            assert_eq!(keys.target_of(&keys.target(shard)), Some(shard));
            assert_eq!(keys.target_of(&keys.own(shard)), None);
        }
        for key in ["pinpriq/a/own/7", "pinpriq/a/own/00007", "pinpriq/a/own/70000", "own/0007"] {
            assert_eq!(keys.shard(key.as_bytes()), None, "{key}");
        }
        let (start, end) = keys.folder("own");
        assert!(start < keys.own(0) && keys.own(u16::MAX) < end);
        assert_eq!(keys.drained(b"pinpriq/a/drain/\xff"), None);
    }

    #[test]
    fn numbers_are_strict() {
        assert_eq!(number(&decimal(u64::MAX)), Some(u64::MAX));
        for text in ["", "+1", "-1", "1 ", "18446744073709551616"] {
            assert_eq!(number(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_fence_has_one_text() {
        let tenure = Tenure { term: Term(12), writer: Writer(0xabc) };
        for (bar, text) in [
            (0, "12:00000000000000000000000000000abc"),
            (3, "12:00000000000000000000000000000abc:3"),
        ] {
            let fence = Fence { tenure, bar };
            assert_eq!(fence.to_string(), text);
            assert_eq!(Fence::parse(text.as_bytes()), Some(fence));
        }
        for text in [
            "",
            "12",
            "12:abc",
            "12:00000000000000000000000000000ABC",
            "012:00000000000000000000000000000abc",
            "12:00000000000000000000000000000abc:0",
            "12:00000000000000000000000000000abc:",
            "12:00000000000000000000000000000abc:1:",
        ] {
            assert_eq!(Fence::parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
