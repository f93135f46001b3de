//! `pinpriq wire` against a peer that speaks the protocol byte by byte.

use std::net::TcpListener;

use pinpriq_proto::wire::{Decoded, Request, decode_request};

use crate::peer::{Session, check, pinpriq, run_against};
use crate::serving::Serving;

/// A reply of two packets with key `k`.
const TWO: &[u8] = b"\x00\x02\x00\x01\x00\x02k\x01\xff\x00\x01\x00\x00k";
/// A reply of one packet with an empty key.
const ONE: &[u8] = b"\x00\x01\x00\x00\x00\x05hello";

/// What a peer that accepts all pushes was sent, up to the fence, which is checked here.
fn accept_pushes(mut session: Session) -> Vec<Vec<u8>> {
    let mut pushes = Vec::new();
    loop {
        let request = session.request();
        if let Ok(Decoded::Message { request: Request::Pop { queue }, .. }) =
            decode_request(&request)
        {
            assert!(queue.starts_with(b"pinpriq-push-fence-"));
            session.send(b"\x00\x00");
            return pushes;
        }
        pushes.push(request);
    }
}

#[test]
fn push_sends_the_packet_as_documented() {
    let arguments = ["wire", "push", "jobs", "hello", "--key", "k1", "--ttl-ms", "1000"];
    let (output, pushes) = run_against(&arguments, b"", accept_pushes);
    check(&output, 0, b"");
    assert_eq!(pushes, [b"\x70\0\x04\x03\xE8\x01\0\x02\0\x05k1hellojobs".to_vec()]);
}

#[test]
fn push_takes_the_payload_from_stdin_byte_for_byte() {
    for arguments in [&["wire", "push", "q"][..], &["wire", "push", "q", "-"]] {
        let (output, pushes) = run_against(arguments, b"\x00\xff\n", accept_pushes);
        check(&output, 0, b"");
        assert_eq!(pushes, [b"\x70\0\x01\xff\xff\x01\0\0\0\x03\x00\xff\nq".to_vec()]);
    }
}

#[test]
fn push_sends_as_many_packets_as_asked() {
    let arguments = ["wire", "push", "q", "p", "--count", "10000", "--priority", "0"];
    let (output, pushes) = run_against(&arguments, b"", accept_pushes);
    check(&output, 0, b"");
    assert_eq!(pushes, vec![b"\x70\0\x01\xff\xff\x00\0\0\0\x01pq".to_vec(); 10_000]);
}

#[test]
fn push_says_when_the_server_refuses() {
    let (output, ()) = run_against(&["wire", "push", "q", "p"], b"", |mut session| {
        session.request();
        session.request();
    });
    let complaint = check(&output, 1, b"");
    assert!(complaint.contains("the push was not confirmed: the server closed"), "{complaint}");
}

#[test]
fn push_refuses_what_the_protocol_cannot_carry() {
    // The port is closed again, so a connection would end in another exit code.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let long = "x".repeat(65_536);
    let output = pinpriq(&["wire", "push", "q", &long, "--address", &address]).output();
    let complaint = check(&output.unwrap(), 2, b"");
    assert!(complaint.contains("the payload is 65536 bytes long"), "{complaint}");

    let output = pinpriq(&["wire", "push", "q", "p", "--address", &address]).output().unwrap();
    check(&output, 1, b"");
}

#[test]
fn pop_prints_a_line_for_each_packet_until_the_queue_is_empty() {
    let (output, ()) = run_against(&["wire", "pop", "q", "--count", "5"], b"", |mut session| {
        for reply in [TWO, ONE, b"\0\0"] {
            assert_eq!(session.request(), b"\x50\0\x01q");
            session.send(reply);
        }
        assert_eq!(session.request(), b"");
    });
    check(&output, 0, b"\x01\xff\n\nhello\n");
}

#[test]
fn pop_prints_in_the_asked_form() {
    let table: [(&[&str], &[u8]); 4] = [
        (&["--hex"], b"01\n\n"),
        (&["--hex", "--with-key"], b"6B\t01\n6B\t\n"),
        (&["-0"], b"\x01\0\0"),
        (&["--null", "--with-key"], b"k\t\x01\0k\t\0"),
    ];
    for (flags, expected) in table {
        let arguments = [&["wire", "pop", "q"], flags].concat();
        let (output, ()) = run_against(&arguments, b"", |mut session| {
            session.request();
            session.send(b"\x00\x02\x00\x01\x00\x01k\x01\x00\x01\x00\x00k");
        });
        check(&output, 0, expected);
    }
}

#[test]
fn pop_of_an_empty_queue_has_its_own_exit_code() {
    let (output, ()) = run_against(&["wire", "pop", "q"], b"", |mut session| {
        session.request();
        session.send(b"\0\0");
    });
    check(&output, 4, b"");
}

#[test]
fn pop_complains_about_a_reply_that_is_cut_short() {
    for reply in [&b""[..], b"\0", b"\0\x01", b"\0\x01\0\0\0\x05hell"] {
        let (output, ()) = run_against(&["wire", "pop", "q"], b"", |mut session| {
            session.request();
            session.send(reply);
        });
        check(&output, 1, b"");
    }
}

#[test]
fn subscribe_gives_one_credit_for_each_delivery_it_prints() {
    let arguments = ["wire", "subscribe", "a", "b", "--count", "2"];
    let (output, ()) = run_against(&arguments, b"", |mut session| {
        assert_eq!(session.request(), b"\x73\0\x01a");
        assert_eq!(session.request(), b"\x73\0\x01b");
        for delivery in [ONE, ONE] {
            assert_eq!(session.request(), b"\x41");
            session.send(delivery);
        }
        assert_eq!(session.request(), b"", "no credit without a use for it");
    });
    check(&output, 0, b"hello\nhello\n");
}

#[test]
fn subscribe_reads_bare_packets_when_told_so() {
    let arguments = ["wire", "subscribe", "a", "--framing", "bare", "--count", "1", "--with-key"];
    let (output, ()) = run_against(&arguments, b"", |mut session| {
        session.request();
        session.request();
        session.send(b"\x00\x02\x00\x05k1hello");
        assert_eq!(session.request(), b"");
    });
    check(&output, 0, b"k1\thello\n");
}

#[test]
fn subscribe_ends_with_the_server() {
    let script = |mut session: Session| {
        session.request();
        session.request();
        session.send(ONE);
        session.request();
    };
    let (output, ()) = run_against(&["wire", "subscribe", "a"], b"", script);
    check(&output, 0, b"hello\n");
    let (output, ()) = run_against(&["wire", "subscribe", "a", "--count", "2"], b"", script);
    check(&output, 1, b"hello\n");
}

#[test]
fn a_reader_that_has_gone_ends_the_command_quietly() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut child = pinpriq(&["wire", "subscribe", "q", "--address", &address]).spawn().unwrap();
    drop(child.stdout.take());
    let mut session = Session::accept(&listener);
    assert_eq!(session.request(), b"\x73\0\x01q");
    assert_eq!(session.request(), b"\x41");
    session.send(ONE);
    assert_eq!(session.request(), b"", "no credit for what is not read");
    check(&child.wait_with_output().unwrap(), 0, b"");
}

#[test]
fn a_resp_port_is_told_from_a_pinpriq_port() {
    let data = tempfile::tempdir().unwrap();
    // Without a line end a server that speaks RESP says nothing until it closes.
    let flags = ["--durability", "memory", "--resp", "127.0.0.1:0", "--frame-timeout-ms", "100"];
    let server = Serving::start(data.path(), &flags);
    let address = server.door("resp");
    for arguments in [
        &["wire", "push", "q", "p"][..],
        &["wire", "push", "q", "1\n2\n3\n"],
        &["wire", "push", "q", "1\n2\n", "--count", "10000"],
        &["wire", "pop", "q"],
        &["wire", "pop", "q\n"],
        &["wire", "subscribe", "q"],
    ] {
        let output = pinpriq(arguments).args(["--address", &address]).output().unwrap();
        let complaint = check(&output, 1, b"");
        let start = format!("pinpriq: {address} speaks RESP, so it looks like the server's RESP");
        assert!(complaint.starts_with(&start), "{arguments:?}: {complaint}");
        assert!(complaint.contains("needs the pinpriq port, 7250 by default"), "{complaint}");
    }
    server.stop();
}

#[test]
fn a_frame_that_begins_like_a_refusal_is_a_frame() {
    let (output, ()) =
        run_against(&["wire", "subscribe", "q", "--framing", "bare"], b"", |mut it| {
            it.request();
            it.request();
            // A packet whose key has 11,589 bytes.
            let key = [b"RR", &[b'k'; 0x2d45 - 2][..]].concat();
            it.send(&[&b"-E\x00\x01"[..], &key, b"p"].concat());
            it.end();
        });
    check(&output, 0, b"p\n");
}
