//! A client of HTTP that sends exactly what the test says, and conversations as text.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use crate::serving::GUARD;

/// A connection.
pub(crate) struct Browser {
    stream: BufReader<TcpStream>,
}

/// A request. Its first line is written `METHOD target [content-type] [name:value]...`.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    line: String,
    body: Vec<u8>,
}

/// What was answered.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the connection ends after it.
    pub(crate) ends: bool,
}

/// A request of a conversation, with the text up to its answer.
pub(crate) struct Part {
    before: String,
    pub(crate) request: Request,
}

impl Part {
    /// Returns the text with this answer.
    pub(crate) fn with(self, reply: &Reply) -> String {
        let (before, reply) = (self.before, reply.written());
        match reply.strip_prefix("< ") {
            Some(reply) if self.request.body.is_empty() => {
                format!("{}{ARROW}{reply}", before.trim_end())
            }
            _ => before + &reply,
        }
    }
}

/// Stands before the answer to a request without a body.
const ARROW: &str = " → ";

/// Returns the requests of a conversation. A request begins with `> `, its body follows up to the
/// answer, which begins with `< `, or stands beside a request without a body. It ends before the
/// next request or an empty line. Lines before a request are comments.
pub(crate) fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut before, mut lines) = (String::new(), text.lines().peekable());
    while let Some(line) = lines.next() {
        let (line, answer) = line.split_once(ARROW).unwrap_or((line, ""));
        let _ = writeln!(before, "{line}");
        let Some(request) = line.strip_prefix("> ") else { continue };
        let mut body = Vec::new();
        let is_of_body = |line: &&str| answer.is_empty() && !line.starts_with("< ");
        while let Some(line) = lines.next_if(is_of_body) {
            let _ = writeln!(before, "{line}");
            if !body.is_empty() {
                body.push(b'\n');
            }
            body.extend_from_slice(line.as_bytes());
        }
        while lines.next_if(|line| !line.is_empty() && !line.starts_with("> ")).is_some() {}
        let request = Request::of(request, &body);
        parts.push(Part { before: std::mem::take(&mut before), request });
    }
    parts
}

impl Request {
    pub(crate) fn of(line: &str, body: &[u8]) -> Self {
        Self { line: line.to_owned(), body: body.to_vec() }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut words = self.line.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n");
        for word in words {
            match word.split_once(':') {
                Some((name, value)) => write!(head, "{name}: {value}\r\n").unwrap(),
                None => write!(head, "Content-Type: {word}\r\n").unwrap(),
            }
        }
        if !self.body.is_empty() {
            write!(head, "Content-Length: {}\r\n", self.body.len()).unwrap();
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

impl Browser {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, request: &Request) {
        self.send_bytes(&request.bytes());
    }

    /// Sends bytes. The server may have ended the connection already.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    pub(crate) fn end_input(&self) {
        let _ = self.stream.get_ref().shutdown(Shutdown::Write);
    }

    /// Reads until the connection ends.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A reset ends it too.
        let _ = self.stream.read_to_end(&mut rest);
        rest
    }

    /// Returns the next line without its end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        let length = self.stream.read_line(&mut line).unwrap();
        assert!(length > 0, "the connection has ended");
        line.trim_end().to_owned()
    }

    pub(crate) fn ask(&mut self, request: &Request) -> Reply {
        self.send(request);
        let has_body = !request.line.starts_with("HEAD");
        self.reply_to(has_body)
    }

    pub(crate) fn reply(&mut self) -> Reply {
        self.reply_to(true)
    }

    /// Reads the head of an answer: its status and header fields.
    pub(crate) fn head(&mut self) -> (u16, Vec<(String, String)>) {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.stream.read_line(&mut line).unwrap(), 0, "the connection has ended");
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let field = |line: &String| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_owned(), value.to_owned())
        };
        (status, lines[1..].iter().map(field).collect())
    }

    fn reply_to(&mut self, has_body: bool) -> Reply {
        let (status, headers) = self.head();
        let value = |name: &str| {
            let found = headers.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let mut body = Vec::new();
        if value("transfer-encoding").as_deref() == Some("chunked") {
            self.read_chunks(&mut body);
        } else if has_body {
            let length = value("content-length").map_or(0, |length| length.parse().unwrap());
            body.resize(length, 0);
            self.stream.read_exact(&mut body).unwrap();
        }
        let ends = value("connection").as_deref() == Some("close");
        Reply { status, headers, body, ends }
    }

    fn read_chunks(&mut self, body: &mut Vec<u8>) {
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let length = usize::from_str_radix(line.trim_end(), 16).unwrap();
            let mut chunk = vec![0; length + 2];
            self.stream.read_exact(&mut chunk).unwrap();
            body.extend_from_slice(&chunk[..length]);
            if length == 0 {
                return;
            }
        }
    }
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the answer as a conversation has it, without what differs each time.
    pub(crate) fn written(&self) -> String {
        let mut text = format!("< {}", self.status);
        for (name, value) in &self.headers {
            match name.as_str() {
                "content-type" => write!(text, " {value}").unwrap(),
                "date" | "content-length" | "transfer-encoding" | "vary" | "connection" => {}
                // Every answer has it.
                "x-content-type-options" => assert_eq!(value, "nosniff"),
                name => write!(text, " {name}:{value}").unwrap(),
            }
        }
        text.push('\n');
        for line in self.text().lines() {
            let _ = writeln!(text, "{line}");
        }
        settled(&text)
    }
}

/// Replaces moments, ages, numbers of clients and their ports.
fn settled(text: &str) -> String {
    let mut settled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("20") {
        let (before, from) = rest.split_at(at);
        settled.push_str(before);
        let bytes = from.as_bytes();
        let is_moment = bytes.len() >= 24 && [bytes[4], bytes[10], bytes[23]] == *b"-TZ";
        settled.push_str(if is_moment { "MOMENT" } else { "20" });
        rest = &from[if is_moment { 24 } else { 2 }..];
    }
    settled.push_str(rest);
    for before in ["\"client\":", "\"127.0.0.1:", "\"oldest_ready_ms\":"] {
        let mut parts = settled.split(before);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let _ =
                write!(whole, "{before}{}{}", if digits > 0 { "N" } else { "" }, &part[digits..]);
        }
        settled = whole;
    }
    settled
}
