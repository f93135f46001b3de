//! The bytes that are sent and the replies that are understood.

use super::Resp;
use crate::dialect::{Answer, Dialect as _, Outcome, Slot, Token};
use crate::plan::Step;

fn resp(members: &[&str]) -> (Resp, Slot) {
    let members: Vec<_> = members.iter().map(|&member| member.to_owned()).collect();
    let slot = Slot { queue: 1, priority: 2, member: 0, token: Token::empty(), token_queue: 0 };
    (Resp::with_members(&["a".to_owned(), "jobs".to_owned()], b"hello", 3, &members), slot)
}

#[track_caller]
fn check_request(step: Step, slot: &Slot, dialect: &mut Resp, expected: &str) {
    let mut out = Vec::new();
    dialect.request(step, slot, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), expected.replace(' ', "\r\n") + "\r\n");
}

#[test]
fn requests_are_those_of_the_protocol() {
    let (mut dialect, mut slot) = resp(&[]);
    let put = "*5 $3 PUT $4 jobs $5 hello $8 PRIORITY $1 2";
    check_request(Step::Put, &slot, &mut dialect, put);
    check_request(Step::Take, &slot, &mut dialect, "*4 $4 TAKE $4 jobs $3 TTR $5 60000");
    check_request(Step::Pop, &slot, &mut dialect, "*2 $3 POP $4 jobs");
    slot.token.set(b"17-1-1000001").unwrap();
    check_request(Step::Ack, &slot, &mut dialect, "*3 $3 ACK $4 jobs $12 17-1-1000001");
}

#[test]
fn a_take_names_the_task_that_is_done_and_its_queue() {
    let (mut dialect, mut slot) = resp(&[]);
    let take = "*4 $4 TAKE $4 jobs $3 TTR $5 60000";
    check_request(Step::DoneTake, &slot, &mut dialect, take);
    let task = "*1 *4 $4 jobs $1 7 $5 7-1-9 $5 hello ".replace(' ', "\r\n");
    dialect.answer(Step::DoneTake, &mut slot, task.as_bytes()).unwrap();
    slot.queue = 0;
    let both = "*7 $4 TAKE $1 a $3 TTR $5 60000 $4 DONE $4 jobs $5 7-1-9";
    check_request(Step::DoneTake, &slot, &mut dialect, both);
    // Nothing has happened, so the task is still to be finished.
    dialect.answer(Step::DoneTake, &mut slot, b"-BUSY the disk is full\r\n").unwrap();
    check_request(Step::DoneTake, &slot, &mut dialect, both);
    for answer in [&b"-STALE the lease is over\r\n"[..], b"*0\r\n"] {
        slot.token.set(b"7-1-9").unwrap();
        dialect.answer(Step::DoneTake, &mut slot, answer).unwrap();
        assert!(slot.token.is_empty());
    }
}

#[test]
fn members_take_from_their_lanes() {
    let (mut dialect, mut slot) = resp(&["m0", "m1"]);
    slot.member = 1;
    let take = "*6 $4 TAKE $4 jobs $3 TTR $5 60000 $6 MEMBER $2 m1";
    check_request(Step::Take, &slot, &mut dialect, take);
    let publish = "*5 $7 PUBLISH $4 jobs $5 hello $8 PRIORITY $1 2";
    check_request(Step::Publish, &slot, &mut dialect, publish);
    let answer = dialect.answer(Step::Publish, &mut slot, b":2\r\n");
    assert_eq!(answer, Ok(Answer::Whole { outcome: Outcome::Done, length: 4 }));
    assert!(dialect.answer(Step::Publish, &mut slot, b":1\r\n").is_err(), "a lane is missing");
    assert!(dialect.answer(Step::Publish, &mut slot, b":3\r\n").is_err(), "a lane too many");
}

#[test]
fn members_join_and_leave() {
    let (mut dialect, mut slot) = resp(&["m0", "m1"]);
    slot.member = 1;
    let join = "*5 $4 JOIN $4 jobs $2 m1 $5 LEASE $6 600000";
    check_request(Step::Join, &slot, &mut dialect, join);
    check_request(Step::Leave, &slot, &mut dialect, "*2 $5 LEAVE $2 m1");
    for (step, bytes) in [(Step::Join, &b":17\r\n"[..]), (Step::Leave, b":2\r\n")] {
        let answer = dialect.answer(step, &mut slot, bytes);
        assert_eq!(answer, Ok(Answer::Whole { outcome: Outcome::Done, length: bytes.len() }));
        assert!(dialect.answer(step, &mut slot, b"+OK\r\n").is_err());
    }
}

#[test]
fn answers_are_understood_whole_and_in_pieces() {
    let (mut dialect, mut slot) = resp(&[]);
    let task = "*1 *4 $4 jobs $1 7 $5 7-1-9 $5 hello ";
    let popped = "*1 *4 $4 jobs $1 7 $-1 $5 hello ";
    let table = [
        (Step::Put, "$1 7 ", Outcome::Done),
        (Step::Take, task, Outcome::Done),
        (Step::Take, "*0 ", Outcome::Empty),
        (Step::Pop, popped, Outcome::Done),
        (Step::Ack, "+OK ", Outcome::Done),
        (Step::Put, "-BUSY ", Outcome::Refused(b"BUSY")),
        (Step::Take, "-BUSY ", Outcome::Refused(b"BUSY")),
    ];
    for (step, text, outcome) in table {
        let bytes = text.replace(' ', "\r\n");
        for end in 0..bytes.len() {
            let beginning = &bytes.as_bytes()[..end];
            assert_eq!(dialect.answer(step, &mut slot, beginning), Ok(Answer::Incomplete));
        }
        let more = bytes.clone() + "+OK\r\n";
        let answer = dialect.answer(step, &mut slot, more.as_bytes());
        assert_eq!(answer, Ok(Answer::Whole { outcome, length: bytes.len() }), "{text}");
    }
    assert_eq!(slot.token.bytes(), b"7-1-9");
}

#[test]
fn wrong_answers_are_errors() {
    let (mut dialect, mut slot) = resp(&[]);
    let table = [
        (Step::Put, "+OK "),
        (Step::Ack, "$2 OK "),
        (Step::Ack, "+QUEUED "),
        (Step::Take, "*1 *4 $4 jobs $1 7 $5 7-1-9 $5 other "),
        (Step::Take, "*1 *4 $4 jobs $1 7 $-1 $5 hello "),
        (Step::Take, "*2 *4 "),
        (Step::Pop, "$1 7 "),
    ];
    for (step, text) in table {
        let bytes = text.replace(' ', "\r\n");
        assert!(dialect.answer(step, &mut slot, bytes.as_bytes()).is_err(), "{text}");
    }
}
