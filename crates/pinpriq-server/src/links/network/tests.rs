//! Tests with real sockets on the loopback interface.
//!
//! Where a test is about time, the clock is moved by hand.

mod rig;

use std::net::Ipv4Addr;

use pinpriq_proto::time::Span;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use self::rig::{Node, Raw, SECRET, TTL, Tampering, listener, proxy, run};
use super::greeting::{Agreed, Own, Trouble, greet_acceptor, greet_dialer};
use super::*;
use crate::links::frame::{BODY_BYTES_MAX, Greeting, Versions};

const OTHER_SECRET: Secret = [9; 32];

/// Two nodes, the first of which has dialed the second. Returns them with the number of the
/// connection at the second.
async fn joined() -> (Node, Node, u64) {
    let (one, other) = (Node::start(1, SECRET), Node::start(2, SECRET));
    one.dial(&other);
    assert_eq!(one.next().await, NetworkEvent::Up(2));
    let NetworkEvent::Came { id, instance: 1 } = other.next().await else { panic!("no one came") };
    (one, other, id)
}

fn message(from: Way, body: &[u8]) -> NetworkEvent {
    NetworkEvent::Message { from, body: body.to_vec() }
}

#[test]
fn two_nodes_exchange_bodies_in_order() {
    run(async {
        let (one, other, id) = joined().await;
        let long = vec![5; BODY_BYTES_MAX];
        for body in [&b"first"[..], &long, b"last"] {
            one.network.send(Way::Outgoing(2), body);
            other.network.send(Way::Incoming(id), body);
        }
        assert!(one.network.waiting_bytes() > long.len());
        for body in [&b"first"[..], &long, b"last"] {
            assert!(other.next().await == message(Way::Incoming(id), body));
            assert!(one.next().await == message(Way::Outgoing(2), body));
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
        one.network.send(Way::Outgoing(2), b"errand");
        one.network.send(Way::Incoming(0), b"news");
        let mut seen = [other.next().await, other.next().await];
        seen.sort_by_key(|event| {
            matches!(event, NetworkEvent::Message { from: Way::Outgoing(_), .. })
        });
        let expected = [message(Way::Incoming(id), b"errand"), message(Way::Outgoing(1), b"news")];
        assert_eq!(seen, expected);
    });
}

#[test]
fn what_is_sent_together_leaves_in_one_write() {
    run(async {
        let node = Node::start(1, SECRET);
        let mut raw = Raw::accept(&node, 2).await;
        for number in 0..1_000_u16 {
            node.network.send(Way::Outgoing(2), &number.to_le_bytes());
        }
        let mut bytes = vec![0; 1 << 20];
        let first = raw.stream.read(&mut bytes).await.unwrap();
        assert_eq!(first, 1_000 * (4 + 2 + 16));
    });
}

#[test]
fn nothing_is_sent_where_no_connection_is() {
    run(async {
        let (one, other, id) = joined().await;
        one.network.send(Way::Outgoing(3), b"lost");
        one.network.send(Way::Incoming(0), b"lost");
        other.network.send(Way::Outgoing(1), b"lost");
        other.network.send(Way::Incoming(id), b"");
        other.network.send(Way::Incoming(id), b"seen");
        assert_eq!(one.next().await, message(Way::Outgoing(2), b"seen"));
    });
}

#[test]
fn another_secret_is_refused_on_both_sides() {
    run(async {
        let listener = listener();
        let address = listener.local_addr().unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let accepting = async {
            let mut stream = listener.accept().await.unwrap().0;
            greet_dialer(&mut stream, &SECRET, Own::new(2)).await.err().map(|it| it.to_string())
        };
        let dialing = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            greet_acceptor(&mut stream, &OTHER_SECRET, Own::new(1), 2)
                .await
                .err()
                .map(|it| it.to_string())
        };
        let refused = Some(Unwelcome::Secret.to_string());
        assert_eq!(tokio::join!(accepting, dialing), (refused.clone(), refused));
    });
}

#[test]
fn a_node_with_another_secret_is_never_up() {
    run(async {
        let (one, other) = (Node::start(1, SECRET), Node::start(2, OTHER_SECRET));
        let third = Node::start(3, SECRET);
        one.dial(&other);
        other.dial(&one);
        // Several attempts.
        for _ in 0..5 {
            one.clock.advance(Span::from_ms(1_000));
            other.clock.advance(Span::from_ms(1_000));
            third.dial(&one);
            assert_eq!(third.next().await, NetworkEvent::Up(1));
            let NetworkEvent::Came { instance: 3, .. } = one.next().await else { panic!("not 3") };
            third.network.set_peers(&[]);
            assert_eq!(third.next().await, NetworkEvent::Down(1));
            let NetworkEvent::Gone(_) = one.next().await else { panic!("not gone") };
        }
        assert_eq!(other.seen(), []);
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
    let dialing = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let own = Own { instance: 1, versions: dialer };
        outcome(greet_acceptor(&mut stream, &SECRET, own, 2).await)
    };
    let accepting = async {
        let mut stream = listener.accept().await.unwrap().0;
        let own = Own { instance: 2, versions: acceptor };
        outcome(greet_dialer(&mut stream, &SECRET, own).await)
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
fn a_node_of_another_version_is_never_up() {
    run(async {
        let node = Node::start(1, SECRET);
        let mut stream = TcpStream::connect(node.address).await.unwrap();
        let versions = Versions { newest: 77, oldest: 76 };
        let strange = Greeting { versions, instance: 9, fresh: [0; 32] }.encode();
        stream.write_all(&strange).await.unwrap();
        let mut answer = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer).await.unwrap();
        assert_eq!((answer.len(), &answer[..8]), (Greeting::BYTES, &strange[..8]));
        assert_eq!(node.seen(), []);
    });
}

#[test]
fn strangers_are_closed_and_others_still_served() {
    run(async {
        let (one, other) = (Node::start(1, SECRET), Node::start(2, SECRET));
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
        let up = async { one.next().await };
        let moving = async {
            loop {
                other.clock.advance(TTL);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            event = up => assert_eq!(event, NetworkEvent::Up(2)),
            () = moving => {}
        }
    });
}

#[test]
fn another_instance_at_the_address_is_not_taken_for_the_one_that_was_dialed() {
    run(async {
        let (one, other) = (Node::start(1, SECRET), Node::start(2, SECRET));
        one.network.set_peers(&[(3, other.address.to_string())]);
        one.settle().await;
        one.network.set_peers(&[(3, other.address.to_string()), (2, other.address.to_string())]);
        assert_eq!(one.next().await, NetworkEvent::Up(2));
        assert_eq!(other.next().await, NetworkEvent::Came { id: 0, instance: 1 });
        assert_eq!((one.seen(), other.seen()), (vec![], vec![]));
    });
}

/// Sends three bodies through a proxy that does this to the second. Checks that the connection
/// ends, and that nothing but the first has arrived.
fn tampered(tampering: Tampering) {
    run(async move {
        let (one, other) = (Node::start(1, SECRET), Node::start(2, SECRET));
        let address = proxy(other.address, tampering).await;
        one.network.set_peers(&[(2, address.to_string())]);
        assert_eq!(one.next().await, NetworkEvent::Up(2));
        assert_eq!(other.next().await, NetworkEvent::Came { id: 0, instance: 1 });
        for body in [&b"first"[..], b"second", b"third"] {
            one.network.send(Way::Outgoing(2), body);
        }
        assert_eq!(other.next().await, message(Way::Incoming(0), b"first"), "{tampering:?}");
        if matches!(tampering, Tampering::Repeat) {
            assert_eq!(other.next().await, message(Way::Incoming(0), b"second"));
        }
        assert_eq!(other.next().await, NetworkEvent::Gone(0), "{tampering:?}");
        assert_eq!(one.next().await, NetworkEvent::Down(2), "{tampering:?}");
        assert_eq!((one.seen(), other.seen()), (vec![], vec![]));
    });
}

#[test]
fn a_flipped_bit_ends_the_connection() {
    // In the length, in the body and in what proves it.
    for bit in [1, 4 * 8, 9 * 8 + 7, 4 * 8 + 6 * 8, (4 + 6 + 16) * 8 - 1] {
        tampered(Tampering::Flip(bit));
    }
}

#[test]
fn a_repeated_frame_ends_the_connection() {
    tampered(Tampering::Repeat);
}

#[test]
fn a_dropped_frame_ends_the_connection() {
    tampered(Tampering::Drop);
}

#[test]
fn frames_in_another_order_end_the_connection() {
    tampered(Tampering::Swap);
}

#[test]
fn a_body_that_is_too_long_ends_the_connection_that_it_was_sent_on() {
    run(async {
        let (one, other, id) = joined().await;
        one.network.send(Way::Outgoing(2), &vec![0; BODY_BYTES_MAX + 1]);
        assert_eq!(one.next().await, NetworkEvent::Down(2));
        assert_eq!(other.next().await, NetworkEvent::Gone(id));
    });
}

#[test]
fn a_silent_node_is_given_up_after_its_time() {
    run(async {
        let node = Node::start(1, SECRET);
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
        let node = Node::start(1, SECRET);
        let mut raw = Raw::accept(&node, 2).await;
        for _ in 0..12 {
            raw.send(b"").await;
            node.clock.advance(Span::from_ms(TTL.ms() / 5));
            raw.expect_ping().await;
        }
        raw.send(b"still here").await;
        assert_eq!(node.next().await, message(Way::Outgoing(2), b"still here"));
        drop(raw);
        assert_eq!(node.next().await, NetworkEvent::Down(2));
    });
}

#[test]
fn a_frame_that_does_not_come_to_its_end_ends_the_connection() {
    run(async {
        let node = Node::start(1, SECRET);
        let mut raw = Raw::accept(&node, 2).await;
        // It claims 1 MiB, which has a second more, and goes on byte by byte.
        raw.stream.write_all(&(1_u32 << 20).to_le_bytes()).await.unwrap();
        let step = Span::from_ms(TTL.ms() / 5);
        let mut steps = 0;
        while node.seen().is_empty() {
            steps += 1;
            assert!(steps < 20, "it was never given up");
            if raw.stream.write_all(&[0]).await.is_err() {
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
        let node = Node::start(1, SECRET);
        let mut raw = Raw::accept(&node, 2).await;
        // More than the buffers of the sockets have room for.
        node.network.send(Way::Outgoing(2), &vec![0; BODY_BYTES_MAX]);
        let mut steps = 0;
        while node.seen().is_empty() {
            steps += 1;
            assert!(steps < 20, "it was never given up");
            let mut ping = Vec::new();
            raw.sealer.seal(b"", &mut ping).unwrap();
            let _ = raw.stream.write_all(&ping).await;
            node.clock.advance(Span::from_ms(TTL.ms() / 5));
            node.settle().await;
        }
        assert!(steps >= 5, "given up after {steps} steps");
    });
}

#[test]
fn a_connection_that_was_lost_is_dialed_again() {
    run(async {
        let node = Node::start(1, SECRET);
        let listener = Raw::listen(&node, 2);
        for _ in 0..3 {
            let raw = node.advancing(Raw::accept_at(&listener, &node, 2)).await;
            drop(raw);
            assert_eq!(node.next().await, NetworkEvent::Down(2));
        }
    });
}

#[test]
fn a_node_that_starts_later_is_found() {
    run(async {
        let one = Node::start(1, SECRET);
        // Nobody else can listen there, and nobody does yet.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        one.network.set_peers(&[(2, socket.local_addr().unwrap().to_string())]);
        one.settle().await;
        let other = Node::listen(2, SECRET, socket.listen(16).unwrap().into_std().unwrap());
        let dialed = one.advancing(one.next()).await;
        assert_eq!(dialed, NetworkEvent::Up(2));
        assert_eq!(other.next().await, NetworkEvent::Came { id: 0, instance: 1 });
    });
}

#[test]
fn the_pause_before_it_dials_again_doubles_up_to_a_second() {
    run(async {
        let node = Node::start(1, SECRET);
        let listener = TcpListener::from_std(listener()).unwrap();
        node.network.set_peers(&[(2, listener.local_addr().unwrap().to_string())]);
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
        let third = Node::start(3, SECRET);
        // This must not be delivered, for the connection is not wanted when it arrives.
        other.network.send(Way::Incoming(id), b"late");
        one.dial(&third);
        assert_eq!(one.next().await, NetworkEvent::Down(2));
        assert_eq!(one.next().await, NetworkEvent::Up(3));
        assert_eq!(other.next().await, NetworkEvent::Gone(id));
        // The same again changes nothing.
        one.dial(&third);
        one.network.send(Way::Outgoing(3), b"here");
        assert_eq!(third.next().await, NetworkEvent::Came { id: 0, instance: 1 });
        assert_eq!(third.next().await, message(Way::Incoming(0), b"here"));
        assert_eq!(one.seen(), []);
        // The first is dialed again when it is wanted again, even if that is at once.
        one.network.set_peers(&[]);
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
        *hook.borrow_mut() = Some(Box::new(move || network.set_peers(&[])));
        let mut frames = Vec::new();
        for body in [b"one", b"two", b"six"] {
            raw.sealer.seal(body, &mut frames).unwrap();
        }
        raw.stream.write_all(&frames).await.unwrap();
        assert_eq!(node.next().await, message(Way::Outgoing(2), b"one"));
        assert_eq!(node.next().await, NetworkEvent::Down(2));
        assert_eq!(node.seen(), []);
        hook.borrow_mut().take();
    });
}

#[test]
fn a_node_at_another_address_is_dialed_there() {
    run(async {
        let (one, other, id) = joined().await;
        let address = proxy(other.address, Tampering::None).await;
        one.network.set_peers(&[(2, address.to_string())]);
        assert_eq!(one.next().await, NetworkEvent::Down(2));
        assert_eq!(one.next().await, NetworkEvent::Up(2));
        assert_eq!(other.next().await, NetworkEvent::Gone(id));
        assert_eq!(other.next().await, NetworkEvent::Came { id: 1, instance: 1 });
    });
}

#[test]
fn a_host_may_have_a_name() {
    run(async {
        let (one, other) = (Node::start(1, SECRET), Node::start(2, SECRET));
        one.network.set_peers(&[(2, format!("localhost:{}", other.address.port()))]);
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
        let node = Node::start(1, SECRET);
        let mut first = Raw::dial(&node, 2).await;
        assert_eq!(node.next().await, NetworkEvent::Came { id: 0, instance: 2 });
        let mut second = Raw::dial(&node, 2).await;
        assert_eq!(node.next().await, NetworkEvent::Gone(0));
        assert_eq!(node.next().await, NetworkEvent::Came { id: 1, instance: 2 });
        first.send(b"late").await;
        second.send(b"here").await;
        assert_eq!(node.next().await, message(Way::Incoming(1), b"here"));
        drop((first, second));
        assert_eq!(node.next().await, NetworkEvent::Gone(1));
        assert_eq!(node.seen(), []);
    });
}
