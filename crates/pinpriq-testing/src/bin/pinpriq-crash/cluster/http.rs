//! The few requests that are made of a member of etcd over HTTP.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::fault::Fallible;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks for a path, and returns the whole answer.
pub(crate) fn ask(address: SocketAddr, path: &str) -> Fallible<String> {
    send(address, &format!("GET {path} HTTP/1.0\r\n\r\n"))
}

/// Posts a body, and returns the whole answer.
pub(crate) fn post(address: SocketAddr, path: &str, body: &str) -> Fallible<String> {
    let length = body.len();
    send(address, &format!("POST {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}"))
}

fn send(address: SocketAddr, request: &str) -> Fallible<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
