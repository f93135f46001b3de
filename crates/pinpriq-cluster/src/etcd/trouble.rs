//! Why a call of etcd has no answer, and what its errors say for certain.

use std::error::Error as _;

use pinpriq_store::ledger::Unreachable;
use pinpriq_tls::{Options, explain};
use tonic::Code;

/// What etcd says when it has no room.
const FULL: &str = "etcdserver: mvcc: database space exceeded";

/// What that means for people.
const FULL_MEANS: &str = "it has reached its own quota, --quota-backend-bytes, and refuses every \
                          change until a node has made room";

/// What etcd says of a request above `--max-request-bytes`.
const TOO_LARGE: &str = "etcdserver: request is too large";

/// What the library under etcd says of a message that is larger than etcd would read.
const TOO_LARGE_TO_READ: &str = "grpc: received message larger than max (";

/// What etcd says of a lease that has ended, and of what should hang on it.
const LEASE_GONE: &str = "etcdserver: requested lease not found";

/// What etcd says of a user or a password that it does not know, of a request without a user, and
/// of one that the user may not make, each with what to do. Every member says the same.
const NOT_ALLOWED: [(&str, &str); 3] = [
    (
        "etcdserver: authentication failed, invalid user ID or password",
        "it does not know this user with this password",
    ),
    (
        "etcdserver: user name is empty",
        "it asks for a user and a password: name them in the address, or a certificate that has \
         the user as its common name",
    ),
    (
        "etcdserver: permission denied",
        "the user has no right to these keys: grant its role to read and write all that begin \
         with pinpriq/ and the name of the cluster",
    ),
];

/// What the options of an address are called.
const TLS_OPTIONS: Options = Options { roots: "cacert", identity: "cert and key" };

/// Why there is no answer that could be used.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// There was none in time.
    Silent,
    /// It was an error.
    Error(Box<tonic::Status>),
    /// The encrypted connection was ended before there was one. What the other side says of our
    /// certificate comes after the handshake, and the library under tonic does not pass it on.
    HungUp,
    /// It does not say what it should.
    Malformed(&'static str),
}

/// What an error says for certain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Full,
    TooLarge,
}

impl Trouble {
    /// What is certain of the request that has had this answer: it has arrived. If
    /// it was too large, it has changed nothing. If etcd is full, it may have changed something.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let Self::Error(status) = self else { return None };
        let (code, text) = (status.code(), status.message());
        let is_refusal = matches!(code, Code::InvalidArgument | Code::ResourceExhausted);
        if code == Code::ResourceExhausted && text == FULL {
            Some(Verdict::Full)
        } else if is_refusal && (text == TOO_LARGE || text.starts_with(TOO_LARGE_TO_READ)) {
            Some(Verdict::TooLarge)
        } else {
            None
        }
    }

    /// Whether the answer may have had more bytes than are accepted.
    pub(crate) fn is_too_much(&self) -> bool {
        matches!(self, Self::Error(status) if status.code() == Code::OutOfRange)
    }

    /// Whether a lease has ended. Then nothing was done.
    pub(crate) fn is_lease_gone(&self) -> bool {
        matches!(self, Self::Error(status) if status.message() == LEASE_GONE)
    }

    /// Whether a connection was lost on which the handshake had succeeded.
    pub(crate) fn is_of_connection(&self) -> bool {
        let Self::Error(status) = self else { return false };
        // What etcd says has no source.
        let is_lost = matches!(status.code(), Code::Cancelled | Code::Unknown);
        is_lost && status.source().is_some() && explain(&**status, TLS_OPTIONS).is_none()
    }

    /// What is to be done about a user that may not do what it has asked for.
    fn remedy(&self) -> Option<&'static str> {
        let Self::Error(status) = self else { return None };
        let known = NOT_ALLOWED.iter().find(|(text, _)| *text == status.message());
        known.map(|(_, remedy)| *remedy)
    }

    /// Whether another member would answer the same.
    pub(crate) fn is_final(&self) -> bool {
        self.is_too_much() || self.is_lease_gone() || self.remedy().is_some()
    }

    /// What happened, for people.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Silent => "it was silent".to_owned(),
            Self::Error(status) => {
                let known = self.remedy().map(str::to_owned);
                let full = (self.verdict() == Some(Verdict::Full)).then(|| FULL_MEANS.to_owned());
                let known = known.or(full).or_else(|| explain(&**status, TLS_OPTIONS));
                known.unwrap_or_else(|| format!("{}: {}", status.code(), status.message()))
            }
            Self::HungUp => "it has ended the encrypted connection: if it always does, name a \
                             certificate that it trusts with cert and key"
                .to_owned(),
            Self::Malformed(what) => format!("{what} is malformed"),
        }
    }

    pub(crate) fn unreachable(&self) -> Unreachable {
        Unreachable { why: self.why() }
    }
}

#[cfg(test)]
mod tests {
    use tonic::{Code, Status};

    use super::{Trouble, Verdict};

    #[test]
    fn only_known_texts_are_certain() {
        let full = "etcdserver: mvcc: database space exceeded";
        let large = "etcdserver: request is too large";
        let larger = "grpc: received message larger than max (3145795 vs. 2097152)";
        for (code, text, verdict) in [
            (Code::ResourceExhausted, full, Some(Verdict::Full)),
            (Code::Unavailable, full, None),
            (Code::ResourceExhausted, "etcdserver: too many requests", None),
            (Code::InvalidArgument, large, Some(Verdict::TooLarge)),
            (Code::ResourceExhausted, large, Some(Verdict::TooLarge)),
            (Code::Unknown, large, None),
            (Code::ResourceExhausted, larger, Some(Verdict::TooLarge)),
            (Code::InvalidArgument, "etcdserver: request is too large.", None),
            (Code::Unavailable, "etcdserver: leader changed", None),
        ] {
            let trouble = Trouble::Error(Box::new(Status::new(code, text)));
            assert_eq!(trouble.verdict(), verdict, "{code:?} {text}");
        }
        assert_eq!(Trouble::Silent.verdict(), None);
    }
}
