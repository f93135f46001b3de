//! The client against a peer that answers what the test says.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread;

use super::Http;
use crate::args::encryption::EncryptionArgs;
use crate::endpoint::{self, Endpoint};
use crate::resp::Trouble;

/// Answers one request on each of these connections for each text, and returns the heads that came.
fn serve(listener: &TcpListener, connections: &[&[&str]]) -> Vec<String> {
    let mut heads = Vec::new();
    for answers in connections {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        for answer in *answers {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
            }
            heads.push(head.to_lowercase());
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    }
    heads
}

/// What came of a request.
type Outcome = Result<Vec<u8>, Trouble>;

/// Asks for bytes of something so many times, and returns what came of it and the heads.
fn ask(connections: &[&[&str]], times: usize) -> (Vec<Outcome>, Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::scope(|scope| {
        let served = scope.spawn(|| serve(&listener, connections));
        let endpoint = Endpoint::of(&address, &EncryptionArgs::default(), endpoint::HTTP);
        let mut http = Http::to(endpoint.unwrap()).unwrap();
        let outcomes = (0..times).map(|_| http.part("/v1/x", 5, 8)).collect();
        drop(http);
        (outcomes, served.join().unwrap())
    })
}

const PART: &str = "HTTP/1.1 206 Partial Content\r\nContent-Length: 3\r\n\r\nabc";

#[test]
fn a_part_is_asked_for_and_read() {
    let (outcomes, heads) = ask(&[&[PART, PART]], 2);
    assert_eq!(outcomes, [Ok(b"abc".to_vec()), Ok(b"abc".to_vec())]);
    assert!(heads[0].starts_with("get /v1/x http/1.1\r\n"), "{heads:?}");
    assert!(heads[1].contains("\r\nrange: bytes=5-7\r\n"), "{heads:?}");
    assert!(heads[1].contains("\r\nhost: 127.0.0.1:"), "{heads:?}");
}

#[test]
fn a_connection_that_has_ended_meanwhile_is_opened_again() {
    let (outcomes, heads) = ask(&[&[PART], &[PART]], 2);
    assert_eq!(outcomes, [Ok(b"abc".to_vec()), Ok(b"abc".to_vec())]);
    assert_eq!(heads.len(), 2);
}

#[test]
fn a_refusal_is_told_in_the_words_of_the_server() {
    let body = r#"{"code":"BUSY","detail":"there are four already","status":429}"#;
    let refusal = format!("HTTP/1.1 429 X\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let (outcomes, _) = ask(&[&[&refusal]], 1);
    assert_eq!(outcomes, [Err(Trouble::Refused("BUSY there are four already".to_owned()))]);
    let (outcomes, _) = ask(&[&["HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n"]], 1);
    let [Err(Trouble::Refused(sentence))] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert!(sentence.contains("is this the HTTP door"), "{sentence}");
}

#[test]
fn what_is_no_http_or_too_much_is_a_lost_connection() {
    for answer in [
        "-ERR unknown command\r\n\r\n",
        "HTTP/1.1 206 X\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 206 X\r\nContent-Length: 3\r\n\r\na",
    ] {
        let (outcomes, _) = ask(&[&[answer]], 1);
        let [Err(Trouble::Lost(sentence))] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert!(sentence.contains("If it encrypts, give --tls"), "{sentence}");
    }
}
