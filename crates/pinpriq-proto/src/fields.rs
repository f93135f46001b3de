//! The fields of a task: what each is called, what it means, how it is read from a task and how an
//! import puts it back. One table.
//!
//! From it come the map of `WITHMETA` and `GET`, the object and the schema of HTTP, the records of
//! exports and the table of the docs. How a value looks in one of these is decided there.

mod draft;
pub mod told;

pub use self::draft::Draft;
use std::net::SocketAddr;
use std::sync::LazyLock;

use crate::assign::Assign;
use crate::batches::OnlyIf;
use crate::limits::ATTEMPTS_MAX;
use crate::schedule::Scheduled;
use crate::settings::Rate;
use crate::task::history::{self, Attempt};
use crate::task::{
    Burial, Bytes, COST_USUAL, ClientId, Grant, Lease, Origin, Receipt, Retries, State, StateKind,
    TaskId, TaskRecord,
};
use crate::time::{Span, Timestamp};

/// A field of a task.
pub struct Field {
    /// Its name in replies.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: FieldKind,
    /// Whether every task has a value.
    pub always: bool,
    /// What replies have it.
    pub shown: Shown,
    /// What it says, for people.
    pub help: &'static str,
    /// Reads its value.
    pub read: for<'s> fn(&Seen<'s>) -> Value<'s>,
    /// How it leaves with an export, if it does.
    pub carried: Option<Carried>,
}

/// A field as exports have it.
#[derive(Clone, Copy)]
pub struct Carried {
    /// Its name there.
    pub name: &'static str,
    /// Where it stands among the fields of a record. The payload is last.
    pub place: u8,
    /// The value that stands for a field that is left out.
    pub usual: Value<'static>,
    /// Puts the value back.
    pub write: fn(&mut Draft, Value<'_>),
}

/// What is wrong with a record.
pub type Wrong = String;

/// The kind of a field's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// Bytes of a client, which often are text.
    Bytes,
    /// The payload.
    Payload,
    /// The id of a task.
    Id,
    /// The proof of a lease.
    Receipt,
    /// A state.
    State,
    /// A number that may be negative.
    Integer,
    /// A number from 0 to 2^32 - 1.
    Count,
    /// A number from 0 to 2^64 - 1.
    Number,
    /// A moment.
    Moment,
    /// A duration.
    Span,
    /// The address of a client.
    Address,
    /// Values by name.
    Headers,
    /// True or false.
    Truth,
    /// A number from 0 to 2^64 - 1, or none where that is said.
    NumberOrNone,
    /// A duration, or none where that is said.
    SpanOrNone,
    /// Attempts, whose fields are those of [`told::ATTEMPT`].
    Attempts,
    /// Names.
    Names,
}

/// What replies have a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// All that show all about a task.
    Always,
    /// Those that can hand a task over. `GET` leaves it out.
    Handed,
    /// `GET` alone.
    Asked,
    /// None: it is only exported.
    Never,
}

/// The value of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// The task has none.
    Missing,
    /// Of [`FieldKind::Bytes`] and [`FieldKind::Payload`].
    Bytes(&'a [u8]),
    /// Of [`FieldKind::Id`].
    Id(&'a TaskId),
    /// Of [`FieldKind::Receipt`].
    Receipt(Receipt),
    /// Of [`FieldKind::State`].
    State(StateKind),
    /// Of [`FieldKind::Integer`].
    Integer(i64),
    /// Of [`FieldKind::Count`] and [`FieldKind::Number`].
    Number(u64),
    /// Of [`FieldKind::Moment`].
    Moment(Timestamp),
    /// Of [`FieldKind::Span`].
    Span(Span),
    /// Of [`FieldKind::Address`].
    Address(SocketAddr),
    /// Of [`FieldKind::Headers`], as [`headers::encode`](crate::task::headers::encode) writes them.
    Headers(&'a [u8]),
    /// Of [`FieldKind::Truth`].
    Truth(bool),
    /// Of [`FieldKind::Attempts`].
    Attempts(&'a [Attempt]),
    /// Of [`FieldKind::Names`].
    Names(&'a [Bytes]),
    /// None, where that is said.
    None,
    /// A rate, which nothing about a task is.
    Rate(Rate),
}

/// A task, and what is known about it besides.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'s> {
    /// The task.
    pub task: &'s TaskRecord,
    /// Whether the receipt of its lease is for other eyes.
    pub hides_receipt: bool,
    /// The name of the client that has taken it, while that is connected. Empty if it has none.
    pub client_name: &'s [u8],
    /// The address of that client.
    pub client_address: Option<SocketAddr>,
    /// The end of the window of its unique key.
    pub unique_until: Option<Timestamp>,
}

/// All fields of a task: first those of replies, in their order, then those that are only exported.
pub static TASK: [Field; 55] = [
    Field::of("queue", FieldKind::Bytes, "name; for a task in a lane the topic", |it| {
        Value::Bytes(&it.task.queue)
    })
    .always()
    // The queue is the one that the command names.
    .carried(0, |_, _| {}),
    Field::of("member", FieldKind::Bytes, "whose lane it is in, if it is in one", |it| {
        bytes(it.task.lane.as_ref().map(|lane| &lane.member))
    }),
    Field::of("id", FieldKind::Id, "its id", |it| Value::Id(&it.task.id)).always().carried(
        1,
        |draft, value| {
            // Only the text counts. The queue decides the form.
            draft.task.id = TaskId::Given(
                value.id().map_or_else(Bytes::default, |id| Bytes::from(&*id.text())),
            );
        },
    ),
    Field::of("receipt", FieldKind::Receipt, "of the lease just granted (`TAKE`)", |it| {
        let receipt = it.task.receipt().filter(|_| !it.hides_receipt);
        receipt.map_or(Value::Missing, Value::Receipt)
    })
    .shown(Shown::Handed),
    Field::of("payload", FieldKind::Payload, "its bytes", |it| Value::Bytes(&it.task.payload))
        .always()
        .carried(u8::MAX, |draft, value| {
            draft.task.payload = value.bytes().unwrap_or_default().into();
        }),
    Field::of("key", FieldKind::Bytes, "its key, if it has one", |it| {
        bytes(it.task.terms.key.as_ref())
    })
    .carried(8, |draft, value| {
        draft.task.terms.key = value.bytes().map(Bytes::from);
    }),
    Field::of("share", FieldKind::Bytes, "on whose behalf it runs, if its put said that", |it| {
        bytes(it.task.terms.share())
    })
    .carried(28, |draft, value| {
        let terms = std::mem::take(&mut draft.task.terms);
        let cost = terms.cost();
        draft.task.terms = terms.with(value.bytes().map(Bytes::from), cost);
    }),
    Field::of("cost", FieldKind::Count, "what a take of it costs", |it| {
        count(it.task.terms.cost())
    })
    .always()
    .carried(29, |draft, value| {
        let terms = std::mem::take(&mut draft.task.terms);
        let share = terms.share().cloned();
        draft.task.terms = terms.with(share, value.count());
    })
    .usually(Value::Number(COST_USUAL as u64)),
    Field::of("priority", FieldKind::Integer, "its priority, if it has one", |it| {
        it.task.progress.priority.map_or(Value::Missing, Value::Integer)
    })
    .carried(7, |draft, value| {
        draft.task.progress.priority = value.integer();
    })
    .usually(Value::Integer(0)),
    Field::of(
        "state",
        FieldKind::State,
        "a letter; for `POP` the state before it was popped, R",
        |it| Value::State(it.task.progress.state.kind()),
    )
    .always()
    .carried(2, |draft, value| {
        draft.task.progress.state = match value.state() {
            StateKind::Ready => State::Ready,
            StateKind::Taken => {
                let grant = Grant { incarnation: 0, serial: 0 };
                State::Taken(Lease { grant, holder: None, deadline: None, ttr: None })
            }
            StateKind::Waiting => State::Waiting { ready_at: None },
            StateKind::Buried => State::Buried(Burial::UNKNOWN),
            StateKind::Zombie => State::Zombie { purge_at: Timestamp::ZERO },
            StateKind::Done => State::Done,
        };
    }),
    Field::of("attempts", FieldKind::Count, "how often it was taken, this time included", |it| {
        count(it.task.progress.attempts)
    })
    .always()
    .counted(10, |draft, value| draft.task.progress.attempts = value.count()),
    Field::of("failures", FieldKind::Count, "how often it has failed", |it| {
        count(it.task.progress.failures)
    })
    .always()
    .counted(11, |draft, value| draft.task.progress.failures = value.count()),
    Field::of(
        "reason",
        FieldKind::Bytes,
        "why it failed or was buried the last time, perhaps empty",
        |it| bytes(it.task.progress.reason.as_ref()),
    )
    .carried(12, |draft, value| {
        draft.task.progress.reason = value.bytes().map(Bytes::from);
    }),
    Field::of("put_at", FieldKind::Moment, "moment of the put", |it| Value::Moment(it.task.put_at))
        .always()
        .carried(5, |draft, value| {
            // The engine takes a moment that has not come yet for now.
            draft.task.put_at = value.moment().unwrap_or(Timestamp::MAX);
        }),
    Field::of("ttl_at", FieldKind::Moment, "end of its time to live, if it has one", |it| {
        moment(it.task.progress.expires_at)
    })
    .carried(6, |draft, value| {
        draft.task.progress.expires_at = value.moment();
    })
    .carried_as("expires_at"),
    Field::of("ready_at", FieldKind::Moment, "end of its delay, in W", |it| {
        match it.task.progress.state {
            State::Waiting { ready_at } => moment(ready_at),
            _ => Value::Missing,
        }
    })
    .carried(3, |draft, value| {
        // One that is held has no such moment, and says so.
        if value != Value::Missing {
            draft.set_end("ready_at", StateKind::Waiting, value, |ready_at| State::Waiting {
                ready_at: Some(ready_at),
            });
        }
    }),
    Field::of(
        "lease_until",
        FieldKind::Moment,
        "end of its lease, in T, if the lease has a TTR",
        |it| match &it.task.progress.state {
            State::Taken(lease) => moment(lease.deadline),
            _ => Value::Missing,
        },
    ),
    Field::of("purge_at", FieldKind::Moment, "end of its stay, in Z", |it| {
        match it.task.progress.state {
            State::Zombie { purge_at } => Value::Moment(purge_at),
            _ => Value::Missing,
        }
    })
    .carried(3, |draft, value| {
        draft.set_end("purge_at", StateKind::Zombie, value, |purge_at| State::Zombie { purge_at });
    }),
    Field::of(
        "client",
        FieldKind::Number,
        "number of the client that has taken it, in T, until the server restarts",
        |it| it.holder().map_or(Value::Missing, |holder| Value::Number(holder.0)),
    ),
    Field::of(
        "client_name",
        FieldKind::Bytes,
        "name of that client, if it has one and is still connected",
        |it| match it.client_name {
            [] => Value::Missing,
            name => Value::Bytes(name),
        },
    ),
    Field::of(
        "client_address",
        FieldKind::Address,
        "address of that client, while it is connected",
        |it| it.client_address.map_or(Value::Missing, Value::Address),
    ),
    Field::of(
        "origin_queue",
        FieldKind::Bytes,
        "the queue that a dead letter comes from; only dead letters have this and the following",
        |it| bytes(it.task.origin().map(|origin| &origin.queue)),
    )
    .carried(18, |draft, value| {
        draft.past.origin = value.bytes().map(|queue| Origin {
            queue: queue.into(),
            id: TaskId::Number(0),
            put_at: Timestamp::ZERO,
            attempts: 0,
            failures: 0,
            at: Timestamp::ZERO,
        });
    }),
    Field::of("origin_id", FieldKind::Id, "its id there", |it| {
        it.task.origin().map_or(Value::Missing, |origin| Value::Id(&origin.id))
    })
    .carried(19, |draft, value| {
        draft.set_origin("origin_id", value, |origin, value| {
            origin.id = value.id()?.clone();
            Some(())
        });
    }),
    Field::of("origin_put_at", FieldKind::Moment, "moment of its put there", |it| {
        moment(it.task.origin().map(|origin| origin.put_at))
    })
    .carried(20, |draft, value| {
        draft.set_origin("origin_put_at", value, |origin, value| {
            origin.put_at = value.moment()?;
            Some(())
        });
    }),
    Field::of("origin_attempts", FieldKind::Count, "how often it was taken there", |it| {
        it.task.origin().map_or(Value::Missing, |origin| count(origin.attempts))
    })
    .carried(21, |draft, value| {
        draft.set_origin("origin_attempts", value, |origin, value| {
            origin.attempts = value.count();
            Some(())
        });
    }),
    Field::of("origin_failures", FieldKind::Count, "how often it failed there", |it| {
        it.task.origin().map_or(Value::Missing, |origin| count(origin.failures))
    })
    .carried(22, |draft, value| {
        draft.set_origin("origin_failures", value, |origin, value| {
            origin.failures = value.count();
            Some(())
        });
    }),
    Field::of("origin_at", FieldKind::Moment, "moment at which it moved", |it| {
        moment(it.task.origin().map(|origin| origin.at))
    })
    .carried(23, |draft, value| {
        draft.set_origin("origin_at", value, |origin, value| {
            origin.at = value.moment()?;
            Some(())
        });
    }),
    Field::of("schedule", FieldKind::Bytes, "the schedule that has put it, if one has", |it| {
        bytes(it.task.scheduled().map(|scheduled| &scheduled.schedule))
    })
    .carried(24, |draft, value| {
        let schedule = value.bytes().map(Bytes::from);
        draft.past.scheduled = schedule.map(|schedule| Scheduled { schedule, slot: None });
    }),
    Field::of(
        "slot",
        FieldKind::Moment,
        "moment of the slot for which a schedule has put it",
        |it| moment(it.task.scheduled().and_then(|scheduled| scheduled.slot)),
    )
    .carried(25, |draft, value| match (&mut draft.past.scheduled, value.moment()) {
        (Some(scheduled), slot) => scheduled.slot = slot,
        (None, Some(_)) => draft.refuse("'slot' goes with 'schedule'"),
        (None, None) => {}
    }),
    Field::of("headers", FieldKind::Headers, "short values by name that its put gave it", |it| {
        Value::Headers(it.task.terms.header_bytes())
    })
    .always()
    .carried(33, |draft, value| {
        let terms = std::mem::take(&mut draft.task.terms);
        draft.task.terms = terms.with_headers(value.headers().map(Bytes::from));
    })
    .usually(Value::Headers(&[])),
    Field::of(
        "cancelled",
        FieldKind::Bytes,
        "why it was cancelled, perhaps empty, in T until its holder stops",
        |it| bytes(it.task.progress.cancelled().map(|cancelled| &cancelled.reason)),
    ),
    Field::of(
        "progress",
        FieldKind::Bytes,
        "how far the work has come, for people, in T if its holder has said that",
        |it| bytes(it.task.progress.text()),
    ),
    Field::of(
        "checkpoint",
        FieldKind::Bytes,
        "how far the work has come, for who takes it next, if a holder has said that",
        |it| bytes(it.task.progress.checkpoint()),
    )
    .carried(34, |draft, value| {
        let checkpoint = value.bytes().filter(|bytes| !bytes.is_empty());
        draft.trace.checkpoint = checkpoint.map(Bytes::from);
    }),
    Field::of("batch", FieldKind::Bytes, "the batch it is pending in", |it| bytes(it.task.batch()))
        .carried(41, |draft, value| draft.past.batch = value.bytes().map(Bytes::from)),
    Field::of(
        "after",
        FieldKind::Names,
        "the batches that have to be done before it, in W",
        |it| Value::Names(it.task.progress.after().map_or(&[], |after| &after.names)),
    )
    .always()
    .carried(42, |draft, value| draft.follow(value.names()))
    .usually(Value::Names(&[])),
    Field::of("held", FieldKind::Truth, "whether it waits in W until it is freed", |it| {
        Value::Truth(it.task.progress.is_held_by_hand())
    })
    .always()
    .carried(35, |draft, value| draft.is_parked = value == Value::Truth(true))
    .carried_as("parked")
    .usually(Value::Truth(false)),
    Field::of(
        "result",
        FieldKind::Bytes,
        "what has come of the work, if it is finished and its holder said that",
        |it| bytes(it.task.progress.result()),
    )
    .carried(39, |draft, value| {
        let result = value.bytes().map(Bytes::from);
        if result.is_some() && !draft.task.progress.state.kind().is_finished() {
            draft.misplace("result");
        }
        draft.trace.result = result;
    }),
    Field::of(
        "attempts_max",
        FieldKind::NumberOrNone,
        "how often it may fail before it is given up, if its put said that",
        |it| Value::own(it.task.terms.retries().attempts, count),
    )
    .carried(36, |draft, value| {
        let attempts = value.or_none(Value::count);
        if let Assign::To(Some(most)) = attempts
            && !Retries::can_be_attempts(most)
        {
            draft.refuse(format!("'attempts_max' is a number from 1 to {ATTEMPTS_MAX}, or null"));
        }
        draft.change_retries(|retries| retries.attempts = attempts);
    }),
    Field::of(
        "backoff",
        FieldKind::SpanOrNone,
        "how long it waits after its first failure, if its put said that",
        |it| Value::own(it.task.terms.retries().backoff, Value::Span),
    )
    .carried(37, |draft, value| {
        let backoff = value.or_none(|value| value.span().unwrap_or(Span::ZERO));
        draft.check_wait("backoff_ms", backoff.given().flatten());
        draft.change_retries(|retries| retries.backoff = backoff);
    })
    .carried_as("backoff_ms"),
    Field::of(
        "backoff_max",
        FieldKind::Span,
        "the longest that it waits after a failure, if its put said that",
        |it| it.task.terms.retries().backoff_max.map_or(Value::Missing, Value::Span),
    )
    .carried(38, |draft, value| {
        draft.check_wait("backoff_max_ms", value.span());
        draft.change_retries(|retries| retries.backoff_max = value.span());
    })
    .carried_as("backoff_max_ms"),
    Field::of(
        "history",
        FieldKind::Attempts,
        "its last attempts that have ended, oldest first (`GET`)",
        |it| Value::Attempts(history::ended(it.task.progress.history())),
    )
    .always()
    .shown(Shown::Asked)
    .carried(40, |draft, value| {
        let attempts = value.attempts();
        draft.check_history(attempts);
        draft.trace.history = (!attempts.is_empty()).then(|| attempts.into());
    })
    .usually(Value::Attempts(&[])),
    Field::of("burial", FieldKind::Number, "its place among those that are buried", |it| match it
        .task
        .progress
        .state
    {
        State::Buried(burial) if burial != Burial::UNKNOWN => Value::Number(burial.number()),
        _ => Value::Missing,
    })
    .shown(Shown::Never)
    .carried(4, |draft, value| match (&mut draft.task.progress.state, value) {
        (_, Value::Missing) => {}
        (State::Buried(burial), _) => *burial = Burial::of_number(value.number()),
        _ => draft.misplace("burial"),
    }),
    Field::of("ttr", FieldKind::Span, "its own time to release", |it| {
        it.task.terms.ttr.map_or(Value::Missing, Value::Span)
    })
    .shown(Shown::Never)
    .carried(9, |draft, value| {
        draft.task.terms.ttr = value.span();
    })
    .carried_as("ttr_ms"),
    Field::of("delay", FieldKind::Span, "the delay that it was last given", |it| {
        Value::Span(it.task.progress.delay())
    })
    .shown(Shown::Never)
    .carried(13, |draft, value| {
        draft.trace.delay = value.span().unwrap_or(Span::ZERO);
    })
    .carried_as("delay_ms")
    .usually(Value::Span(Span::ZERO)),
    Field::exported_count("timeouts", "how often a lease has reached its deadline", |it| {
        count(it.task.progress.counts().timeouts)
    })
    .counted(14, |draft, value| draft.trace.counts.timeouts = value.count()),
    Field::exported_count("releases", "how often it was released", |it| {
        count(it.task.progress.counts().releases)
    })
    .counted(15, |draft, value| draft.trace.counts.releases = value.count()),
    Field::exported_count("buries", "how often it was buried", |it| {
        count(it.task.progress.counts().buries)
    })
    .counted(16, |draft, value| draft.trace.counts.buries = value.count()),
    Field::exported_count("kicks", "how often it was dug up", |it| {
        count(it.task.progress.counts().kicks)
    })
    .counted(17, |draft, value| draft.trace.counts.kicks = value.count()),
    Field::of("holds", FieldKind::Count, "1 if it holds back the others of its key", |it| {
        count(u32::from(it.task.progress.is_held()))
    })
    .shown(Shown::Never)
    .counted(30, |draft, value| draft.trace.is_held = value.count() > 0)
    .carried_as("held"),
    Field::of("start", FieldKind::Moment, "moment at which it has begun to age", |it| {
        moment(it.task.progress.aged().start)
    })
    .shown(Shown::Never)
    .carried(31, |draft, value| draft.trace.aged.start = value.moment()),
    Field::of("ageing", FieldKind::Span, "what a step of its priority counts", |it| {
        it.task.progress.aged().ageing.map_or(Value::Missing, Value::Span)
    })
    .shown(Shown::Never)
    .carried(32, |draft, value| draft.trace.aged.ageing = value.span())
    .carried_as("ageing_ms"),
    Field::of("if", FieldKind::Bytes, "how those batches have to end", |it| {
        let only_if = it.task.progress.after().map(|after| after.only_if);
        let only_if = only_if.filter(|it| *it != OnlyIf::Done);
        only_if.map_or(Value::Missing, |it| Value::Bytes(it.word().as_bytes()))
    })
    .shown(Shown::Never)
    .carried(43, |draft, value| draft.set_condition(value.bytes())),
    Field::exported_count("after_failed", "1 if a task has failed of those that are done", |it| {
        count(u32::from(it.task.progress.after().is_some_and(|after| after.any_failed)))
    })
    .counted(44, |draft, value| {
        draft.set_any_failed(value.count() > 0);
    }),
    Field::of("unique", FieldKind::Bytes, "its unique key", |it| bytes(it.task.unique()))
        .shown(Shown::Never)
        .carried(26, |draft, value| {
            draft.past.unique = value.bytes().map(Bytes::from);
        }),
    Field::of("unique_until", FieldKind::Moment, "the end of the window of that key", |it| {
        moment(it.unique_until)
    })
    .shown(Shown::Never)
    .carried(27, |draft, value| {
        draft.unique_until = value.moment();
        if draft.unique_until.is_some() && draft.past.unique.is_none() {
            draft.refuse("'unique_until' goes with 'unique'");
        }
    }),
];

impl Shown {
    /// Whether a reply has the field: one to `GET`, or any other one that shows all about a task.
    #[must_use]
    pub const fn is_in(self, is_get: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Handed => !is_get,
            Self::Asked => is_get,
            Self::Never => false,
        }
    }
}

impl Field {
    const fn of(
        name: &'static str,
        kind: FieldKind,
        help: &'static str,
        read: for<'s> fn(&Seen<'s>) -> Value<'s>,
    ) -> Self {
        Self { name, kind, always: false, shown: Shown::Always, help, read, carried: None }
    }

    /// A count that replies do not have.
    const fn exported_count(
        name: &'static str,
        help: &'static str,
        read: for<'s> fn(&Seen<'s>) -> Value<'s>,
    ) -> Self {
        Self::of(name, FieldKind::Count, help, read).shown(Shown::Never)
    }

    const fn always(mut self) -> Self {
        self.always = true;
        self
    }

    const fn shown(mut self, shown: Shown) -> Self {
        self.shown = shown;
        self
    }

    const fn carried(mut self, place: u8, write: fn(&mut Draft, Value<'_>)) -> Self {
        self.carried = Some(Carried { name: self.name, place, usual: Value::Missing, write });
        self
    }

    /// The same for a number that is 0 unless something else is said.
    const fn counted(self, place: u8, write: fn(&mut Draft, Value<'_>)) -> Self {
        self.carried(place, write).usually(Value::Number(0))
    }

    const fn usually(mut self, value: Value<'static>) -> Self {
        if let Some(carried) = &mut self.carried {
            carried.usual = value;
        }
        self
    }

    const fn carried_as(mut self, name: &'static str) -> Self {
        if let Some(carried) = &mut self.carried {
            carried.name = name;
        }
        self
    }

    /// The field of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        TASK.iter().find(|field| field.name == name)
    }
}

/// The fields of a record, in its order.
pub fn carried() -> impl Iterator<Item = (&'static Field, &'static Carried)> {
    static ORDER: LazyLock<Vec<(&Field, &Carried)>> = LazyLock::new(|| {
        let carried = TASK.iter().filter_map(|field| Some((field, field.carried.as_ref()?)));
        let mut carried: Vec<_> = carried.collect();
        carried.sort_by_key(|(_, carried)| carried.place);
        carried
    });
    ORDER.iter().copied()
}

impl<'s> Seen<'s> {
    /// A task about which nothing else is known.
    #[must_use]
    pub const fn of(task: &'s TaskRecord) -> Self {
        Self {
            task,
            hides_receipt: false,
            client_name: &[],
            client_address: None,
            unique_until: None,
        }
    }

    /// The client that has taken the task.
    #[must_use]
    pub fn holder(&self) -> Option<ClientId> {
        match &self.task.progress.state {
            State::Taken(lease) => lease.client().map(ClientId::first),
            _ => None,
        }
    }
}

impl Value<'_> {
    fn bytes(&self) -> Option<&[u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    fn headers(&self) -> Option<&[u8]> {
        if let Self::Headers(headers) = self { Some(headers) } else { None }
    }

    fn attempts(&self) -> &[Attempt] {
        if let Self::Attempts(attempts) = self { attempts } else { &[] }
    }

    fn names(&self) -> &[Bytes] {
        if let Self::Names(names) = self { names } else { &[] }
    }

    fn id(&self) -> Option<&TaskId> {
        if let Self::Id(id) = self { Some(id) } else { None }
    }

    fn state(self) -> StateKind {
        if let Self::State(state) = self { state } else { StateKind::Ready }
    }

    fn number(self) -> u64 {
        if let Self::Number(number) = self { number } else { 0 }
    }

    /// The value of what a task has of its own, or that it has none.
    pub fn own<T>(own: Assign<Option<T>>, value: fn(T) -> Self) -> Self {
        own.given().map_or(Self::Missing, |own| own.map_or(Self::None, value))
    }

    /// What a task has of its own, or that it has none.
    fn or_none<T>(self, read: impl FnOnce(Self) -> T) -> Assign<Option<T>> {
        match self {
            Self::Missing => Assign::Keep,
            Self::None => Assign::To(None),
            value => Assign::To(Some(read(value))),
        }
    }

    fn count(self) -> u32 {
        u32::try_from(self.number()).unwrap_or(u32::MAX)
    }

    /// The number, if it is one that may be negative.
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(number) } else { None }
    }

    fn moment(self) -> Option<Timestamp> {
        if let Self::Moment(at) = self { Some(at) } else { None }
    }

    fn span(self) -> Option<Span> {
        if let Self::Span(span) = self { Some(span) } else { None }
    }
}

fn bytes(bytes: Option<&Bytes>) -> Value<'_> {
    bytes.map_or(Value::Missing, |bytes| Value::Bytes(bytes))
}

fn count(count: u32) -> Value<'static> {
    Value::Number(count.into())
}

fn moment(at: Option<Timestamp>) -> Value<'static> {
    at.map_or(Value::Missing, Value::Moment)
}

#[cfg(test)]
mod tests;
