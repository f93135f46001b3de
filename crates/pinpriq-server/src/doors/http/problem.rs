//! Refusals as `application/problem+json`: RFC 9457.

use pinpriq_proto::reply::Refusal;

use super::exchange::{Content, Exchange, Head};
use crate::doors::json::{Object, object};
use pinpriq_proto::request::fault::Fault;

/// A refusal of this door: a word for programs, and a sentence.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) code: &'static str,
    pub(crate) sentence: String,
    /// Whether it was counted where it was found.
    pub(crate) is_counted: bool,
}

/// Each word with its status and its title.
pub(crate) const CODES: [(&str, u16, &str); 38] = [
    ("BADARG", 400, "An argument makes no sense"),
    ("IDREQUIRED", 400, "The queue wants ids from its clients"),
    ("CROSSSHARD", 400, "The queues live in different shards"),
    ("ERR", 400, "The request is no command"),
    ("NOAUTH", 401, "Nobody has signed in"),
    ("WRONGPASS", 401, "The password is wrong"),
    ("NOPERM", 403, "This is not allowed"),
    ("READONLY", 403, "Nothing can be changed here"),
    ("NOQUEUE", 404, "There is no such queue"),
    ("NOTFOUND", 404, "There is no such thing"),
    ("METHOD", 405, "The path knows other methods"),
    ("EXISTS", 409, "It is there already"),
    ("STALE", 409, "The lease has ended"),
    ("CANCELLED", 409, "The task was cancelled"),
    ("TAKEN", 409, "Somebody else has the task"),
    ("NOTTAKEN", 409, "Nobody has the task"),
    ("NOTOWNER", 409, "Another client has the task"),
    ("WRONGSTATE", 409, "The state does not allow this"),
    ("PAUSED", 409, "The queue is paused"),
    ("EXECABORT", 409, "One of the commands was refused, and nothing has happened"),
    ("GONE", 410, "It is no longer there"),
    ("TOOLARGE", 413, "It is too large"),
    ("MEDIATYPE", 415, "The body has the wrong type"),
    ("RANGE", 416, "It has no such bytes"),
    ("HOST", 421, "This is another host"),
    ("FULL", 429, "The queue is full"),
    ("BUSY", 429, "The server is at one of its bounds"),
    ("HEADERS", 431, "The head of the request is too large"),
    ("LOADING", 503, "The server is loading"),
    ("CLOSING", 503, "The server is stopping"),
    ("STORE", 503, "The store has failed"),
    ("TRYAGAIN", 503, "The shard has no owner at the moment"),
    ("CLUSTERDOWN", 503, "The cluster cannot be reached"),
    ("UNKNOWN", 503, "It is not known what became of the request"),
    ("LATE", 408, "The request did not arrive in time"),
    ("NOPROTO", 400, "There is no such version"),
    ("MOVED", 503, "Another node has the queue"),
    ("CROSSSLOT", 400, "The queues may be at several nodes"),
];

impl Problem {
    /// Returns a problem with this word.
    pub(crate) fn new(code: &'static str, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into(), is_counted: false }
    }

    /// An argument makes no sense.
    pub(crate) fn bad(sentence: impl Into<String>) -> Self {
        Self::new("BADARG", sentence)
    }

    /// Returns its status.
    pub(crate) fn status(&self) -> u16 {
        self.known().1
    }

    fn known(&self) -> (&'static str, u16, &'static str) {
        let known = CODES.into_iter().find(|(code, ..)| *code == self.code);
        known.unwrap_or((self.code, 500, "Something is wrong"))
    }

    /// Writes the members of the object.
    fn write(&self, it: &mut Object<'_>) {
        let (code, status, title) = self.known();
        it.set("type", format!("urn:pinpriq:{code}")).set("title", title);
        it.set("status", status).set("detail", &self.sentence).set("code", code);
    }

    /// Appends the object alone.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        object(out, |it| self.write(it));
    }

    /// Returns the bytes of the object.
    pub(crate) fn body(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// Appends the body of a whole answer.
    pub(super) fn answer(&self, exchange: &Exchange, out: &mut Vec<u8>) {
        exchange.head(Head::new(self.status(), Content::Problem));
        self.put(out);
    }
}

/// Appends the answer for a task that has left, with what became of it.
pub(super) fn answer_ended(
    exchange: &Exchange,
    out: &mut Vec<u8>,
    sentence: &str,
    ended: impl FnOnce(&mut Object<'_>),
) {
    let problem = Problem::new("NOTFOUND", sentence);
    exchange.head(Head::new(problem.status(), Content::Problem));
    object(out, |it| {
        problem.write(it);
        it.object("ended", ended);
    });
}

/// Appends the answer for a transaction that was refused: which command, and why.
pub(super) fn answer_aborted(exchange: &Exchange, out: &mut Vec<u8>, refusal: &Refusal) {
    exchange.head(Head::new(409, Content::Problem));
    let whole = Problem::from(refusal);
    object(out, |it| {
        whole.write(it);
        // The sentence begins with the position and the word of the refusal.
        let mut words = refusal.sentence.splitn(3, ' ');
        let position = words.next().and_then(|word| word.parse::<u64>().ok());
        let code = words.next().unwrap_or_default();
        let known = CODES.into_iter().find(|(known, ..)| *known == code);
        if let (Some(position), Some((code, ..))) = (position, known) {
            let problem = Problem::new(code, words.next().unwrap_or_default());
            it.set("position", position);
            it.object("problem", |it| problem.write(it));
        }
    });
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        Self { is_counted: true, ..Self::new(refusal.kind.word(), refusal.sentence.clone()) }
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self { is_counted: true, ..Self::new(fault.code.word(), fault.sentence) }
    }
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::reply::RefusalKind;

    use super::*;
    use pinpriq_proto::request::code::Code;

    #[test]
    fn every_refusal_has_a_status() {
        for code in Code::all() {
            let problem = Problem::new(code.word(), "x");
            assert_ne!(problem.status(), 500, "{}", code.word());
        }
        let words = CODES.map(|(word, ..)| word);
        for (at, word) in words.iter().enumerate() {
            assert!(!words[..at].contains(word), "{word} is there twice");
        }
    }

    #[test]
    fn an_aborted_transaction_names_the_command() {
        let refusal = Refusal::new(RefusalKind::ExecAbort, "2 STALE the lease has ended");
        let mut out = Vec::new();
        let exchange = Exchange::default();
        answer_aborted(&exchange, &mut out, &refusal);
        let head = exchange.take_head().unwrap();
        assert_eq!((head.status, head.content), (409, Content::Problem));
        let body: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(body["position"], 2);
        assert_eq!(body["problem"]["code"], "STALE");
        assert_eq!(body["problem"]["detail"], "the lease has ended");
    }
}
