//! What clients can make a server keep: each command, with each of its words and options at a great
//! length, again and again, from one connection after the other. Whatever is kept, counts: so a
//! server with small bounds stays small. The table of commands says what there is to try, and a new
//! command is tried too.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use pinpriq_proto::wire::resp::put_command;
use pinpriq_server::command_tables;
use pinpriq_server::queue_settings::SETTINGS;

use crate::serving::Serving;

/// How often something is asked for, each time by another connection.
const ROUNDS: usize = 400;

/// The length of what is long, in bytes. All of it together is far more than the server may keep.
const LONG: usize = 60_000;

/// How much larger a server may become: three times what its bounds allow, and a few things of a
/// fixed size for each connection.
const GROWTH_MAX: u64 = 3 * 2 * MIB + 8 * MIB;
const MIB: u64 = 1 << 20;

/// The same for requests that wait and subscriptions, which may occupy 16 MiB at least.
const GROWTH_MAX_WAITING: u64 = 3 * 17 * MIB;

/// How long a reply may take before a request counts as one that waits.
const PATIENCE: Duration = Duration::from_millis(500);

const BOUNDS: [&str; 12] = [
    "--durability",
    "memory",
    "--task-bytes-max",
    "1MiB",
    "--connection-bytes-max",
    "1MiB",
    "--payload-bytes-max",
    "64KiB",
    "--queue-linger",
    "off",
    "--resp",
    "127.0.0.1:0",
];

/// A request, of which one word is long.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Attack {
    words: Vec<String>,
    long: usize,
}

impl Attack {
    /// The request of this round. Its long word differs from that of each other round.
    fn request(&self, round: usize) -> Vec<u8> {
        let long = format!("{round:x<LONG$}");
        let mut words: Vec<&[u8]> = self.words.iter().map(String::as_bytes).collect();
        words[self.long] = long.as_bytes();
        let mut request = Vec::new();
        put_command(&mut request, &words);
        request
    }
}

/// A short word for a placeholder of the syntax.
fn short(placeholder: &str) -> &str {
    match placeholder {
        "ms" | "n" | "count" | "seconds" | "credits" | "id" | "receipt" => "1",
        other => other,
    }
}

/// Returns the words of a request with this syntax, without options, and the options that have
/// values.
fn parts(syntax: &str) -> (Vec<String>, Vec<String>) {
    let (mut words, mut options) = (Vec::new(), Vec::new());
    let mut rest = syntax;
    while !rest.is_empty() {
        let (part, after) = match rest.as_bytes()[0] {
            b'[' => rest.split_at(rest.find(']').map_or(rest.len(), |end| end + 1)),
            b'(' => rest.split_at(rest.find(')').map_or(rest.len(), |end| end + 1)),
            _ => rest.split_at(rest.find(' ').unwrap_or(rest.len())),
        };
        rest = after.trim_start();
        let inner = part.trim_matches(['[', ']', '(', ')']);
        if part.starts_with('[') {
            if let Some((option, _)) = inner.split_once(' ')
                && option.chars().all(|letter| letter.is_ascii_uppercase())
            {
                options.push(option.to_owned());
            }
        } else {
            let first = inner.split([' ', '|']).next().unwrap_or_default();
            words.push(short(first).to_owned());
        }
    }
    (words, options)
}

/// Everything that is to be tried.
fn attacks() -> Vec<Attack> {
    let tables = command_tables();
    let entries = tables.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let mut attacks = Vec::new();
    for syntax in entries {
        let (words, options) = parts(syntax);
        let is_name = |word: &String| word.chars().all(|letter| letter.is_ascii_uppercase());
        let named = words.iter().take_while(|word| is_name(word)).count();
        attacks.extend((named..words.len()).map(|long| Attack { words: words.clone(), long }));
        for option in options {
            let mut words = words.clone();
            words.push(option);
            words.push(String::new());
            attacks.push(Attack { long: words.len() - 1, words });
        }
        // A queue that nobody has, so that what waits goes on waiting.
        if syntax.contains("[WAIT ") && words.len() > named {
            let mut words = words.clone();
            words.extend(["WAIT".to_owned(), "3600000".to_owned()]);
            attacks.push(Attack { words, long: named });
        }
        if syntax.contains("setting value") {
            let before: Vec<String> =
                words.iter().take_while(|word| *word != "setting").cloned().collect();
            for setting in SETTINGS {
                let mut words = before.clone();
                words.extend([setting.name.to_owned(), String::new()]);
                attacks.push(Attack { long: words.len() - 1, words });
            }
            // One queue after the other, each with a name.
            let mut words = before;
            words.extend(["DEADLETTER".to_owned(), String::new()]);
            let long = words.len() - 1;
            words[named] = "*".to_owned();
            attacks.push(Attack { words, long });
        }
    }
    attacks.sort_unstable();
    attacks.dedup();
    attacks
}

struct Target {
    server: Serving,
    _data: tempfile::TempDir,
    resp: String,
}

impl Target {
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let server = Serving::start(data.path(), &BOUNDS);
        let resp = server.door("resp");
        Self { server, _data: data, resp }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.resp).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Asks for something, and returns how the reply begins. None if there is no reply yet.
    fn ask(stream: &mut TcpStream, request: &[u8]) -> Option<u8> {
        let mut first = [0];
        // The server may close before it has read all of it.
        let _ = stream.write_all(request);
        stream.read_exact(&mut first).ok().map(|()| first[0])
    }
}

#[test]
fn whatever_a_client_names_counts() {
    let mut target = Target::start();
    let mut accepted = 0;
    for attack in attacks() {
        let spread = |round: usize| {
            let words = attack.words.iter().map(|word| match word.as_str() {
                "*" => format!("q{round}"),
                word => word.to_owned(),
            });
            Attack { words: words.collect(), long: attack.long }
        };
        let mut first = target.connect();
        let told = Target::ask(&mut first, &spread(0).request(0));
        if told == Some(b'-') {
            continue;
        }
        accepted += 1;
        let waits = told.is_none();
        let before = target.server.resident_bytes();
        let mut connections = vec![first];
        for round in 1..ROUNDS {
            let mut stream = target.connect();
            let request = spread(round).request(round);
            if waits {
                let _ = stream.write_all(&request);
            } else {
                Target::ask(&mut stream, &request);
            }
            connections.push(stream);
        }
        let mut other = target.connect();
        assert_eq!(Target::ask(&mut other, b"PING\r\n"), Some(b'+'));
        let grown = target.server.resident_bytes().saturating_sub(before);
        let shown: Vec<String> =
            attack.words.iter().map(|word| word.chars().take(20).collect()).collect();
        let is_waiting = waits || attack.words[0] == "SUBSCRIBE";
        let most = if is_waiting { GROWTH_MAX_WAITING } else { GROWTH_MAX };
        assert!(grown <= most, "{shown:?} with a long word {} keeps {grown}", attack.long);
        drop(connections);
        target = Target::start();
    }
    assert!(accepted >= 20, "only {accepted} requests were accepted");
}

#[test]
fn requests_that_wait_for_exec_count() {
    let target = Target::start();
    let before = target.server.resident_bytes();
    let mut connections = Vec::new();
    for round in 0..ROUNDS {
        let mut stream = target.connect();
        let mut request = b"MULTI\r\n".to_vec();
        let words = ["PUT", "q", ""].map(str::to_owned).to_vec();
        request.extend(Attack { words, long: 2 }.request(round));
        assert_eq!(Target::ask(&mut stream, &request), Some(b'+'));
        connections.push(stream);
    }
    let grown = target.server.resident_bytes().saturating_sub(before);
    assert!(grown <= GROWTH_MAX, "transactions keep {grown} bytes");
}

#[test]
fn halves_of_requests_count() {
    let target = Target::start();
    let before = target.server.resident_bytes();
    let mut connections = Vec::new();
    for round in 0..ROUNDS {
        let mut stream = target.connect();
        let words = ["PUT", "q", ""].map(str::to_owned).to_vec();
        let request = Attack { words, long: 2 }.request(round);
        let _ = stream.write_all(&request[..request.len() - 10]);
        connections.push(stream);
    }
    let mut other = target.connect();
    assert_eq!(Target::ask(&mut other, b"PING\r\n"), Some(b'+'));
    let grown = target.server.resident_bytes().saturating_sub(before);
    assert!(grown <= GROWTH_MAX, "halves of requests keep {grown} bytes");
}
