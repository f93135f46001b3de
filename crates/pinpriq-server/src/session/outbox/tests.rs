//! How far the outbox encodes ahead of its client. The doors encode, and a connection sends.

use pinpriq_proto::fanout::MemberFigures;
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply, TubeShown, TubesShown};
use pinpriq_proto::settings::Paused;
use pinpriq_proto::task::{Bytes, ClientId, Progress, RequestId, State, TaskId, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::Position;
use pinpriq_store::durable::Holds;

use super::{Answer, Dialect, Encode, Joined, Outbox};
use crate::clients::about::{PART, SILENT};
use crate::letters::letter::{Part, Piece};

const PIECES: usize = 1_000;
const PIECE: [u8; 10] = *b"0123456789";

/// Every answer has a thousand pieces.
struct LongAnswers;

impl Encode for LongAnswers {
    fn encode(
        &self,
        _: &Output,
        _: Dialect,
        progress: &mut usize,
        out: &mut Vec<u8>,
        room: usize,
        _: usize,
    ) -> bool {
        let start = out.len();
        while *progress < PIECES && out.len() - start < room {
            out.extend_from_slice(&PIECE);
            *progress += 1;
        }
        *progress == PIECES
    }
}

#[test]
fn an_answer_of_any_length_is_encoded_only_so_far_ahead() {
    const MOST: usize = 256;
    let mut outbox = Outbox::default();
    let (client, request) = (ClientId(1), RequestId(1));
    for _ in 0..2 {
        let reply = Output::Reply { client, request, reply: Reply::Done };
        outbox.push(Position::default(), (reply, Holds::default()), Dialect::default());
    }
    let mut read = 0;
    while !outbox.is_empty() {
        outbox.encode(&LongAnswers, Position::default(), MOST, Vec::new, |_| {});
        let ahead = outbox.encoded_bytes();
        assert!(ahead > 0, "the client gets no more after {read} bytes");
        assert!(ahead < MOST + PIECE.len(), "{ahead} bytes are encoded ahead after {read}");
        let kept = outbox.bytes.len();
        assert!(kept < 2 * (MOST + PIECE.len()), "{kept} bytes are kept after {read}");
        // It reads slowly, and not everything.
        let taken = ahead.div_ceil(3);
        outbox.written(taken);
        read += taken;
    }
    assert_eq!(read, 2 * PIECES * PIECE.len());
}

/// Members with long names, in order.
fn members(count: u64) -> Vec<MemberFigures> {
    let member = |number: u64| MemberFigures {
        member: format!("{number:05000}").into_bytes().into(),
        incarnation: number,
        lease_until: Timestamp::from_ms(number),
        ready: 0,
        taken: 0,
    };
    (0..count).map(member).collect()
}

#[test]
fn many_members_come_in_parts_and_go_to_a_client_together() {
    const UNDER_WAY_MAX: usize = 100_000;
    const COUNTS: [u64; 4] = [1_000, 0, 1, 20];
    let (client, request) = (ClientId(1), RequestId(1));
    let asked = || {
        let mut host = Outbox::default();
        for count in COUNTS {
            let reply = Reply::Members(members(count));
            let output = (Output::Reply { client, request, reply }, Holds::default());
            host.push(Position::default(), output, Dialect::default());
        }
        host
    };
    let (mut host, mut home, at) = (asked(), Outbox::default(), (4, 2));
    for _ in COUNTS {
        home.await_reply(at, Dialect::default(), None);
    }
    let owned = host.bytes_waiting();
    let mut letters = 0;
    while !host.is_empty() {
        let mut under_way = 0;
        let pieces = host.hand_over(Position::default(), |bytes, _| {
            let fits = under_way < UNDER_WAY_MAX;
            under_way += if fits { bytes } else { 0 };
            fits
        });
        assert!(under_way < UNDER_WAY_MAX + 70_000, "{under_way} bytes are in one letter");
        letters += 1;
        let choices = home.arrive(at, pieces, (Dialect::default(), false), Some);
        assert!(choices.0.is_empty() && choices.1.is_empty());
        if letters == 10 {
            // The next owner is asked again, and tells everything.
            home.settle(at.1, |_| None);
            assert_eq!(home.bytes_waiting(), 0);
            host = asked();
        }
    }
    assert!(letters >= 40, "{letters} letters");
    assert_eq!((host.bytes_waiting(), home.bytes_waiting()), (0, owned));
    for count in COUNTS {
        let told = home.waiting.pop_front().map(|it| it.answer);
        let Some(Answer::Output(Output::Reply { reply, .. })) = told else {
            panic!("a reply with {count} members is not complete")
        };
        assert!(reply == Reply::Members(members(count)), "{count} members are others");
    }
}

#[test]
fn a_refusal_stands_in_for_members_of_whom_some_were_told() {
    let (client, request) = (ClientId(1), RequestId(1));
    let refusal = Refusal::new(RefusalKind::Store, "the disk is gone");
    let reply = Output::Reply { client, request, reply: Reply::Refused(refusal.clone()) };
    for rest in [Piece::Output(reply, Holds::default()), Piece::Lost] {
        let mut home = Outbox::default();
        home.await_reply((1, 0), Dialect::default(), None);
        let is_lost = matches!(rest, Piece::Lost);
        for piece in [Piece::Members(members(2)), rest] {
            home.arrive((1, 0), vec![piece], (Dialect::default(), false), Some);
        }
        assert_eq!(home.bytes_waiting(), 0);
        assert_eq!(home.is_at_loss(), is_lost);
        let refused = Output::Reply { client, request, reply: Reply::Refused(refusal.clone()) };
        let told = home.waiting.pop_front().map(|it| it.answer);
        assert!(matches!(told, Some(Answer::Output(it)) if it == refused) || is_lost);
    }
}

#[test]
fn members_that_are_not_asked_for_are_not_handed_over() {
    let (client, request) = (ClientId(1), SILENT);
    let mut host = Outbox::default();
    let output = Output::Reply { client, request, reply: Reply::Members(members(100)) };
    host.push(Position::default(), (output, Holds::default()), Dialect::default());
    let pieces = host.hand_over(Position::default(), |_, _| true);
    assert!(pieces.is_empty() && host.is_empty());
    assert_eq!(host.bytes_waiting(), 0);
}

#[test]
fn many_tubes_come_in_parts_and_are_joined() {
    const TUBES: usize = 2_000;
    let (client, request, at) = (ClientId(1), PART, (2, 1));
    let tube = |number: usize| TubeShown {
        name: format!("{number:0200}").into_bytes().into(),
        exists: true,
        came_at: Timestamp::from_ms(1),
        came_after: 0,
        counts: [0; 6],
        urgent: 0,
        put: 0,
        deletes: 0,
        reserves: 0,
        paused: Paused::default(),
        paused_for: Span::ZERO,
    };
    let (mut host, mut home) = (Outbox::default(), Outbox::default());
    let shown = TubesShown { put: 7, ..TubesShown::default() };
    let reply =
        Reply::Tubes(Box::new(TubesShown { tubes: (0..TUBES).map(tube).collect(), ..shown }));
    let output = Output::Reply { client, request, reply };
    host.push(Position::default(), (output, Holds::default()), Dialect::default());
    let join = Box::new(|parts: Vec<Part>| {
        let (mut tubes, mut put) = (0, 0);
        for part in &parts {
            let Part::Reply(Reply::Tubes(shown)) = part else { panic!("another part") };
            (tubes, put) = (tubes + shown.tubes.len(), put + shown.put);
        }
        assert!(parts.len() > 5, "{} parts", parts.len());
        Joined::Bytes(format!("{tubes} {put}").into_bytes())
    });
    home.await_parts(at.0, &[at.1], Dialect::default(), join);
    while !host.is_empty() {
        let mut room = 1;
        let wants = |_: usize, _: &Holds| std::mem::take(&mut room) > 0;
        let pieces = host.hand_over(Position::default(), wants);
        assert!(!pieces.is_empty());
        home.arrive(at, pieces, (Dialect::default(), false), Some);
    }
    let told = home.waiting.pop_front().map(|it| it.answer);
    assert!(matches!(told, Some(Answer::Bytes(it)) if it == b"2000 7"));
}

fn popped(number: u64) -> TaskRecord {
    TaskRecord {
        number,
        queue: Bytes::default(),
        lane: None,
        id: TaskId::Number(number),
        put_at: Timestamp::from_ms(1),
        terms: Terms::NONE,
        progress: Progress {
            priority: None,
            seq: number,
            expires_at: None,
            attempts: 1,
            failures: 0,
            reason: None,
            trace: None,
            state: State::Ready,
        },
        past: None,
        payload: Bytes::default(),
        away: None,
        shared: false,
    }
}

/// A reply to which three of four shards add tasks of these numbers.
fn several(is_complete: bool) -> Outbox {
    const PARTS: [(usize, &[u64]); 3] = [(2, &[20, 21]), (0, &[1]), (3, &[30, 31])];
    let mut outbox = Outbox::default();
    outbox.keep_place(Dialect::default());
    for (from, numbers) in PARTS {
        outbox.await_choice(4, from);
        let tasks = numbers.iter().map(|number| popped(*number)).collect();
        let reply = Reply::Tasks { tasks, popped: true };
        let output = Output::Reply { client: ClientId(1), request: RequestId(1), reply };
        let is_last = is_complete && from == 3;
        outbox.add_tasks(from, (output, Holds::default()), is_last);
    }
    outbox
}

#[test]
fn what_several_shards_have_added_goes_back_to_each_unless_its_owner_has_changed() {
    for is_complete in [false, true] {
        for former in [None, Some(2), Some(3)] {
            let mut outbox = several(is_complete);
            if let Some(former) = former {
                outbox.settle(former, |_| None);
            }
            let reader = is_complete.then_some(3).filter(|it| former != Some(*it));
            assert_eq!(outbox.reads_from(), reader);
            let unsent =
                outbox.unsent().into_iter().filter(|(_, unsent)| unsent.popped_count() > 0);
            let back: Vec<(Option<usize>, Vec<u64>)> = unsent
                .map(|(from, unsent)| (from, unsent.popped.iter().map(|it| it.number).collect()))
                .collect();
            let mut expected =
                vec![(Some(2), vec![20, 21]), (Some(0), vec![1]), (Some(3), vec![30, 31])];
            expected.retain(|(from, _)| *from != former);
            assert_eq!(back, expected, "{is_complete} {former:?}");
        }
    }
}

#[test]
fn a_reply_of_several_shards_waits_until_it_is_complete_and_may_be_withdrawn() {
    let encoded = |outbox: &mut Outbox| {
        outbox.encode(&LongAnswers, Position::default(), usize::MAX, Vec::new, |_| {});
        outbox.encoded_bytes()
    };
    let mut outbox = several(false);
    assert_eq!(encoded(&mut outbox), 0);
    outbox.complete();
    assert_eq!(encoded(&mut outbox), PIECES * PIECE.len());
    assert_eq!(outbox.take_accepted(3, (0, 0)), 0, "the shards were told before");

    let mut outbox = several(true);
    assert_eq!(encoded(&mut outbox), PIECES * PIECE.len());
    outbox.written(PIECES * PIECE.len());
    let told: Vec<usize> = (0..4).map(|from| outbox.take_accepted(from, (0, 0))).collect();
    assert_eq!(told, [0, 0, 0, 1], "the last one learns when it was sent");

    let mut outbox = several(false);
    let back: Vec<(usize, usize)> =
        outbox.withdraw().iter().map(|(from, it)| (*from, it.popped_count())).collect();
    assert_eq!(back, [(2, 2), (0, 1), (3, 2)]);
    assert_eq!(outbox.bytes_waiting(), 0);
    outbox.answer(None, None);
    assert!(outbox.is_at_loss());
}
