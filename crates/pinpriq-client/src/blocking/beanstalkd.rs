//! A connection that speaks the protocol of beanstalkd, to pinpriq or to beanstalkd.

use pinpriq_proto::wire::beanstalkd::{Answer, DecodedAnswer, decode_answer};

use super::{Line, Lost};

/// The largest job or document that is read.
const BODY_BYTES_MAX: usize = 64 << 20;

/// A connection that speaks the protocol of beanstalkd.
#[derive(Debug)]
pub struct Beanstalkd {
    line: Line,
}

impl Beanstalkd {
    /// Returns a client over a connection that was just opened.
    #[must_use]
    pub const fn over(line: Line) -> Self {
        Self { line }
    }

    /// Returns the connection below.
    #[must_use]
    pub const fn line(&self) -> &Line {
        &self.line
    }

    /// Returns the connection below for direct use.
    pub const fn line_mut(&mut self) -> &mut Line {
        &mut self.line
    }

    /// Sends bytes, which may hold several requests.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        Ok(self.line.send(bytes)?)
    }

    /// Hands the answer to the earliest request that has none yet to `read`, and returns what that
    /// makes of it.
    pub fn answer<T>(&mut self, read: impl FnOnce(Answer<'_>) -> T) -> Result<T, Lost> {
        loop {
            let decoded = decode_answer(self.line.unused(), BODY_BYTES_MAX);
            let decoded = decoded.map_err(|malformed| Lost::Malformed(malformed.to_string()))?;
            if let DecodedAnswer::Whole { answer, length } = decoded {
                let outcome = read(answer);
                self.line.note_used(length);
                return Ok(outcome);
            }
            if !self.line.receive()? {
                return Err(Lost::Closed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// What a client reads from a server that sends these bytes one by one and closes.
    fn read(sent: &[u8]) -> Vec<String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let sent = sent.to_vec();
        let server = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            sent.chunks(1).for_each(|byte| stream.write_all(byte).unwrap());
        });
        let mut client = Beanstalkd::over(Line::connect(address).unwrap());
        let mut told = Vec::new();
        loop {
            match client.answer(|answer| format!("{answer:?}")) {
                Ok(answer) => told.push(answer),
                Err(none) => {
                    told.push(none.to_string());
                    server.join().unwrap();
                    return told;
                }
            }
        }
    }

    #[test]
    fn answers_are_read_until_there_is_none() {
        let told = read(b"RESERVED 7 2\r\n\r\n\r\nOK 4\r\n---\n\r\nNOT_FOUND\r\n");
        let expected = [
            "Job { word: Reserved, id: 7, body: [13, 10] }",
            "Document([45, 45, 45, 10])",
            "Line([78, 79, 84, 95, 70, 79, 85, 78, 68])",
            "the server closed the connection",
        ];
        assert_eq!(told, expected);
        assert_eq!(read(b"OK 67108865\r\n"), ["a job or a document beyond the limit"]);
        assert_eq!(read(b"DELETED\r\nFOUND 1 1\r\n").len(), 2);
    }
}
