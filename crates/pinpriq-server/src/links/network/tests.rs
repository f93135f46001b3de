//! Tests with real sockets on the loopback interface.
//!
//! Where a test is about time, the clock is moved by hand.

mod rig;

use std::net::Ipv4Addr;

use pinpriq_proto::time::Span;
use pinpriq_tls::{NodeKey, Tls, Trust};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use self::rig::{Log, Node, Raw, TTL, listener, proxy, record, run};
use super::greeting::{Agreed, Own, Trouble, greet_acceptor, greet_dialer};
use super::*;
use crate::links::frame::{BODY_BYTES_MAX, Versions, put_frame};
use crate::tls::socket::Socket;

/// Two nodes, the first of which has dialed the second. Returns them with the number of the
/// connection at the second.
async fn joined() -> (Node, Node, u64) {
    let (one, other) = (Node::start(1), Node::start(2));
    one.dial(&other);
    assert_eq!(one.next().await, NetworkEvent::Up(2));
    let NetworkEvent::Came { id, instance: 1 } = other.next().await else { panic!("no one came") };
    (one, other, id)
}

fn message(from: End, body: &[u8]) -> NetworkEvent {
    NetworkEvent::Message { from, body: body.to_vec() }
}

#[test]
fn two_nodes_exchange_bodies_in_order() {
    run(async {
        let (one, other, id) = joined().await;
        let long = vec![5; BODY_BYTES_MAX];
        for body in [&b"first"[..], &long, b"last"] {
            one.network.send(End::To(2), body);
            other.network.send(End::From(id), body);
        }
        assert!(one.network.waiting_bytes() > long.len());
        for body in [&b"first"[..], &long, b"last"] {
            assert!(other.next().await == message(End::From(id), body));
            assert!(one.next().await == message(End::To(2), body));
        }
        assert_eq!((one.network.waiting_bytes(), other.network.waiting_bytes()), (0, 0));
    });
}

#[test]
fn each_node_dials_the_other() {
    run(async {
        let (one, other, id) = joined().await;
        other.dial(&one);
        assert_eq!(other.next().await, NetworkEvent::Up(1));
        assert_eq!(one.next().await, NetworkEvent::Came { id: 0, instance: 2 });
        one.network.send(End::To(2), b"errand");
        one.network.send(End::From(0), b"news");
        let mut seen = [other.next().await, other.next().await];
        seen.sort_by_key(|event| matches!(event, NetworkEvent::Message { from: End::To(_), .. }));
        let expected = [message(End::From(id), b"errand"), message(End::To(1), b"news")];
        assert_eq!(seen, expected);
    });
}

#[test]
fn what_is_sent_together_leaves_in_one_write() {
    run(async {
        let node = Node::start(1);
        let mut raw = Raw::accept(&node, 2).await;
        for number in 0..1_000_u16 {
            node.network.send(End::To(2), &number.to_le_bytes());
        }
        let mut bytes = vec![0; 1 << 20];
        let first = raw.socket.read(&mut bytes).await.unwrap();
        assert_eq!(first, 1_000 * (4 + 2));
    });
}

#[test]
fn nothing_is_sent_where_no_connection_is() {
    run(async {
        let (one, other, id) = joined().await;
        one.network.send(End::To(3), b"lost");
        one.network.send(End::From(0), b"lost");
        other.network.send(End::To(1), b"lost");
        other.network.send(End::From(id), b"");
        other.network.send(End::From(id), b"seen");
        assert_eq!(one.next().await, message(End::To(2), b"seen"));
    });
}

#[test]
fn strangers_without_a_certificate_are_refused() {
    run(async {
        let (node, (log, _kept)) = (Node::start(1), Log::keep());
        let refused = "refused a connection to the port for other nodes";
        // A node of before, and a client of TLS.
        let mut plain = TcpStream::connect(node.address).await.unwrap();
        plain.write_all(b"pinpriq\0\x01\0\x01\0").await.unwrap();
        log.has(&[refused, "it does not encrypt"]).await;
        assert_eq!(plain.read(&mut [0; 64]).await.ok().filter(|count| *count > 0), None);
        node.clock.advance(Span::from_ms(1_000));
        let anybody = Tls::new(&Trust::Anybody, None).unwrap();
        let stream = TcpStream::connect(node.address).await.unwrap();
        let shaken = Socket::shake_as_client(stream, Arc::new(anybody.config())).await;
        log.has(&[refused, "the encryption fails"]).await;
        assert!(shaken.is_err(), "the handshake is not done");
        assert_eq!(node.seen(), []);
    });
}

/// Dials a node with a new key, as this instance. Returns why it was not accepted.
async fn dial_as(node: &Node, instance: u128) -> String {
    let stream = TcpStream::connect(node.address).await.unwrap();
    let config = NodeKey::generate().unwrap().dialing(node.key.fingerprint());
    let dialed = greet_acceptor(stream, config, Own::new(instance), (1, &node.record())).await;
    dialed.unwrap_err().to_string()
}

#[test]
fn a_certificate_that_is_not_in_the_record_is_refused() {
    run(async {
        let (node, (log, _kept)) = (Node::start(1), Log::keep());
        let reason = "it has closed the connection: its log says why";
        node.meet(2, &NodeKey::generate().unwrap());
        assert!(dial_as(&node, 2).await.starts_with(reason));
        log.has(&["refused", "its certificate is not the one in the record of n2"]).await;
        // Its record may come, for a while.
        while log.warnings("00000003, and the registry has no record of that") == 0 {
            node.advancing(dial_as(&node, 3)).await;
        }
        assert_eq!(node.seen(), []);
    });
}

#[test]
fn who_answers_with_another_certificate_is_not_talked_to() {
    run(async {
        let ((one, other), (log, _kept)) = ((Node::start(1), Node::start(2)), Log::keep());
        other.meet(1, &one.key);
        let why = "its certificate is not the one in the record of n2";
        one.dial_only(&[(2, record(2, other.address, Some([7; 32])))]);
        log.has(&["no connection to another node", "node=\"n2\"", why]).await;
        one.dial_only(&[(2, record(2, other.address, None))]);
        log.has(&["no connection to another node", "the record of n2", "no fingerprint"]).await;
        // Nor to what does not encrypt.
        let listener = TcpListener::from_std(listener()).unwrap();
        one.dial_only(&[(3, record(3, listener.local_addr().unwrap(), Some([7; 32])))]);
        let mut plain = listener.accept().await.unwrap().0;
        plain.write_all(b"+PONG\r\n").await.unwrap();
        log.has(&["no connection to another node", "node=\"n3\"", "it does not encrypt"]).await;
        assert_eq!((one.seen(), other.seen()), (vec![], vec![]));
        one.dial(&other);
        assert_eq!(one.next().await, NetworkEvent::Up(2));
    });
}

#[test]
fn a_node_that_was_started_again_is_known_by_its_new_record() {
    run(async {
        let (one, former, _) = joined().await;
        let (log, _kept) = Log::keep();
        // The same address, and another key.
        let again = Node::start(3);
        one.dial_only(&[(2, record(2, again.address, Some(former.key.fingerprint())))]);
        assert_eq!(one.next().await, NetworkEvent::Down(2));
        log.has(&["no connection to another node", "the record of n2"]).await;
        // It dials the other, which reads its record later.
        again.dial_only(&[(1, one.record())]);
        again.settle().await;
        assert_eq!(again.seen(), []);
        one.dial(&again);
        let mut seen = [one.next().await, one.next().await];
        seen.sort_by_key(|event| matches!(event, NetworkEvent::Came { .. }));
        assert_eq!(seen, [NetworkEvent::Up(3), NetworkEvent::Came { id: 0, instance: 3 }]);
        assert_eq!(log.warnings("refused"), 0, "it was not refused before its record came");
    });
}

#[test]
fn nothing_that_is_said_can_be_read_on_the_way() {
    run(async {
        let (one, other) = (Node::start(1), Node::start(2));
        let (address, seen) = proxy(other.address).await;
        other.meet(1, &one.key);
        one.dial_only(&[(2, Record { address: address.to_string(), ..other.record() })]);
        assert_eq!(one.next().await, NetworkEvent::Up(2));
        assert_eq!(other.next().await, NetworkEvent::Came { id: 0, instance: 1 });
        let body = b"a payload that everybody would know";
        one.network.send(End::To(2), body);
        other.network.send(End::From(0), body);
        assert_eq!(other.next().await, message(End::From(0), body));
        assert_eq!(one.next().await, message(End::To(2), body));
        let bytes = seen.bytes.borrow();
        assert!(bytes.len() > 2 * body.len());
        for text in [&body[..], b"pinpriq"] {
            assert!(!bytes.windows(text.len()).any(|part| part == text), "{text:?}");
        }
    });
}

/// Connects two nodes that speak these versions. Returns what the dialer and the acceptor have
/// agreed on, or why they have not.
async fn meet(dialer: Versions, acceptor: Versions) -> [Result<u16, String>; 2] {
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let outcome = |agreed: Result<Agreed, Trouble>| match agreed {
        Ok(agreed) => Ok(agreed.version),
        Err(trouble) => Err(trouble.to_string()),
    };
    let [key, other] = [1, 2].map(|_| NodeKey::generate().unwrap());
    let dialing = async {
        let stream = TcpStream::connect(address).await.unwrap();
        let own = Own { instance: 1, versions: dialer };
        let (config, record) = (key.dialing(other.fingerprint()), record(2, address, None));
        outcome(greet_acceptor(stream, config, own, (2, &record)).await)
    };
    let accepting = async {
        let stream = listener.accept().await.unwrap().0;
        let own = Own { instance: 2, versions: acceptor };
        let record_of = async |_| Some(record(1, address, Some(key.fingerprint())));
        outcome(greet_dialer(stream, other.accepting(), own, record_of).await)
    };
    tokio::join!(dialing, accepting).into()
}

#[test]
fn the_version_before_is_spoken_and_the_one_before_that_is_refused_on_both_sides() {
    run(async {
        let [older, before, now] = [1, 2, 3].map(|oldest| Versions { oldest, newest: oldest + 1 });
        for (dialer, acceptor) in [(now, before), (before, now)] {
            assert_eq!(meet(dialer, acceptor).await, [Ok(3), Ok(3)]);
        }
        assert_eq!(meet(now, now).await, [Ok(4), Ok(4)]);
        let refusal = |own, theirs| Err(Unwelcome::Versions { theirs, own }.to_string());
        for (dialer, acceptor) in [(now, older), (older, now)] {
            let expected = [refusal(dialer, acceptor), refusal(acceptor, dialer)];
            assert_eq!(meet(dialer, acceptor).await, expected);
        }
        let sentence = Unwelcome::Versions { theirs: older, own: now }.to_string();
        let start = "it speaks version 1 to 2 of links, and this node speaks version 3 to 4: ";
        assert!(sentence.starts_with(start), "{sentence}");
    });
}

#[test]
fn strangers_are_closed_and_others_still_served() {
    run(async {
        let (one, other) = (Node::start(1), Node::start(2));
        // Some say something else, and many say nothing.
        let mut http = TcpStream::connect(other.address).await.unwrap();
        http.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = http.read_to_end(&mut answer).await;
        assert!(answer.is_empty());
        let mut silent = Vec::new();
        for _ in 0..GREETING_MAX {
            silent.push(TcpStream::connect(other.address).await.unwrap());
        }
        one.dial(&other);
        // Their time is over.
        let closed = async {
            for stream in &mut silent {
                assert!(stream.read(&mut [0]).await.is_ok_and(|count| count == 0));
            }
        };
        other.advancing(closed).await;
        assert_eq!(one.next().await, NetworkEvent::Up(2));
    });
}

#[test]
fn another_instance_at_the_address_is_not_taken_for_the_one_that_was_dialed() {
    run(async {
        let (one, other) = (Node::start(1), Node::start(2));
        other.meet(1, &one.key);
        let strange = (3, Record { node: "n3".to_owned(), ..other.record() });
        one.dial_only(std::slice::from_ref(&strange));
        one.settle().await;
        one.dial_only(&[strange, (2, other.record())]);
        assert_eq!(one.next().await, NetworkEvent::Up(2));
        assert_eq!(other.next().await, NetworkEvent::Came { id: 0, instance: 1 });
        assert_eq!((one.seen(), other.seen()), (vec![], vec![]));
    });
}

#[test]
fn a_flipped_bit_ends_the_connection() {
    run(async {
        let (one, other) = (Node::start(1), Node::start(2));
        let (address, seen) = proxy(other.address).await;
        other.meet(1, &one.key);
        one.dial_only(&[(2, Record { address: address.to_string(), ..other.record() })]);
        assert_eq!(one.next().await, NetworkEvent::Up(2));
        assert_eq!(other.next().await, NetworkEvent::Came { id: 0, instance: 1 });
        one.network.send(End::To(2), b"first");
        assert_eq!(other.next().await, message(End::From(0), b"first"));
        seen.tampers.set(true);
        one.network.send(End::To(2), b"second");
        assert_eq!(other.next().await, NetworkEvent::Gone(0));
        assert_eq!(one.next().await, NetworkEvent::Down(2));
        assert_eq!((one.seen(), other.seen()), (vec![], vec![]));
    });
}

#[test]
fn a_body_that_is_too_long_ends_the_connection_that_it_was_sent_on() {
    run(async {
        let (one, other, id) = joined().await;
        one.network.send(End::To(2), &vec![0; BODY_BYTES_MAX + 1]);
        assert_eq!(one.next().await, NetworkEvent::Down(2));
        assert_eq!(other.next().await, NetworkEvent::Gone(id));
    });
}

#[test]
fn a_silent_node_is_given_up_after_its_time() {
    run(async {
        let node = Node::start(1);
        let mut raw = Raw::accept(&node, 2).await;
        for _ in 0..4 {
            node.clock.advance(Span::from_ms(TTL.ms() / 5));
            raw.expect_ping().await;
        }
        assert_eq!(node.seen(), []);
        node.clock.advance(Span::from_ms(TTL.ms() / 5));
        assert_eq!(node.next().await, NetworkEvent::Down(2));
    });
}

#[test]
fn a_node_that_pings_is_not_given_up() {
    run(async {
        let node = Node::start(1);
        let mut raw = Raw::accept(&node, 2).await;
        for _ in 0..12 {
            raw.send(b"").await;
            node.clock.advance(Span::from_ms(TTL.ms() / 5));
            raw.expect_ping().await;
        }
        raw.send(b"still here").await;
        assert_eq!(node.next().await, message(End::To(2), b"still here"));
        drop(raw);
        assert_eq!(node.next().await, NetworkEvent::Down(2));
    });
}

#[test]
fn a_frame_that_does_not_come_to_its_end_ends_the_connection() {
    run(async {
        let node = Node::start(1);
        let mut raw = Raw::accept(&node, 2).await;
        // It claims 1 MiB, which has a second more, and goes on byte by byte.
        raw.write(&(1_u32 << 20).to_le_bytes()).await.unwrap();
        let step = Span::from_ms(TTL.ms() / 5);
        let mut steps = 0;
        while node.seen().is_empty() {
            steps += 1;
            assert!(steps < 20, "it was never given up");
            if raw.write(&[0]).await.is_err() {
                break;
            }
            node.clock.advance(step);
            node.settle().await;
        }
        assert!(steps >= 5, "given up after {steps} steps");
    });
}

#[test]
fn a_node_that_accepts_nothing_is_given_up() {
    run(async {
        let node = Node::start(1);
        let mut raw = Raw::accept(&node, 2).await;
        // More than the buffers of the sockets have room for.
        node.network.send(End::To(2), &vec![0; BODY_BYTES_MAX]);
        let mut steps = 0;
        while node.seen().is_empty() {
            steps += 1;
            assert!(steps < 20, "it was never given up");
            let _ = raw.write(&[0; 4]).await;
            node.clock.advance(Span::from_ms(TTL.ms() / 5));
            node.settle().await;
        }
        assert!(steps >= 5, "given up after {steps} steps");
    });
}

#[test]
fn a_connection_that_was_lost_is_dialed_again() {
    run(async {
        let node = Node::start(1);
        let listener = Raw::listen(&node, 2);
        for _ in 0..3 {
            let raw = node.advancing(Raw::accept_at(&listener, &node)).await;
            drop(raw);
            assert_eq!(node.next().await, NetworkEvent::Down(2));
        }
    });
}

#[test]
fn a_node_that_starts_later_is_found() {
    run(async {
        let one = Node::start(1);
        // No other process can listen there, and none does yet.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        one.dial_only(&[(2, record(2, socket.local_addr().unwrap(), Some([0; 32])))]);
        one.settle().await;
        let other = Node::listen(2, socket.listen(16).unwrap().into_std().unwrap());
        one.dial(&other);
        let dialed = one.advancing(one.next()).await;
        assert_eq!(dialed, NetworkEvent::Up(2));
        assert_eq!(other.next().await, NetworkEvent::Came { id: 0, instance: 1 });
    });
}

#[test]
fn the_pause_before_it_dials_again_doubles_up_to_a_second() {
    run(async {
        let node = Node::start(1);
        let listener = TcpListener::from_std(listener()).unwrap();
        node.dial_only(&[(2, record(2, listener.local_addr().unwrap(), Some([0; 32])))]);
        for pause in [100, 200, 400, 800, 1_000, 1_000] {
            // The attempt ends without an answer.
            drop(listener.accept().await.unwrap());
            node.settle().await;
            node.clock.advance(Span::from_ms(pause - 1));
            node.settle().await;
            let early = tokio::select! {
                biased;
                dialed = listener.accept() => Some(dialed),
                () = node.settle() => None,
            };
            assert!(early.is_none(), "dialed again before {pause} ms");
            node.clock.advance(Span::from_ms(1));
        }
    });
}

#[test]
fn a_node_that_is_no_longer_wanted_is_closed_and_another_is_dialed() {
    run(async {
        let (one, other, id) = joined().await;
        let third = Node::start(3);
        // This must not be delivered, for the connection is not wanted when it arrives.
        other.network.send(End::From(id), b"late");
        one.dial(&third);
        assert_eq!(one.next().await, NetworkEvent::Down(2));
        assert_eq!(one.next().await, NetworkEvent::Up(3));
        assert_eq!(other.next().await, NetworkEvent::Gone(id));
        // The same again changes nothing.
        one.dial(&third);
        one.network.send(End::To(3), b"here");
        assert_eq!(third.next().await, NetworkEvent::Came { id: 0, instance: 1 });
        assert_eq!(third.next().await, message(End::From(0), b"here"));
        assert_eq!(one.seen(), []);
        // The first is dialed again when it is wanted again, even if that is at once.
        one.dial_only(&[]);
        one.dial(&third);
        assert_eq!(one.next().await, NetworkEvent::Down(3));
        assert_eq!(one.next().await, NetworkEvent::Up(3));
    });
}

#[test]
fn nothing_is_delivered_after_the_connection_was_ended() {
    run(async {
        let (node, hook) = Node::with_hook(1);
        let mut raw = Raw::accept(&node, 2).await;
        // The first of three bodies that arrive together makes the node end the connection.
        let network = node.network.clone();
        *hook.borrow_mut() = Some(Box::new(move || network.set_peers(BTreeMap::new())));
        let mut frames = Vec::new();
        for body in [b"one", b"two", b"six"] {
            put_frame(body, &mut frames).unwrap();
        }
        raw.write(&frames).await.unwrap();
        assert_eq!(node.next().await, message(End::To(2), b"one"));
        assert_eq!(node.next().await, NetworkEvent::Down(2));
        assert_eq!(node.seen(), []);
        hook.borrow_mut().take();
    });
}

#[test]
fn a_node_at_another_address_is_dialed_there() {
    run(async {
        let (one, other, id) = joined().await;
        let (address, _) = proxy(other.address).await;
        one.dial_only(&[(2, Record { address: address.to_string(), ..other.record() })]);
        assert_eq!(one.next().await, NetworkEvent::Down(2));
        assert_eq!(one.next().await, NetworkEvent::Up(2));
        assert_eq!(other.next().await, NetworkEvent::Gone(id));
        assert_eq!(other.next().await, NetworkEvent::Came { id: 1, instance: 1 });
    });
}

#[test]
fn a_host_may_have_a_name() {
    run(async {
        let (one, other) = (Node::start(1), Node::start(2));
        other.meet(1, &one.key);
        let address = format!("localhost:{}", other.address.port());
        one.dial_only(&[(2, Record { address, ..other.record() })]);
        assert_eq!(one.next().await, NetworkEvent::Up(2));
    });
}

#[test]
fn a_new_instance_greets_everyone_again() {
    run(async {
        let (one, other, id) = joined().await;
        other.dial(&one);
        assert_eq!(other.next().await, NetworkEvent::Up(1));
        assert_eq!(one.next().await, NetworkEvent::Came { id: 0, instance: 2 });
        one.network.set_own(1);
        one.settle().await;
        assert_eq!(one.seen(), []);
        other.meet(11, &one.key);
        one.network.set_own(11);
        let mut seen = [one.next().await, one.next().await, one.next().await];
        seen.sort_by_key(|event| format!("{event:?}"));
        assert_eq!(seen, [NetworkEvent::Down(2), NetworkEvent::Gone(0), NetworkEvent::Up(2)]);
        let mut seen = [other.next().await, other.next().await, other.next().await];
        seen.sort_by_key(|event| format!("{event:?}"));
        let came = NetworkEvent::Came { id: id + 1, instance: 11 };
        assert_eq!(seen, [came, NetworkEvent::Down(1), NetworkEvent::Gone(id)]);
    });
}

#[test]
fn a_node_that_dials_again_replaces_its_connection() {
    run(async {
        let node = Node::start(1);
        let mut first = Raw::dial(&node, 2).await;
        assert_eq!(node.next().await, NetworkEvent::Came { id: 0, instance: 2 });
        let mut second = Raw::dial(&node, 2).await;
        assert_eq!(node.next().await, NetworkEvent::Gone(0));
        assert_eq!(node.next().await, NetworkEvent::Came { id: 1, instance: 2 });
        first.send(b"late").await;
        second.send(b"here").await;
        assert_eq!(node.next().await, message(End::From(1), b"here"));
        drop((first, second));
        assert_eq!(node.next().await, NetworkEvent::Gone(1));
        assert_eq!(node.seen(), []);
    });
}
