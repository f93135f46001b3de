//! What a virtual client of the beanstalkd door asks: its bytes, the command that the engine must
//! receive for it, and what the connection itself knows.
//!
//! What the client must read for the reply of an engine is in `answers.rs`. Statistics about the
//! whole server are not asked for: they show figures of the machine, which differ from run to run.

mod answers;

use pinpriq_proto::command::{
    Command, Deed, Delay, Peek, Put, QueueCommand, QueueName, Reserve, Selection, Wait,
};
use pinpriq_proto::task::{StateKind, Terms};
use pinpriq_proto::time::Span;
use pinpriq_proto::wire::beanstalkd::Request;

use self::answers::list;
pub(crate) use self::answers::{ANSWER_BYTES_MAX, Seen};
use crate::sim::ask::Text;

/// The tube that a connection uses and watches at first.
pub(crate) const DEFAULT: &[u8] = b"default";

/// What a client asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    Put {
        priority: u32,
        delay_s: u32,
        ttr_s: u32,
        body: Text,
    },
    Use(Text),
    Watch(Text),
    Ignore(Text),
    /// A wait of this many seconds, or without end.
    Reserve(Option<u32>),
    ReserveJob(u64),
    Delete(u64),
    Release {
        id: u64,
        priority: u32,
        delay_s: u32,
    },
    Bury {
        id: u64,
        priority: u32,
    },
    Touch(u64),
    Peek(u64),
    PeekReady,
    PeekDelayed,
    PeekBuried,
    Kick(u32),
    KickJob(u64),
    StatsJob(u64),
    StatsTube(Text),
    ListTubes,
    ListTubeUsed,
    ListTubesWatched,
    PauseTube {
        tube: Text,
        delay_s: u32,
    },
    Quit,
    /// Bytes that are no request, and the answer to them.
    Nonsense(Text, &'static [u8]),
}

/// What a connection knows itself: the tube that it uses, and those that it watches.
#[derive(Clone, Debug)]
pub(crate) struct Tubes {
    used: Text,
    watched: Vec<Text>,
    /// The most tubes that it may watch.
    most: usize,
}

/// One request of a client, with what the connection knows when it is carried out.
#[derive(Clone, Debug)]
pub(crate) struct JobAsk {
    pub(crate) call: Call,
    used: Text,
    watched: Vec<Text>,
    /// The answer, if no engine is asked.
    pub(crate) said: Option<Text>,
}

impl Tubes {
    /// A connection that has just begun and may watch this many tubes.
    pub(crate) fn begin(most: usize) -> Self {
        Self { used: DEFAULT.to_vec(), watched: vec![DEFAULT.to_vec()], most }
    }

    /// Returns the request, and notes what it changes here.
    pub(crate) fn ask(&mut self, call: Call) -> JobAsk {
        let said = self.answer(&call);
        JobAsk { call, used: self.used.clone(), watched: self.watched.clone(), said }
    }

    /// The answer to what concerns only the connection.
    fn answer(&mut self, call: &Call) -> Option<Text> {
        let watching = |count: usize| format!("WATCHING {count}\r\n").into_bytes();
        Some(match call {
            Call::Use(tube) => {
                self.used.clone_from(tube);
                using(tube)
            }
            Call::Watch(tube) if self.watched.contains(tube) => watching(self.watched.len()),
            Call::Watch(_) if self.watched.len() >= self.most => b"OUT_OF_MEMORY\r\n".to_vec(),
            Call::Watch(tube) => {
                self.watched.push(tube.clone());
                watching(self.watched.len())
            }
            Call::Ignore(tube) => match self.watched.iter().position(|it| it == tube) {
                Some(_) if self.watched.len() == 1 => b"NOT_IGNORED\r\n".to_vec(),
                Some(at) => {
                    self.watched.swap_remove(at);
                    watching(self.watched.len())
                }
                None => watching(self.watched.len()),
            },
            Call::ListTubeUsed => using(&self.used),
            Call::ListTubesWatched => list(&self.watched),
            Call::Nonsense(_, answer) => answer.to_vec(),
            _ => return None,
        })
    }
}

impl JobAsk {
    /// Appends the bytes of the request.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        if let Call::Nonsense(bytes, _) = &self.call {
            return out.extend_from_slice(bytes);
        }
        let request = self.call.request();
        if let Err(unwritable) = request.put(out) {
            panic!("{request:?} cannot be written: {unwritable}");
        }
    }

    /// The tube that the connection uses or watches from now on, if the request says so.
    pub(crate) const fn names(&self) -> Option<&Text> {
        match &self.call {
            Call::Use(tube) | Call::Watch(tube) => Some(tube),
            _ => None,
        }
    }

    /// Whether the client means this command. `is_named` says whether any client has ever named
    /// the tube that is paused.
    pub(crate) fn means(&self, command: &Command<'_>, is_named: bool) -> bool {
        if let Command::Queue(QueueCommand::Hold { queue, makes, .. }) = command {
            let may_make = *makes || !self.has(queue);
            return may_make
                && (is_named || !*makes || **queue == *DEFAULT)
                && self.with_command(*makes, |own| own == command) == Some(true);
        }
        self.with_command(false, |own| own == command) == Some(true)
    }

    /// Whether there is such a tube, as far as the connection knows.
    fn has(&self, tube: &[u8]) -> bool {
        tube == DEFAULT || tube == self.used || self.watched.iter().any(|it| it == tube)
    }

    /// Calls `run` with the command, if the engine must receive one. `makes` says whether a pause
    /// makes its queue.
    fn with_command<T>(&self, makes: bool, run: impl FnOnce(&Command<'_>) -> T) -> Option<T> {
        let numbered = |number: u64, deed: Deed| Command::Numbered { number, deed };
        let queue = &*self.used;
        let command = match &self.call {
            Call::Put { priority, delay_s, ttr_s, body } => {
                let put = Put {
                    priority: Some((*priority).into()),
                    delay: Delay::For(seconds(*delay_s)),
                    terms: Terms { ttr: Some(seconds(*ttr_s)), ..Terms::NONE },
                    ..Put::new(queue, body)
                };
                return Some(run(&Command::PutNumbered(&put)));
            }
            Call::Reserve(timeout_s) => {
                let queues: Vec<&[u8]> = self.watched.iter().map(Vec::as_slice).collect();
                let wait = match timeout_s {
                    None => Wait::Forever,
                    Some(0) => Wait::No,
                    Some(timeout_s) => Wait::For(seconds(*timeout_s)),
                };
                return Some(run(&Command::Reserve(Reserve::new(&queues, wait))));
            }
            Call::ReserveJob(id) => numbered(*id, Deed::Take),
            Call::Delete(id) => numbered(*id, Deed::Delete),
            Call::Release { id, priority, delay_s } => {
                let (priority, delay) = ((*priority).into(), seconds(*delay_s));
                numbered(*id, Deed::Release { priority, delay })
            }
            Call::Bury { id, priority } => {
                numbered(*id, Deed::Bury { priority: (*priority).into() })
            }
            Call::Touch(id) => numbered(*id, Deed::Touch),
            Call::KickJob(id) => numbered(*id, Deed::Kick),
            Call::Peek(id) | Call::StatsJob(id) => numbered(*id, Deed::Read),
            Call::Kick(count) => Command::Kick { queue, count: *count },
            Call::PeekReady => Command::Peek(Peek {
                queue: QueueName { name: queue, member: None },
                selection: Selection::DEFAULT,
                state: Some(StateKind::Ready),
                count: 1,
            }),
            Call::PeekDelayed => Command::Foremost { queue, state: StateKind::Waiting },
            Call::PeekBuried => Command::Foremost { queue, state: StateKind::Buried },
            Call::StatsTube(tube) => Command::Tubes(Some(tube)),
            Call::ListTubes => Command::Tubes(None),
            Call::PauseTube { tube, delay_s } => {
                let length = (*delay_s > 0).then(|| seconds(*delay_s));
                Command::Queue(QueueCommand::Hold { queue: tube, length, makes })
            }
            Call::Quit => Command::LetGo,
            Call::Use(_)
            | Call::Watch(_)
            | Call::Ignore(_)
            | Call::ListTubeUsed
            | Call::ListTubesWatched
            | Call::Nonsense(..) => return None,
        };
        Some(run(&command))
    }
}

impl Call {
    /// The request as the wire has it.
    fn request(&self) -> Request<'_> {
        match self {
            Self::Put { priority, delay_s, ttr_s, body } => {
                Request::Put { priority: *priority, delay_s: *delay_s, ttr_s: *ttr_s, body }
            }
            Self::Use(tube) => Request::Use { tube },
            Self::Watch(tube) => Request::Watch { tube },
            Self::Ignore(tube) => Request::Ignore { tube },
            Self::Reserve(None) => Request::Reserve,
            Self::Reserve(Some(timeout_s)) => Request::ReserveWithTimeout { timeout_s: *timeout_s },
            Self::ReserveJob(id) => Request::ReserveJob { id: *id },
            Self::Delete(id) => Request::Delete { id: *id },
            Self::Release { id, priority, delay_s } => {
                Request::Release { id: *id, priority: *priority, delay_s: *delay_s }
            }
            Self::Bury { id, priority } => Request::Bury { id: *id, priority: *priority },
            Self::Touch(id) => Request::Touch { id: *id },
            Self::Peek(id) => Request::Peek { id: *id },
            Self::PeekReady => Request::PeekReady,
            Self::PeekDelayed => Request::PeekDelayed,
            Self::PeekBuried => Request::PeekBuried,
            Self::Kick(bound) => Request::Kick { bound: *bound },
            Self::KickJob(id) => Request::KickJob { id: *id },
            Self::StatsJob(id) => Request::StatsJob { id: *id },
            Self::StatsTube(tube) => Request::StatsTube { tube },
            Self::ListTubes => Request::ListTubes,
            Self::ListTubeUsed => Request::ListTubeUsed,
            Self::ListTubesWatched => Request::ListTubesWatched,
            Self::PauseTube { tube, delay_s } => Request::PauseTube { tube, delay_s: *delay_s },
            Self::Quit => Request::Quit,
            Self::Nonsense(..) => unreachable!("nonsense is no request"),
        }
    }
}

fn using(tube: &[u8]) -> Text {
    [b"USING ", tube, b"\r\n"].concat()
}

const fn seconds(seconds: u32) -> Span {
    Span::from_ms(seconds as u64 * 1_000)
}
