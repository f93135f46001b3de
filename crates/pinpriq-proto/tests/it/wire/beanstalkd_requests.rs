//! The decoder of beanstalkd: what it reads, in every division, and what it refuses.
//!
//! The expected outcomes are those of beanstalkd 1.13, except where a test says otherwise.

use pinpriq_proto::wire::beanstalkd::{
    Decoded, Fault, LINE_BYTES_MAX, Request, RequestDecoder, TUBE_BYTES_MAX, Unwritable, Verb,
    is_tube_name,
};
use proptest::prelude::*;
use proptest::sample::Index;

/// So small that tests reach it.
const JOB_BYTES_MAX: u32 = 32;

/// What a server sees in a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Seen {
    /// A request, as its debug output.
    Request(String),
    Fault(Fault, Option<Verb>),
}

fn request(request: Request<'_>) -> Seen {
    Seen::Request(format!("{request:?}"))
}

const fn bad(counts_as: Option<Verb>) -> Seen {
    Seen::Fault(Fault::BadFormat, counts_as)
}

const UNKNOWN: Seen = Seen::Fault(Fault::UnknownCommand, None);
const TOO_BIG: Seen = Seen::Fault(Fault::JobTooBig, Some(Verb::Put));
const NO_CRLF: Seen = Seen::Fault(Fault::ExpectedCrlf, Some(Verb::Put));

/// Feeds `chunks` to the decoder like a server: unread bytes stay in front of the next chunk.
/// Returns what was seen, and how many bytes were left at the end.
fn seen_in<'a>(
    job_bytes_max: u32,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Seen>, usize) {
    let mut decoder = RequestDecoder::new(job_bytes_max);
    let mut buffer = Vec::new();
    let mut seen = Vec::new();
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        loop {
            let length = match decoder.decode(&buffer) {
                Decoded::Incomplete => break,
                Decoded::Skip { length } => {
                    assert!(!decoder.is_between_requests());
                    length
                }
                Decoded::Request { request, length } => {
                    assert!(decoder.is_between_requests());
                    seen.push(self::request(request));
                    length
                }
                Decoded::Fault { fault, counts_as, length } => {
                    assert!(decoder.is_between_requests());
                    seen.push(Seen::Fault(fault, counts_as));
                    length
                }
            };
            assert!(length > 0, "progress was made");
            buffer.drain(..length);
        }
        assert_eq!(decoder.decode(&buffer), Decoded::Incomplete, "asked again, it says the same");
        assert!(buffer.len() < decoder.buffer_bytes_max(), "a full buffer means progress");
    }
    (seen, buffer.len())
}

/// Reads one line, to which the line end is added.
fn read(line: &[u8]) -> Seen {
    let bytes = [line, b"\r\n"].concat();
    let (mut seen, left) = seen_in(JOB_BYTES_MAX, [&bytes[..]]);
    assert_eq!((seen.len(), left), (1, 0), "{}: {seen:?}", line.escape_ascii());
    seen.remove(0)
}

fn check(lines: &[(&[u8], Seen)]) {
    for (line, expected) in lines {
        assert_eq!(read(line), *expected, "{}", line.escape_ascii());
    }
}

/// Every command with its bytes.
const COMMANDS: [(&[u8], Request<'static>); 25] = [
    (
        b"put 1024 5 60 5\r\nhello\r\n",
        Request::Put { priority: 1024, delay_s: 5, ttr_s: 60, body: b"hello" },
    ),
    (b"peek 7\r\n", Request::Peek { id: 7 }),
    (b"peek-ready\r\n", Request::PeekReady),
    (b"peek-delayed\r\n", Request::PeekDelayed),
    (b"peek-buried\r\n", Request::PeekBuried),
    (b"reserve\r\n", Request::Reserve),
    (b"reserve-with-timeout 30\r\n", Request::ReserveWithTimeout { timeout_s: 30 }),
    (b"delete 18446744073709551615\r\n", Request::Delete { id: u64::MAX }),
    (
        b"release 7 4294967295 4294967295\r\n",
        Request::Release { id: 7, priority: u32::MAX, delay_s: u32::MAX },
    ),
    (b"use jobs\r\n", Request::Use { tube: b"jobs" }),
    (b"watch jobs\r\n", Request::Watch { tube: b"jobs" }),
    (b"ignore default\r\n", Request::Ignore { tube: b"default" }),
    (b"bury 7 4294967295\r\n", Request::Bury { id: 7, priority: u32::MAX }),
    (b"kick 100\r\n", Request::Kick { bound: 100 }),
    (b"touch 7\r\n", Request::Touch { id: 7 }),
    (b"stats\r\n", Request::Stats),
    (b"stats-job 7\r\n", Request::StatsJob { id: 7 }),
    (b"stats-tube jobs\r\n", Request::StatsTube { tube: b"jobs" }),
    (b"list-tubes\r\n", Request::ListTubes),
    (b"list-tube-used\r\n", Request::ListTubeUsed),
    (b"list-tubes-watched\r\n", Request::ListTubesWatched),
    (b"pause-tube jobs 60\r\n", Request::PauseTube { tube: b"jobs", delay_s: 60 }),
    (b"reserve-job 7\r\n", Request::ReserveJob { id: 7 }),
    (b"kick-job 7\r\n", Request::KickJob { id: 7 }),
    (b"quit\r\n", Request::Quit),
];

#[test]
fn every_command_is_read_and_written() {
    for ((bytes, request), verb) in COMMANDS.into_iter().zip(Verb::ALL) {
        let mut decoder = RequestDecoder::new(JOB_BYTES_MAX);
        let length = bytes.len();
        for shorter in 0..length {
            assert_eq!(decoder.decode(&bytes[..shorter]), Decoded::Incomplete);
        }
        assert_eq!(decoder.decode(bytes), Decoded::Request { request, length });
        let longer = [bytes, b"quit\r\n"].concat();
        assert_eq!(decoder.decode(&longer), Decoded::Request { request, length });
        let mut written = b"before".to_vec();
        request.put(&mut written).unwrap();
        assert_eq!(written, [b"before", bytes].concat());
        assert_eq!(
            (request.verb(), request.verb().index()),
            (verb, Verb::ALL[verb.index()].index())
        );
    }
}

#[test]
fn commands_are_counted_under_their_names_and_in_the_order_of_stats() {
    const COUNTED: [&str; 22] = [
        "put",
        "peek",
        "peek-ready",
        "peek-delayed",
        "peek-buried",
        "reserve",
        "reserve-with-timeout",
        "delete",
        "release",
        "use",
        "watch",
        "ignore",
        "bury",
        "kick",
        "touch",
        "stats",
        "stats-job",
        "stats-tube",
        "list-tubes",
        "list-tube-used",
        "list-tubes-watched",
        "pause-tube",
    ];
    let (counted, others): (Vec<Verb>, Vec<Verb>) =
        Verb::ALL.into_iter().partition(|verb| verb.is_in_stats());
    assert_eq!(counted.iter().map(|verb| verb.name()).collect::<Vec<_>>(), COUNTED);
    let others: Vec<&str> = others.iter().map(|verb| verb.name()).collect();
    assert_eq!(others, ["reserve-job", "kick-job", "quit"]);
    for (index, verb) in Verb::ALL.into_iter().enumerate() {
        assert_eq!(verb.index(), index);
        let word = verb.word().strip_suffix(b" ").unwrap_or_else(|| verb.word());
        assert_eq!(word, verb.name().as_bytes());
    }
}

#[test]
fn numbers_are_read_as_by_beanstalkd() {
    let delete = |id| request(Request::Delete { id });
    let bury = |id, priority| request(Request::Bury { id, priority });
    let wait = |timeout_s| request(Request::ReserveWithTimeout { timeout_s });
    check(&[
        (b"delete 0", delete(0)),
        (b"delete    7", delete(7)),
        (b"delete 0000000000000000000000000000000000007", delete(7)),
        (b"delete 18446744073709551615", delete(u64::MAX)),
        (b"delete 18446744073709551616", bad(None)),
        (b"delete 99999999999999999999999999999999999999", bad(None)),
        (b"delete ", bad(None)),
        (b"delete  ", bad(None)),
        (b"delete x", bad(None)),
        (b"delete -1", bad(None)),
        (b"delete +1", bad(None)),
        (b"delete \t1", bad(None)),
        (b"delete 0x1", bad(None)),
        (b"delete 1 ", bad(None)),
        (b"delete 1 2", bad(None)),
        (b"delete 1\n", bad(None)),
        (b"delete \n1", bad(None)),
        (b"delete 1.0", bad(None)),
        (b"bury 1 2", bury(1, 2)),
        (b"bury   1   2", bury(1, 2)),
        (b"bury 1", bad(None)),
        (b"bury 1 4294967296", bad(None)),
        (b"bury 1 18446744073709551617", bad(None)),
        (b"bury 1\t2", bad(None)),
        (b"bury 1 2 ", bad(None)),
        (b"bury 1-2", bad(None)),
        (b"release 1 2 3", request(Request::Release { id: 1, priority: 2, delay_s: 3 })),
        (b"release 1 2", bad(None)),
        (b"release 1 2 3 4", bad(None)),
        (b"release 1 2 4294967296", bad(None)),
        (b"release 1 4294967296 3", bad(None)),
        (b"reserve-with-timeout 0", wait(0)),
        (b"reserve-with-timeout 2147483647", wait(2_147_483_647)),
        (b"reserve-with-timeout 2147483648", bad(None)),
        (b"reserve-with-timeout -1", bad(None)),
        (b"reserve-with-timeout ", bad(None)),
        (b"peek 1", request(Request::Peek { id: 1 })),
        (b"peek ", bad(None)),
        (b"reserve-job  1", request(Request::ReserveJob { id: 1 })),
        (b"reserve-job 1x", bad(None)),
        (b"kick-job 1 1", bad(None)),
        (b"touch 1x", bad(None)),
        (b"stats-job ", bad(None)),
        (b"stats-job 1 ", bad(None)),
    ]);
}

#[test]
fn a_line_is_the_command_that_it_begins_with() {
    check(&[
        (b"", UNKNOWN),
        (b" ", UNKNOWN),
        (b" delete 1", UNKNOWN),
        (b"DELETE 1", UNKNOWN),
        (b"Quit", UNKNOWN),
        (b"\n", UNKNOWN),
        (b"\nquit", UNKNOWN),
        (b"x", UNKNOWN),
        (b"\xff", UNKNOWN),
        (b"put", UNKNOWN),
        (b"peek", UNKNOWN),
        (b"peek-", UNKNOWN),
        (b"peek-job 1", UNKNOWN),
        (b"delete", UNKNOWN),
        (b"delete\t1", UNKNOWN),
        (b"release", UNKNOWN),
        (b"bury", UNKNOWN),
        (b"kick", UNKNOWN),
        (b"kick-job", UNKNOWN),
        (b"touch", UNKNOWN),
        (b"use", UNKNOWN),
        (b"watch", UNKNOWN),
        (b"ignore", UNKNOWN),
        (b"stat", UNKNOWN),
        (b"list-tube", UNKNOWN),
        (b"list-tube-use", UNKNOWN),
        (b"pause-tub", UNKNOWN),
        (b"qui", UNKNOWN),
        (b"GET / HTTP/1.1", UNKNOWN),
        (b"quit", request(Request::Quit)),
        (b"quitter", request(Request::Quit)),
        (b"quit now", request(Request::Quit)),
        (b"reserve ", bad(None)),
        (b"reserves", bad(None)),
        (b"reserve-with-timeout", bad(None)),
        (b"reserve-job", bad(None)),
        (b"reserve-with-timeout0", bad(None)),
        (b"peek-ready ", bad(None)),
        (b"peek-delayed x", bad(None)),
        (b"peek-buriedx", bad(None)),
        (b"stats ", bad(None)),
        (b"stats-job", bad(None)),
        (b"stats-tube", bad(None)),
        (b"list-tubes ", bad(None)),
        (b"list-tubes-watche", bad(None)),
        (b"list-tubes-watched ", bad(None)),
        (b"list-tube-used ", bad(None)),
        (b"stats\n", bad(None)),
    ]);
}

#[test]
fn some_commands_ignore_what_follows_their_last_number() {
    let wait = || request(Request::ReserveWithTimeout { timeout_s: 0 });
    let kick = || request(Request::Kick { bound: 3 });
    check(&[
        (b"reserve-with-timeout 0 x", wait()),
        (b"reserve-with-timeout 0x", wait()),
        (b"reserve-with-timeout 0 ", wait()),
        (b"reserve-with-timeout 0\n\xff", wait()),
        (b"kick 3 x", kick()),
        (b"kick 3x", kick()),
        (b"kick 3.5", kick()),
    ]);
}

#[test]
fn the_bound_of_a_kick_is_read_by_strtoul_but_has_32_bits() {
    let kick = |bound| request(Request::Kick { bound });
    check(&[
        (b"kick 0", kick(0)),
        (b"kick 4294967295", kick(u32::MAX)),
        (b"kick +3", kick(3)),
        (b"kick \t3", kick(3)),
        (b"kick  \t\n\x0b\x0c 003", kick(3)),
        (b"kick -0", kick(0)),
        (b"kick -1", kick(u32::MAX)),
        (b"kick -4294967295", kick(1)),
        (b"kick -4294967295x", kick(1)),
        (b"kick ", bad(None)),
        (b"kick x", bad(None)),
        (b"kick -", bad(None)),
        (b"kick +", bad(None)),
        (b"kick - 1", bad(None)),
        (b"kick +-1", bad(None)),
        (b"kick --1", bad(None)),
        (b"kick -18446744073709551616", bad(None)),
        (b"kick 18446744073709551616", bad(None)),
        // beanstalkd drops the higher bits of these.
        (b"kick 4294967296", bad(None)),
        (b"kick -4294967296", bad(None)),
        (b"kick 18446744073709551615", bad(None)),
    ]);
}

#[test]
fn tubes_have_names_of_1_to_200_bytes() {
    const BYTES: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()";
    let watch = |tube| request(Request::Watch { tube });
    let longest = [b'x'; TUBE_BYTES_MAX];
    check(&[
        (&[b"watch ", BYTES].concat(), watch(BYTES)),
        (&[b"watch ", &longest[..]].concat(), watch(&longest)),
        (&[b"watch x", &longest[..]].concat(), bad(None)),
        (b"watch 0", watch(b"0")),
        (b"watch a-", watch(b"a-")),
        (b"watch ", bad(None)),
        (b"watch -a", bad(None)),
        (b"watch -", bad(None)),
        (b"watch  a", bad(None)),
        (b"watch a ", bad(None)),
        (b"watch a b", bad(None)),
        (b"watch a\n", bad(None)),
        (b"use a,b", bad(None)),
        (b"ignore a:b", bad(None)),
        (b"stats-tube a\xffb", bad(None)),
    ]);
    for byte in 0..=u8::MAX {
        assert_eq!(is_tube_name(&[b'a', byte]), BYTES.contains(&byte));
        assert_eq!(is_tube_name(&[byte]), BYTES.contains(&byte) && byte != b'-');
    }
    assert!(!is_tube_name(b""));
}

#[test]
fn a_tube_to_pause_is_counted_before_its_name_is_checked() {
    let pause = |tube, delay_s| request(Request::PauseTube { tube, delay_s });
    let counted = bad(Some(Verb::PauseTube));
    let longest = [b'x'; TUBE_BYTES_MAX];
    check(&[
        (b"pause-tube default 0", pause(b"default", 0)),
        (b"pause-tube default 4294967295", pause(b"default", u32::MAX)),
        (b"pause-tubedefault 0", pause(b"default", 0)),
        (b"pause-tube   default   9", pause(b"default", 9)),
        (b"pause-tube 5 6", pause(b"5", 6)),
        (&[b"pause-tube ", &longest[..], b" 1"].concat(), pause(&longest, 1)),
        (&[b"pause-tubex", &longest[..], b" 1"].concat(), counted.clone()),
        (b"pause-tube -a 1", counted.clone()),
        (b"pause-tube- 1", counted),
        (b"pause-tube", bad(None)),
        (b"pause-tube ", bad(None)),
        (b"pause-tube 5", bad(None)),
        (b"pause-tube default", bad(None)),
        (b"pause-tube default ", bad(None)),
        (b"pause-tube default x", bad(None)),
        (b"pause-tube default 1 ", bad(None)),
        (b"pause-tube default 1x", bad(None)),
        (b"pause-tube default -1", bad(None)),
        (b"pause-tube default\t1", bad(None)),
        (b"pause-tube a,b 1", bad(None)),
        (b"pause-tube , 1", bad(None)),
        (b"pause-tube -a x", bad(None)),
        (b"pause-tube default 4294967296", bad(None)),
    ]);
}

#[test]
fn a_line_has_no_nul_and_no_cr() {
    check(&[
        (b"\0", bad(None)),
        (b"quit\0", bad(None)),
        (b"unknown\0", bad(None)),
        (b"reserve-with-timeout 0 \0", bad(None)),
        // beanstalkd does not find the end of these lines, and may never answer.
        (b"\r", bad(None)),
        (b"quit\r", bad(None)),
        (b"unknown\rcommand", bad(None)),
        (b"reserve-with-timeout 0 \rx", bad(None)),
    ]);
    let stream: &[u8] = b"a\rb\r\r\nquit\r\nx\n\r\n";
    assert_eq!(seen_in(9, [stream]).0, [bad(None), request(Request::Quit), UNKNOWN]);
}

#[test]
fn a_line_has_at_most_224_bytes() {
    let line = |bytes: usize| [&[b'x'].repeat(bytes - 2)[..], b"\r\n"].concat();
    assert_eq!(seen_in(9, [&line(LINE_BYTES_MAX)[..]]), (vec![UNKNOWN], 0));
    for bytes in [225, 226, 447, 448, 449, 1_000, 70_000] {
        let stream = [&line(bytes)[..], b"quit\r\n"].concat();
        let expected = (vec![bad(None), request(Request::Quit)], 0);
        for chunk in [1, 2, 223, 224, 225, 1_000, stream.len()] {
            assert_eq!(seen_in(9, stream.chunks(chunk)), expected, "{bytes} by {chunk}");
        }
    }
    // Neither half of a line end ends a line that is too long.
    let stream = [&b"\rx\n"[..]; 200].concat();
    let stream = [&stream[..], b"\r", b"\r\n", b"quit\r\n"].concat();
    for chunk in [1, 7, stream.len()] {
        let expected = (vec![bad(None), request(Request::Quit)], 0);
        assert_eq!(seen_in(9, stream.chunks(chunk)), expected);
    }
}

#[test]
fn an_endless_line_is_dropped_as_it_comes() {
    let mut decoder = RequestDecoder::new(9);
    let mut buffer = [b'x'; LINE_BYTES_MAX];
    assert_eq!(decoder.decode(&buffer[..223]), Decoded::Incomplete);
    buffer[223] = b'\r';
    assert_eq!(decoder.decode(&buffer), Decoded::Skip { length: 223 });
    assert_eq!(decoder.decode(b"\r"), Decoded::Incomplete);
    assert_eq!(decoder.decode(b"\rx"), Decoded::Skip { length: 2 });
    assert_eq!(decoder.decode(&[]), Decoded::Incomplete);
    let chunk = vec![b'x'; 65_536];
    for _ in 0..100 {
        assert_eq!(decoder.decode(&chunk), Decoded::Skip { length: 65_536 });
    }
    assert!(!decoder.is_between_requests());
    let end = Decoded::Fault { fault: Fault::BadFormat, counts_as: None, length: 3 };
    assert_eq!(decoder.decode(b"\n\r\nquit\r\n"), end);
    assert!(decoder.is_between_requests());
}

#[test]
fn puts_are_read_with_any_body() {
    let put = |ttr_s, body| request(Request::Put { priority: 1, delay_s: 2, ttr_s, body });
    check(&[
        (b"put 1 2 3 0\r\n", put(3, b"")),
        (b"put 1 2 0 0\r\n", put(1, b"")),
        (b"put  01  02  03  04\r\n\r\n\r\n", put(3, b"\r\n\r\n")),
        (b"put 1 2 3 11\r\n\0\xff\ndelete 1", put(3, b"\0\xff\ndelete 1")),
        (
            b"put 1 2 4294967295 32\r\n0123456789abcdef0123456789abcdef",
            put(u32::MAX, b"0123456789abcdef0123456789abcdef"),
        ),
    ]);
}

#[test]
fn a_put_is_counted_once_its_numbers_are_read() {
    let counted = bad(Some(Verb::Put));
    check(&[
        (b"put ", bad(None)),
        (b"put 1", bad(None)),
        (b"put 1 2 3", bad(None)),
        (b"put 1 2 3 ", bad(None)),
        (b"put 1 2 3 x", bad(None)),
        (b"put 1 2 3 -1", bad(None)),
        (b"put 1 2 x 4", bad(None)),
        (b"put 1x 2 3 4", bad(None)),
        (b"put 1,2,3,4", bad(None)),
        (b"put 1\t2\t3\t4", bad(None)),
        (b"put 4294967296 2 3 4", bad(None)),
        (b"put 1 4294967296 3 4", bad(None)),
        (b"put 1 2 4294967296 4", bad(None)),
        (b"put 1 2 3 4294967296", bad(None)),
        (b"put 1 2 3 4 ", counted.clone()),
        (b"put 1 2 3 4x", counted.clone()),
        (b"put 1 2 3 4 5", counted.clone()),
    ]);
    // The body of a put with too many arguments is read as lines.
    let stream = b"put 1 2 3 4 5\r\nquit\r\n";
    assert_eq!(seen_in(9, [&stream[..]]), (vec![counted, request(Request::Quit)], 0));
}

#[test]
fn a_body_must_end_where_it_said() {
    let quit = || request(Request::Quit);
    let streams: [&[u8]; 4] = [
        b"put 1 2 3 5\r\nhelloxxquit\r\n",
        b"put 1 2 3 5\r\nhello\n\rquit\r\n",
        b"put 1 2 3 5\r\nhello\rxquit\r\n",
        b"put 1 2 3 5\r\nhell\r\nxquit\r\n",
    ];
    for stream in streams {
        assert_eq!(seen_in(9, [stream]), (vec![NO_CRLF, quit()], 0), "{}", stream.escape_ascii());
        assert_eq!(seen_in(9, stream.chunks(1)), (vec![NO_CRLF, quit()], 0));
    }
    // The two bytes that are missing are taken from what follows.
    let stream = b"put 1 2 3 5\r\nhelloquit\r\n";
    assert_eq!(seen_in(9, [&stream[..]]), (vec![NO_CRLF, UNKNOWN], 0));
    let mut decoder = RequestDecoder::new(9);
    assert_eq!(decoder.decode(b"put 1 2 3 5\r\nhellox"), Decoded::Incomplete);
}

#[test]
fn a_job_that_is_too_big_is_skipped_and_then_refused() {
    let quit = || request(Request::Quit);
    let streams: [&[u8]; 5] = [
        b"put 1 2 3 10\r\n0123456789\r\nquit\r\n",
        b"put 1 2 3 10\r\nput 1 2 3 4\nquit\r\n",
        // What follows the body, or the last number, is not looked at.
        b"put 1 2 3 10\r\n0123456789xxquit\r\n",
        b"put 1 2 3 10 x\r\n0123456789\r\nquit\r\n",
        b"put 1 2 3 10x\r\n0123456789\r\nquit\r\n",
    ];
    for stream in streams {
        for chunk in [1, 2, 5, stream.len()] {
            let seen = seen_in(9, stream.chunks(chunk));
            assert_eq!(seen, (vec![TOO_BIG, quit()], 0), "{}", stream.escape_ascii());
        }
    }
    let mut decoder = RequestDecoder::new(9);
    assert_eq!(decoder.decode(b"put 1 2 3 10\r\n"), Decoded::Skip { length: 14 });
    assert_eq!(decoder.decode(b""), Decoded::Incomplete);
    assert_eq!(decoder.decode(b"0123456789\r"), Decoded::Skip { length: 11 });
    let counts_as = Some(Verb::Put);
    let end = Decoded::Fault { fault: Fault::JobTooBig, counts_as, length: 1 };
    assert_eq!(decoder.decode(b"\nquit\r\n"), end);
    assert!(decoder.is_between_requests());
}

#[test]
fn a_job_may_be_as_big_as_its_limit() {
    let put = |body| request(Request::Put { priority: 1, delay_s: 2, ttr_s: 3, body });
    let stream = b"put 1 2 3 9\r\n012345678\r\n";
    assert_eq!(seen_in(9, [&stream[..]]), (vec![put(b"012345678")], 0));
    assert_eq!(seen_in(8, [&stream[..]]), (vec![TOO_BIG], 0));
    assert_eq!(seen_in(0, [&stream[..]]), (vec![TOO_BIG], 0));
    let stream = b"put 1 2 3 0\r\n\r\n";
    assert_eq!(seen_in(0, [&stream[..]]), (vec![put(b"")], 0));
    assert_eq!(RequestDecoder::new(7).job_bytes_max(), 7);
    assert_eq!(RequestDecoder::new(7).buffer_bytes_max(), 7 + 224 + 2);
}

#[test]
fn the_largest_length_costs_nothing() {
    let line = b"put 1 2 3 4294967295\r\n";
    let mut decoder = RequestDecoder::new(u32::MAX);
    assert_eq!(decoder.decode(line), Decoded::Incomplete);

    let mut decoder = RequestDecoder::new(u32::MAX - 1);
    assert_eq!(decoder.decode(line), Decoded::Skip { length: line.len() });
    let chunk = vec![b'\n'; 1 << 20];
    for _ in 0..4_095 {
        assert_eq!(decoder.decode(&chunk), Decoded::Skip { length: 1 << 20 });
    }
    assert_eq!(decoder.decode(&chunk), Decoded::Skip { length: 1 << 20 });
    let counts_as = Some(Verb::Put);
    let end = Decoded::Fault { fault: Fault::JobTooBig, counts_as, length: 1 };
    assert_eq!(decoder.decode(&chunk), end, "2^32 + 1 bytes were skipped");
}

#[test]
fn a_request_with_an_invalid_tube_is_not_written() {
    for tube in [&b""[..], b"-a", b"a b", b"a\r\nquit", &[b'x'; 201]] {
        let mut out = b"before".to_vec();
        let request = Request::PauseTube { tube, delay_s: 1 };
        assert_eq!(request.put(&mut out), Err(Unwritable::InvalidTube));
        assert_eq!(Request::Use { tube }.put(&mut out), Err(Unwritable::InvalidTube));
        assert_eq!(out, b"before");
    }
}

/// Bytes that have a special meaning somewhere.
const TELLING: &[u8] = b"\r\r\r\n\n\n 01-+xp\0";

/// Streams of parts that often form something valid.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&[u8]; 16] = [
        b"put 1 2 3 4\r\n",
        b"put 0 0 0 33\r\n",
        b"put 0 0 0 32",
        b"abcd",
        b"\r\n",
        b"\r",
        b"\n",
        b" ",
        b"0",
        b"delete 1\r\n",
        b"reserve",
        b"-with-timeout 1",
        b"stats\r\n",
        b"01234567890123456789012345678901",
        b"use default\r\n",
        b"kick -1\r\n",
    ];
    proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..40)
        .prop_map(|pieces| pieces.concat())
}

/// Cuts `stream` at each of `cuts`.
fn cut<'a>(stream: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    ends.push(stream.len());
    ends.sort_unstable();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, end)| &stream[start..*end]).collect()
}

/// A tube that may be named.
fn tube() -> impl Strategy<Value = Vec<u8>> {
    proptest::string::bytes_regex("[A-Za-z0-9+/;.$_()][-A-Za-z0-9+/;.$_()]{0,199}").unwrap()
}

proptest! {
    #[test]
    fn any_bytes_read_the_same_however_they_are_divided(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..500),
            proptest::collection::vec(proptest::sample::select(TELLING), 0..500),
            pieces(),
        ],
        cuts in proptest::collection::vec(any::<Index>(), 0..30),
    ) {
        let (seen, _) = seen_in(JOB_BYTES_MAX, [&bytes[..]]);
        prop_assert_eq!(&seen_in(JOB_BYTES_MAX, cut(&bytes, &cuts)).0, &seen);
        prop_assert_eq!(&seen_in(JOB_BYTES_MAX, bytes.chunks(1)).0, &seen);
    }

    #[test]
    fn requests_come_back_as_they_were_put(
        verb in proptest::sample::select(&Verb::ALL[..]),
        (a, b, c, id) in any::<(u32, u32, u32, u64)>(),
        tube in tube(),
        body in proptest::collection::vec(any::<u8>(), 0..300),
        cuts in proptest::collection::vec(any::<Index>(), 0..5),
    ) {
        let tube = &tube[..];
        let request = match verb {
            Verb::Put => Request::Put { priority: a, delay_s: b, ttr_s: c.max(1), body: &body },
            Verb::Peek => Request::Peek { id },
            Verb::PeekReady => Request::PeekReady,
            Verb::PeekDelayed => Request::PeekDelayed,
            Verb::PeekBuried => Request::PeekBuried,
            Verb::Reserve => Request::Reserve,
            Verb::ReserveWithTimeout => Request::ReserveWithTimeout { timeout_s: a / 2 },
            Verb::Delete => Request::Delete { id },
            Verb::Release => Request::Release { id, priority: a, delay_s: b },
            Verb::Use => Request::Use { tube },
            Verb::Watch => Request::Watch { tube },
            Verb::Ignore => Request::Ignore { tube },
            Verb::Bury => Request::Bury { id, priority: a },
            Verb::Kick => Request::Kick { bound: a },
            Verb::Touch => Request::Touch { id },
            Verb::Stats => Request::Stats,
            Verb::StatsJob => Request::StatsJob { id },
            Verb::StatsTube => Request::StatsTube { tube },
            Verb::ListTubes => Request::ListTubes,
            Verb::ListTubeUsed => Request::ListTubeUsed,
            Verb::ListTubesWatched => Request::ListTubesWatched,
            Verb::PauseTube => Request::PauseTube { tube, delay_s: a },
            Verb::ReserveJob => Request::ReserveJob { id },
            Verb::KickJob => Request::KickJob { id },
            Verb::Quit => Request::Quit,
        };
        let mut bytes = Vec::new();
        request.put(&mut bytes).unwrap();
        prop_assert_eq!(seen_in(300, cut(&bytes, &cuts)), (vec![self::request(request)], 0));
    }
}
