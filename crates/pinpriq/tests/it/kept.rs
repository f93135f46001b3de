//! What clients can make a server keep: each command, with each of its words and options at a great
//! length, again and again, from one connection after the other. Whatever is kept, counts: so a
//! server with small bounds stays small. The table of commands says what there is to try, and a new
//! command is tried too.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use pinpriq_proto::request::table::TABLE;
use pinpriq_proto::wire::resp::put_command;
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
    let mut attacks = Vec::new();
    for spec in TABLE {
        let syntax = spec.syntax();
        let (words, options) = parts(&syntax);
        let is_name = |word: &String| word.chars().all(|letter| letter.is_ascii_uppercase());
        let named = words.iter().take_while(|word| is_name(word)).count();
        attacks.extend((named..words.len()).map(|long| Attack { words: words.clone(), long }));
        for option in options {
            let mut words = words.clone();
            words.push(option);
            words.push(String::new());
            attacks.push(Attack { long: words.len() - 1, words });
        }
        // A queue without consumers, so that what waits goes on waiting.
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
            "*".clone_into(&mut words[named]);
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
        Self::start_with(&BOUNDS)
    }

    fn start_with(settings: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let server = Serving::start(data.path(), settings);
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

/// How many of each thing a server keeps, and how many to begin with.
const MANY: usize = 24_000;
const FEW: usize = 200;

/// The memory that a server takes for other things while it keeps many.
const NOISE_BYTES: u64 = 2 * MIB;

/// Options of PUT that go together, and are more than the sum of each alone.
const TOGETHER: [&str; 4] = [
    "KEY k{} PRIORITY {} TTR 9{} TTL 9{}",
    "ID i{} KEY k{} PRIORITY {} TTR 9{} TTL 9{}",
    "ID i{} KEY k{} PRIORITY {} TTR 9{} TTL 9{} UNIQUE u{}",
    "ID i{} KEY k{} PRIORITY {} TTR 9{} TTL 9{} STATE B REASON r{}",
];

/// Requests by the table of commands that may make the server keep something else each time: `{}`
/// stands for the number of the request.
fn growing() -> Vec<String> {
    let mut requests = Vec::new();
    for spec in TABLE {
        let syntax = spec.syntax();
        let (words, options) = parts(&syntax);
        let is_fixed = |word: &String| word.chars().all(|it| it.is_ascii_uppercase() || it == '1');
        let varied = words
            .iter()
            .map(|word| if is_fixed(word) { word.clone() } else { format!("{word}{{}}") });
        let all = varied.collect::<Vec<_>>().join(" ");
        // A word that is one of several may have to stay.
        requests.push(words.join(" "));
        // What waits has a bound of its own, and would take as long as it waits.
        for option in options.into_iter().filter(|option| option != "WAIT") {
            let queue = if option == "ID" { "given" } else { "q" };
            let to_one = if words[0] == "PUT" { format!("PUT {queue} x") } else { all.clone() };
            requests
                .extend([format!("{to_one} {option} 1{{}}"), format!("{to_one} {option} n{{}}")]);
        }
        requests.push(all);
    }
    let queue = |options: &str| if options.starts_with("ID") { "given" } else { "q" };
    requests.extend(TOGETHER.map(|options| format!("PUT {} x {options}", queue(options))));
    requests.push("SCHEDULE SET s{} q x EVERY 3600000".to_owned());
    requests
}

impl Target {
    /// Sends a request with each of these numbers, and returns whether the first was accepted.
    fn ask_each(&self, request: &str, numbers: std::ops::Range<usize>) -> bool {
        let mut stream = self.connect();
        let mut accepts = true;
        for begin in numbers.clone().step_by(500) {
            let end = numbers.end.min(begin + 500);
            let mut lines = String::new();
            for number in begin..end {
                lines.extend([&request.replace("{}", &number.to_string()), "\r\n"]);
            }
            lines.push_str("ECHO all-are-done\r\n");
            if stream.write_all(lines.as_bytes()).is_err() {
                return false;
            }
            let (mut replies, mut piece) = (Vec::new(), [0; 1 << 14]);
            while !replies.ends_with(b"all-are-done\r\n") {
                match stream.read(&mut piece) {
                    Ok(0) | Err(_) => return false,
                    Ok(bytes) => replies.extend(&piece[..bytes]),
                }
            }
            accepts &= begin > numbers.start || replies[0] != b'-';
        }
        accepts
    }

    /// How many bytes the server counts for what clients made it keep.
    fn counted_bytes(&self) -> u64 {
        let mut stream = self.connect();
        stream.write_all(b"INFO\r\nQUIT\r\n").unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        let line = told.lines().find_map(|line| line.strip_prefix("task_bytes:"));
        line.unwrap().parse().unwrap()
    }
}

#[test]
fn what_is_kept_takes_at_most_three_times_what_it_counts() {
    let start = || Target::start_with(&["--durability", "memory", "--resp", "127.0.0.1:0"]);
    let (mut target, mut grew) = (start(), 0);
    for request in growing() {
        target.ask_each("QUEUE CREATE given IDS given", 0..1);
        let before = (target.counted_bytes(), target.server.resident_bytes());
        if !target.ask_each(&request, 0..FEW) {
            target = start();
            continue;
        }
        if target.counted_bytes() < before.0 + FEW as u64 * 64 {
            continue;
        }
        grew += 1;
        target.ask_each(&request, FEW..MANY);
        let counted = target.counted_bytes() - before.0;
        let taken = target.server.resident_bytes().saturating_sub(before.1);
        assert!(
            taken <= 3 * counted + NOISE_BYTES,
            "{request}: {taken} bytes for {counted} that count"
        );
        target = start();
    }
    assert!(grew >= 20, "only {grew} requests made the server keep something");
}
