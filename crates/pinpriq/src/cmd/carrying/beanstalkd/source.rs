//! What a beanstalkd is asked, and what its answers say. Nothing is decided here.
//!
//! Requests that belong together are sent in one piece. They are short, so that they fit into the
//! buffers of the operating system while the answers, which may be long, are read.

use std::io::ErrorKind;
use std::time::Duration;

use pinpriq_client::blocking::{Beanstalkd, Line, Lost};
use pinpriq_proto::wire::beanstalkd::{Answer, Request};

use crate::exit::Failure;
use crate::output::escaped;

/// How long a server may take to accept a connection, and to tell its figures.
const OPENING: Duration = Duration::from_secs(10);

/// The most jobs of a batch. A crash doubles no more than these.
const BATCH_JOBS_MAX: usize = 256;

/// The most bytes of all bodies of a batch, unless a single job has more.
const BATCH_BYTES_MAX: u64 = 16 << 20;

/// A connection to a beanstalkd.
pub(super) struct Source {
    client: Beanstalkd,
    address: String,
    /// How many jobs a batch may have, so that the largest ones fit.
    batch: usize,
    /// The only tube that jobs are reserved from.
    watched: String,
    /// Whether each request so far had an answer, and one that fits.
    is_usable: bool,
}

/// The states of jobs that are moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Ready,
    Delayed,
    Buried,
}

impl State {
    pub(super) const ALL: [Self; 3] = [Self::Ready, Self::Delayed, Self::Buried];

    /// The name in figures and tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Delayed => "delayed",
            Self::Buried => "buried",
        }
    }

    /// What shows the job of this state that is the next in its tube.
    const fn peek(self) -> Request<'static> {
        match self {
            Self::Ready => Request::PeekReady,
            Self::Delayed => Request::PeekDelayed,
            Self::Buried => Request::PeekBuried,
        }
    }
}

/// How many jobs a tube has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct TubeFigures {
    /// Those of each state that is moved.
    pub(super) jobs: [u64; 3],
    pub(super) reserved: u64,
    /// For how many seconds no job is handed out.
    pub(super) paused_s: u64,
}

/// A job as it was reserved or looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Found {
    pub(super) id: u64,
    pub(super) body: Vec<u8>,
}

/// What beanstalkd says about a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct JobFigures {
    pub(super) tube: String,
    pub(super) state: String,
    pub(super) priority: u32,
    pub(super) ttr_s: u64,
    /// What is left of a delay, without the part of a second.
    pub(super) left_s: u64,
}

impl Source {
    /// Connects, and makes sure that a beanstalkd answers.
    pub(super) fn open(address: &str) -> Result<Self, Failure> {
        let no_connection = |error| {
            Failure::on_the_way(format!("no connection to beanstalkd at {address}: {error}"))
        };
        let mut line = Line::connect_within(OPENING, address).map_err(no_connection)?;
        line.limit_waiting(Some(OPENING));
        let client = Beanstalkd::over(line);
        let (address, watched) = (address.to_owned(), "default".to_owned());
        let mut source = Self { client, address, batch: 1, watched, is_usable: true };
        let figures = source.document(Request::Stats);
        let largest: Result<u64, _> = figures.and_then(|it| number(&it, "max-job-size"));
        let largest = largest.map_err(|failure| {
            Failure::on_the_way(format!("{failure}. Is this the address of a beanstalkd?"))
        })?;
        let batch = usize::try_from(BATCH_BYTES_MAX / largest.max(1)).unwrap_or(BATCH_JOBS_MAX);
        source.batch = batch.clamp(1, BATCH_JOBS_MAX);
        source.client.line_mut().limit_waiting(None);
        Ok(source)
    }

    /// The most jobs that are to be asked for at once.
    pub(super) const fn batch(&self) -> usize {
        self.batch
    }

    /// Whether it makes sense to ask anything more.
    pub(super) const fn is_usable(&self) -> bool {
        self.is_usable
    }

    /// The names of all tubes.
    pub(super) fn tubes(&mut self) -> Result<Vec<String>, Failure> {
        let list = self.document(Request::ListTubes)?;
        Ok(list.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect())
    }

    /// The figures of a tube, unless there is none of this name.
    pub(super) fn tube(&mut self, tube: &str) -> Result<Option<TubeFigures>, Failure> {
        let tube = tube.as_bytes();
        let text = self.ask(Request::StatsTube { tube }, |answer| match answer {
            Answer::Document(text) => Some(Some(shown(text))),
            Answer::Line(b"NOT_FOUND") => Some(None),
            _ => None,
        })?;
        let Some(text) = text else { return Ok(None) };
        let mut jobs = [0; 3];
        for (count, state) in jobs.iter_mut().zip(State::ALL) {
            *count = number(&text, &format!("current-jobs-{}", state.name()))?;
        }
        let reserved = number(&text, "current-jobs-reserved")?;
        let paused_s = number(&text, "pause-time-left")?;
        Ok(Some(TubeFigures { jobs, reserved, paused_s }))
    }

    /// Looks at this tube and reserves from it, and from no other, from now on.
    pub(super) fn enter(&mut self, tube: &str) -> Result<(), Failure> {
        let before = std::mem::replace(&mut self.watched, tube.to_owned());
        let name = tube.as_bytes();
        let mut requests = vec![Request::Use { tube: name }, Request::Watch { tube: name }];
        if before != tube {
            requests.push(Request::Ignore { tube: before.as_bytes() });
        }
        self.ask_all(&requests, |answer| {
            let Answer::Line(line) = answer else { return false };
            line.starts_with(b"USING ") || line.starts_with(b"WATCHING ")
        })
    }

    /// Reserves the next ready jobs, up to this many, unless the tube is paused.
    pub(super) fn reserve(&mut self, count: usize) -> Result<Vec<Found>, Failure> {
        let mut found = Vec::new();
        self.ask_all(&vec![Request::ReserveWithTimeout { timeout_s: 0 }; count], |answer| {
            found.extend(found_in(answer));
            let none: [&[u8]; 2] = [b"TIMED_OUT", b"DEADLINE_SOON"];
            matches!(answer, Answer::Job { .. })
                || matches!(answer, Answer::Line(line) if none.contains(&line))
        })?;
        Ok(found)
    }

    /// Reserves the next ready jobs one by one, which also works while the tube is paused.
    pub(super) fn reserve_paused(&mut self, count: usize) -> Result<Vec<Found>, Failure> {
        let mut found = Vec::new();
        while found.len() < count {
            let Some(Found { id, .. }) = self.next(State::Ready)? else { break };
            let mut is_known = true;
            let reserved = self.ask(Request::ReserveJob { id }, |answer| match answer {
                Answer::Line(b"UNKNOWN_COMMAND") => {
                    is_known = false;
                    Some(None)
                }
                answer => job_or_none(answer),
            })?;
            if !is_known {
                return Err(Failure::on_the_way(format!(
                    "the tube {} is paused, and beanstalkd at {} hands out no job of a paused \
                     tube, since it is older than 1.12: run the import again after the pause",
                    self.watched, self.address
                )));
            }
            // If another client was quicker, what is next is looked for later.
            let Some(job) = reserved else { break };
            found.push(job);
        }
        Ok(found)
    }

    /// The job of this state that is the next in its tube.
    pub(super) fn next(&mut self, state: State) -> Result<Option<Found>, Failure> {
        self.ask(state.peek(), job_or_none)
    }

    /// These jobs, as far as they are there.
    pub(super) fn look_at(&mut self, ids: &[u64]) -> Result<Vec<Found>, Failure> {
        let requests: Vec<_> = ids.iter().map(|&id| Request::Peek { id }).collect();
        let mut found = Vec::new();
        self.ask_all(&requests, |answer| {
            let job = job_or_none(answer);
            found.extend(job.clone().flatten());
            job.is_some()
        })?;
        Ok(found)
    }

    /// What beanstalkd says of these jobs, in their order.
    pub(super) fn jobs(
        &mut self,
        ids: impl Iterator<Item = u64>,
    ) -> Result<Vec<Option<JobFigures>>, Failure> {
        let requests: Vec<_> = ids.map(|id| Request::StatsJob { id }).collect();
        let mut texts = Vec::new();
        self.ask_all(&requests, |answer| {
            texts.push(match answer {
                Answer::Document(text) => Some(shown(text)),
                _ => None,
            });
            matches!(answer, Answer::Document(_) | Answer::Line(b"NOT_FOUND"))
        })?;
        texts.into_iter().map(|text| text.as_deref().map(job_figures).transpose()).collect()
    }

    /// Deletes these jobs. Tells of each in turn whether it was there and not reserved by others.
    pub(super) fn delete(
        &mut self,
        ids: impl Iterator<Item = u64>,
        mut tell: impl FnMut(bool),
    ) -> Result<(), Failure> {
        let requests: Vec<_> = ids.map(|id| Request::Delete { id }).collect();
        self.ask_all(&requests, |answer| {
            let is_told = matches!(answer, Answer::Line(b"DELETED" | b"NOT_FOUND"));
            if is_told {
                tell(answer == Answer::Line(b"DELETED"));
            }
            is_told
        })
    }

    /// Gives reserved jobs back, by their numbers and priorities.
    pub(super) fn release(
        &mut self,
        jobs: impl Iterator<Item = (u64, u32)>,
    ) -> Result<(), Failure> {
        let release = |(id, priority)| Request::Release { id, priority, delay_s: 0 };
        // One whose time was up has come back by itself.
        self.ask_all(&jobs.map(release).collect::<Vec<_>>(), |answer| {
            matches!(answer, Answer::Line(b"RELEASED" | b"NOT_FOUND"))
        })
    }

    fn document(&mut self, request: Request<'_>) -> Result<String, Failure> {
        self.ask(request, |answer| match answer {
            Answer::Document(text) => Some(shown(text)),
            _ => None,
        })
    }

    /// Asks, and returns what `read` makes of the answer, which is none if it does not fit.
    fn ask<T>(
        &mut self,
        request: Request<'_>,
        read: impl FnOnce(Answer<'_>) -> Option<T>,
    ) -> Result<T, Failure> {
        let (mut read, mut outcome) = (Some(read), None);
        self.ask_all(&[request], |answer| {
            outcome = read.take().and_then(|read| read(answer));
            outcome.is_some()
        })?;
        // There is one, since the answer did fit.
        outcome.ok_or_else(|| self.lost(&Lost::Closed))
    }

    /// Sends all requests, and hands each answer in turn to `take`, which says whether it fits.
    fn ask_all(
        &mut self,
        requests: &[Request<'_>],
        take: impl FnMut(Answer<'_>) -> bool,
    ) -> Result<(), Failure> {
        let asked = self.send(requests).and_then(|()| self.receive(requests, take));
        self.is_usable &= asked.is_ok();
        asked
    }

    fn send(&mut self, requests: &[Request<'_>]) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        for request in requests {
            let put = request.put(&mut bytes);
            put.map_err(|error| Failure::on_the_way(format!("{request:?}: {error}")))?;
        }
        self.client.send(&bytes).map_err(|none| self.lost(&none))
    }

    fn receive(
        &mut self,
        requests: &[Request<'_>],
        mut take: impl FnMut(Answer<'_>) -> bool,
    ) -> Result<(), Failure> {
        for request in requests {
            let wrong = self.client.answer(|answer| {
                (!take(answer)).then(|| match answer {
                    Answer::Line(line) => escaped(line),
                    Answer::Job { id, .. } => format!("job {id}"),
                    Answer::Document(_) => "a document".to_owned(),
                })
            });
            if let Some(answer) = wrong.map_err(|none| self.lost(&none))? {
                let (address, verb) = (&self.address, request.verb().name());
                return Err(Failure::on_the_way(format!(
                    "beanstalkd at {address} answered '{answer}' to {verb}"
                )));
            }
        }
        Ok(())
    }

    fn lost(&self, none: &Lost) -> Failure {
        let address = &self.address;
        Failure::on_the_way(match none {
            Lost::Broken(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
            {
                format!("beanstalkd at {address} does not answer")
            }
            none => format!("the connection to beanstalkd at {address} was lost: {none}"),
        })
    }
}

fn found_in(answer: Answer<'_>) -> Option<Found> {
    match answer {
        Answer::Job { id, body, .. } => Some(Found { id, body: body.to_vec() }),
        _ => None,
    }
}

/// The job of an answer, if it is there; nothing at all if the answer does not fit.
#[expect(clippy::option_option, reason = "the outer one says whether the answer fits")]
fn job_or_none(answer: Answer<'_>) -> Option<Option<Found>> {
    match answer {
        Answer::Line(b"NOT_FOUND") => Some(None),
        answer => found_in(answer).map(Some),
    }
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// The value with this name, without quotation marks.
fn value<'a>(text: &'a str, name: &str) -> Result<&'a str, Failure> {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.map(|value| value.trim_matches('"')).ok_or_else(|| lacking(name))
}

/// The number with this name. One below 0, as a delay that is over has it, counts as 0.
fn number<N: TryFrom<u64>>(text: &str, name: &str) -> Result<N, Failure> {
    let value = value(text, name)?;
    let number = value.parse::<u64>().or_else(|_| value.parse::<i64>().map(|_| 0));
    number.ok().and_then(|number| N::try_from(number).ok()).ok_or_else(|| lacking(name))
}

fn lacking(name: &str) -> Failure {
    Failure::on_the_way(format!("beanstalkd has told its figures without '{name}'"))
}

fn job_figures(text: &str) -> Result<JobFigures, Failure> {
    Ok(JobFigures {
        tube: value(text, "tube")?.to_owned(),
        state: value(text, "state")?.to_owned(),
        priority: number(text, "pri")?,
        ttr_s: number(text, "ttr")?,
        left_s: number(text, "time-left")?,
    })
}
