//! Reads the files of conversations. Their format is described in `testdata/beanstalkd/README.md`.

use std::path::Path;

/// One conversation, with a server of its own.
pub(crate) struct Conversation {
    /// The line in its file that it begins in.
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// What a client does, or what happens.
pub(crate) struct Step {
    /// Its line in the file.
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) act: Act,
    /// The lines of the replies that pinpriq is to give.
    pub(crate) expected: Vec<String>,
    /// Whether only beanstalkd is to reply.
    pub(crate) is_for_beanstalkd: bool,
}

/// What happens in a step.
pub(crate) enum Act {
    /// A client does something.
    Client(char, Deed),
    /// No more jobs are accepted.
    Drain,
    /// This many milliseconds pass.
    Pass(u64),
}

/// What a client does.
pub(crate) enum Deed {
    /// Keeps lines to be sent with the next ones.
    Keep(Vec<u8>),
    /// Sends lines and reads a reply.
    Ask(Vec<u8>),
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends lines, and is sent nothing.
    Wait(Vec<u8>),
    /// Reads this many replies.
    Read(usize),
    /// Is sent nothing.
    Hear,
    /// Ends its sending side.
    End,
    /// Reads all replies until the server closes.
    ReadAll,
    /// Breaks the connection.
    Go,
}

/// Returns the files and their conversations.
pub(crate) fn files() -> Vec<(String, Vec<Conversation>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/beanstalkd");
    let entries = std::fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let conversations = read_file(&std::fs::read_to_string(path).unwrap());
        (name, conversations)
    };
    paths.iter().map(read).collect()
}

fn read_file(text: &str) -> Vec<Conversation> {
    let mut all: Vec<Conversation> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        if let Some(name) = text.strip_prefix("== ") {
            all.push(Conversation { line, name: name.to_owned(), steps: Vec::new() });
            continue;
        }
        let Some(first) = text.chars().next().filter(|first| *first != '#') else { continue };
        let steps = &mut all.last_mut().unwrap().steps;
        match first {
            '<' | 'P' => {
                let step = steps.last_mut().unwrap();
                step.is_for_beanstalkd = false;
                step.expected.extend(replies(&text[2..]));
            }
            'B' => {
                let step = steps.last_mut().unwrap();
                step.is_for_beanstalkd = step.expected.is_empty();
            }
            _ => {
                let (text, after) = text.split_once(" → ").unwrap_or((text, ""));
                steps.push(Step {
                    line,
                    text: text.to_owned(),
                    act: read_act(text),
                    expected: replies(after).collect(),
                    is_for_beanstalkd: false,
                });
            }
        }
    }
    all
}

/// The lines of replies.
fn replies(text: &str) -> impl Iterator<Item = String> {
    text.split("  ").filter(|line| !line.is_empty()).map(str::to_owned)
}

fn read_act(text: &str) -> Act {
    let mut letters = text.chars();
    let (who, what) = (letters.next().unwrap(), letters.next().unwrap());
    let words = text.get(3..).unwrap_or_default();
    match who {
        '!' if text == "! drain" => return Act::Drain,
        '+' => return Act::Pass(text[2..].parse().unwrap()),
        _ => {}
    }
    let deed = match what {
        '|' => Deed::Keep(lines(words)),
        '>' => Deed::Ask(lines(words)),
        '=' => Deed::Send(unquoted(words)),
        '!' => Deed::Wait(lines(words)),
        '<' if words.is_empty() => Deed::Read(1),
        '<' => Deed::Read(words.parse().unwrap()),
        '-' => Deed::Hear,
        '/' => Deed::End,
        '.' => Deed::ReadAll,
        'X' => Deed::Go,
        _ => panic!("{text:?} is no step"),
    };
    Act::Client(who, deed)
}

/// The bytes of lines that are sent, with two spaces between them.
fn lines(words: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), words);
    while !rest.is_empty() {
        let is_quoted = rest.starts_with('"');
        let between = if is_quoted { "\"  " } else { "  " };
        let end = rest.find(between).map_or(rest.len(), |at| at + between.len() - 2);
        let line = &rest[..end];
        bytes.extend(if is_quoted { unquoted(line) } else { line.as_bytes().to_vec() });
        bytes.extend_from_slice(b"\r\n");
        rest = rest.get(end + 2..).unwrap_or_default();
    }
    bytes
}

/// The bytes between quotation marks.
fn unquoted(text: &str) -> Vec<u8> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap();
    let mut bytes = Vec::new();
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let escape = rest.chars().next().unwrap();
        rest = &rest[1..];
        match escape {
            'r' => bytes.push(b'\r'),
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            '\\' | '"' => bytes.push(escape as u8),
            'x' => {
                bytes.push(u8::from_str_radix(&rest[..2], 16).unwrap());
                rest = &rest[2..];
            }
            '{' => {
                let (run, after) = rest.split_once('}').unwrap();
                let (text, times) = run.rsplit_once('*').unwrap();
                bytes.extend_from_slice(text.repeat(times.parse().unwrap()).as_bytes());
                rest = after;
            }
            _ => panic!("{text:?} has an unknown escape"),
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}
