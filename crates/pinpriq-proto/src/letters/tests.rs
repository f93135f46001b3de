//! Tests that every command and output comes back as it was, and that nothing else is taken for
//! one. The values follow from the declarations, and so does the census of them.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::command::{Ack, Held, HeldBy, Put, Take};
use crate::names::NamePattern;
use crate::settings::{Rate, SETTINGS, Settings, Value};
use crate::task::{
    ClientId, Grant, Holder, Holds, LaneName, Lease, Progress, RequestId, State, TaskRecord, Terms,
    headers,
};

/// The number of commands, and of outputs: several hundred of each variant.
const DRAWS: usize = 20_000;

/// Draws samples, and notes which variants of each enum were among them.
pub struct Dice {
    state: u64,
    seen: BTreeMap<&'static str, (usize, BTreeSet<usize>)>,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed, seen: BTreeMap::new() }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767);
        let mixed = (self.state ^ self.state >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ mixed >> 29
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).unwrap()
    }

    /// Returns the place of a variant among `count` of an enum.
    pub(crate) fn variant(&mut self, of: &'static str, count: usize) -> usize {
        let drawn = self.below(count);
        self.seen.entry(of).or_insert_with(|| (count, BTreeSet::new())).1.insert(drawn);
        drawn
    }

    pub(crate) fn is_usual(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Returns the length of a list.
    pub(crate) fn length(&mut self) -> usize {
        if self.below(20) == 0 { 20 } else { self.below(4) }
    }

    /// Returns a number that mostly takes one byte or two.
    pub(crate) fn number(&mut self) -> u64 {
        match self.below(8) {
            0 => u64::MAX,
            1 => self.next(),
            2 => 0,
            _ => self.next() % 300,
        }
    }

    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let length = if self.below(20) == 0 { 130 } else { self.below(10) };
        (0..length).map(|_| self.next().to_le_bytes()[3]).collect()
    }

    pub(crate) fn value(&mut self) -> Value<'static> {
        match self.variant("value", 6) {
            0 => Value::None,
            1 => Value::Number(self.number()),
            2 => Value::Span(Letter::sample(self)),
            3 => Value::Word(self.next().to_le_bytes()[0]),
            4 => Value::Bytes(Letter::sample(self)),
            _ => Value::Rate(Rate { count: Letter::sample(self), per: Letter::sample(self) }),
        }
    }

    pub(crate) fn settings(&mut self) -> Settings {
        let setting = SETTINGS[self.below(SETTINGS.len())];
        let value = self.value();
        Settings::default().with(&[(setting, value)]).unwrap_or_default()
    }

    /// Returns terms. All that they can be in bytes is the matter of the records.
    pub(crate) fn terms<B: Letter<'static> + AsRef<[u8]> + Clone, S: Holds<B>>(
        &mut self,
    ) -> Terms<B, S> {
        let mut terms = Terms::NONE;
        terms.key = Letter::sample(self);
        terms.ttr = Letter::sample(self);
        let headers = Option::<[u8; 16]>::sample(self).map(|value| {
            let mut letter = Vec::new();
            put_bytes(&mut letter, &headers::encode([(&b"name"[..], &value[..])]));
            let arena = Box::leak(Box::new(Arena::default()));
            B::take(&mut &*letter.leak(), arena).unwrap()
        });
        terms.with(Letter::sample(self), Letter::sample(self)).with_headers(headers)
    }

    /// Returns a task. What its attributes are in bytes is the matter of the records.
    pub(crate) fn task(&mut self) -> TaskRecord {
        let plain = TaskRecord::take(&mut &[0; 6][..], &Arena::default()).unwrap();
        let client = ClientId::sample(self);
        let holder = if self.is_usual() { None } else { Some(Holder::of(client)) };
        let lease = Lease { grant: Letter::sample(self), holder, deadline: None, ttr: None };
        let state = if self.is_usual() { State::Ready } else { State::Taken(lease) };
        let (number, priority) = (self.number(), Letter::sample(self));
        let lane = Option::<(u64, _)>::sample(self);
        TaskRecord {
            number,
            queue: Letter::sample(self),
            lane: lane.map(|(number, member)| LaneName { number, member }),
            id: Letter::sample(self),
            put_at: Letter::sample(self),
            progress: Progress { state, ..Progress::fresh(number, priority) },
            payload: Letter::sample(self),
            ..plain
        }
    }

    /// Returns a command that the engine would carry out.
    fn command(&mut self) -> Command<'static> {
        loop {
            let command = Command::sample(self);
            if check(&command).is_ok() {
                return command;
            }
        }
    }

    fn output(&mut self) -> Output {
        loop {
            let output = Output::sample(self);
            match &output {
                Output::Reply { reply, .. } if check_reply(reply).is_err() => {}
                _ => return output,
            }
        }
    }
}

fn letter<'a>(value: &impl Letter<'a>) -> Vec<u8> {
    let mut out = Vec::new();
    value.put(&mut out);
    out
}

fn is_refused(bytes: &[u8], why: Malformed) {
    assert_eq!(decode_command(bytes, |_| ()), Err(why), "{bytes:x?}");
}

#[test]
fn every_command_and_output_comes_back() {
    let mut dice = Dice::new(1);
    for _ in 0..DRAWS {
        let command = dice.command();
        let decoded = decode_command(&letter(&command), |decoded| *decoded == command);
        assert_eq!(decoded, Ok(true), "{command:?}");
        let output = dice.output();
        assert_eq!(decode_output(&letter(&output)), Ok(output));
    }
    for (name, (count, seen)) in &dice.seen {
        assert_eq!(seen.len(), *count, "of {name} only {seen:?} were drawn");
    }
    assert!(dice.seen.len() > 30, "{:?}", dice.seen);
}

#[test]
fn steps_come_back_in_their_order() {
    let mut dice = Dice::new(2);
    for _ in 0..1_000 {
        let Command::Transaction(steps) = dice.command() else { continue };
        let mut written = Steps::default();
        for step in steps {
            written.push(step);
        }
        let is_same = written.decode(|decoded| *decoded == Command::Transaction(steps));
        assert_eq!(is_same, Ok(true));
    }
}

#[test]
fn a_letter_that_is_cut_or_goes_on_is_refused() {
    let mut dice = Dice::new(3);
    for _ in 0..500 {
        let (mut command, mut output) = (letter(&dice.command()), letter(&dice.output()));
        for cut in 0..command.len() {
            is_refused(&command[..cut], Malformed::Short);
        }
        for cut in 0..output.len() {
            assert_eq!(decode_output(&output[..cut]), Err(Malformed::Short));
        }
        command.extend([0, 0]);
        is_refused(&command, Malformed::Rest(2));
        output.push(0);
        assert_eq!(decode_output(&output), Err(Malformed::Rest(1)));
    }
}

/// Whether these bytes, if they are a letter, are its only encoding, but for what may be ignored.
fn is_the_only_encoding(bytes: &[u8]) -> bool {
    let is_it = |again: Vec<u8>| again == bytes || again.len() < bytes.len();
    let command = decode_command(bytes, |command| is_it(letter(command)));
    command.unwrap_or(true) && decode_output(bytes).map_or(true, |it| is_it(letter(&it)))
}

#[test]
fn a_changed_byte_is_refused_or_means_something_else() {
    let mut dice = Dice::new(4);
    for _ in 0..500 {
        for mut bytes in [letter(&dice.command()), letter(&dice.output())] {
            let change = 1 << dice.below(8);
            for at in 0..bytes.len() {
                bytes[at] ^= change;
                assert!(is_the_only_encoding(&bytes), "{bytes:x?}");
                bytes[at] ^= change;
            }
        }
        assert!(is_the_only_encoding(&dice.bytes()));
    }
}

#[test]
fn what_a_newer_node_says_is_refused_with_a_sentence() {
    let mut put = letter(&Command::Put(Put::new(b"jobs", b"hello")));
    assert_eq!(put, b"\x01\x04jobs\x05hello\0");
    put[12] = 99;
    is_refused(&put, Malformed::UnknownField { what: "put", tag: 99 });
    let unknown = decode_command(&put, |_| ()).unwrap_err();
    let sentence = "the field 99 of put is not known: a newer version wrote it";
    assert_eq!(unknown.to_string(), sentence);
    is_refused(&[250], Malformed::UnknownKind { what: "command", kind: 250 });
    let unknown = decode_output(&[9]).unwrap_err();
    assert_eq!(unknown.to_string(), "output 9 is not known: a newer version wrote it");
}

#[derive(PartialEq, Debug, pinpriq_derive::Letter)]
struct Old {
    name: u64,
    #[letter(2)]
    second: Option<u64>,
}

#[derive(PartialEq, Debug, pinpriq_derive::Letter)]
struct New {
    #[letter(200)]
    hint: Option<u64>,
    #[letter(210, default = 7)]
    other_hint: u64,
    #[letter(3)]
    third: bool,
    #[letter(2)]
    second: Option<u64>,
    name: u64,
}

#[test]
fn a_field_may_be_new_and_a_hint_may_be_ignored() {
    let arena = Arena::default();
    let old = Old { name: 1, second: Some(2) };
    let new = New { hint: None, other_hint: 7, third: false, second: Some(2), name: 1 };
    // What is not used costs nothing, and both understand it.
    assert_eq!(letter(&old), [1, 2, 2, 0]);
    assert_eq!(letter(&new), letter(&old));
    assert_eq!(New::take(&mut &*letter(&old).leak(), &arena), Ok(New { ..new }));
    let hinting = New { hint: Some(5), other_hint: 300, ..new };
    assert_eq!(letter(&hinting), [1, 2, 2, 200, 1, 5, 210, 2, 0xac, 2, 0]);
    assert_eq!(Old::take(&mut &*letter(&hinting).leak(), &arena), Ok(old));
    assert_eq!(New::take(&mut &*letter(&hinting).leak(), &arena), Ok(hinting));
    let third = letter(&New { third: true, hint: None, other_hint: 7, ..new });
    let refused = Err(Malformed::UnknownField { what: "old", tag: 3 });
    assert_eq!(Old::take(&mut &*third.leak(), &arena), refused);
    for (bytes, why) in [
        (&[1, 2, 2, 2, 2, 0][..], Malformed::OutOfRange("order of fields")),
        (&[1, 3, 2, 2, 0], Malformed::OutOfRange("order of fields")),
        (&[1, 205, 0, 201, 0, 0], Malformed::OutOfRange("order of fields")),
        (&[1, 210, 1, 7, 0], Malformed::OutOfRange("other_hint")),
        (&[1, 200, 2, 5, 5, 0], Malformed::Rest(1)),
    ] {
        assert_eq!(New::take(&mut &*bytes, &arena), Err(why), "{bytes:?}");
    }
}

#[test]
fn a_usual_value_that_is_written_out_is_refused() {
    is_refused(b"\x01\x04jobs\0\x02\x01\0\0", Malformed::OutOfRange("priority"));
    is_refused(b"\x05\x01\x04jobs\x02\x01\0", Malformed::OutOfRange("count"));
    is_refused(b"\x05\x01\x04jobs\x02\x80\0\0", Malformed::OutOfRange("number"));
}

#[test]
fn a_length_that_is_only_declared_is_refused() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let take = Take {
        queues: &[b"jobs"],
        member: None,
        count: 1,
        wait: crate::command::Wait::No,
        selection: crate::command::Selection::DEFAULT,
        mode: crate::command::TakeMode::Pop,
    };
    let kinds = [
        letter(&Command::Take(take)),
        letter(&Command::PutBack(&[])),
        letter(&Command::GiveBack(&[])),
        letter(&Command::Put(Put::new(b"", b""))),
    ];
    for kind in kinds {
        is_refused(&[&kind[..1], &huge].concat(), Malformed::Short);
    }
}

#[test]
fn what_cannot_be_within_another_command_is_refused() {
    let credit = Command::Credit(1);
    is_refused(
        &letter(&Command::Transaction(&[Step::Command(credit)])),
        Malformed::OutOfRange("step"),
    );
    let within = Command::Within { names: &[], command: &credit };
    is_refused(&letter(&within), Malformed::OutOfRange("command within names"));
    let steps = vec![Step::Nothing; TRANSACTION_STEPS_MAX + 1];
    let many = Malformed::OutOfRange("length of a list");
    is_refused(&letter(&Command::Transaction(&steps)), many);
    let names = vec![NamePattern::exactly(b""); crate::limits::WITHIN_NAMES_MAX + 1];
    is_refused(&letter(&Command::Within { names: &names, command: &credit }), many);
    let (client, request) = (ClientId(3), RequestId(4));
    let reply = Reply::Transaction(vec![Reply::Transaction(Vec::new())]);
    let output = letter(&Output::Reply { client, request, reply });
    assert_eq!(decode_output(&output), Err(Malformed::OutOfRange("reply of a step")));
}

#[test]
fn what_is_nested_too_deep_is_refused() {
    let start = letter(&Command::Within { names: &[], command: &Command::LetGo });
    is_refused(&start[..2].repeat(100_000), Malformed::OutOfRange("depth"));
    let start = letter(&Output::Reply {
        client: ClientId(0),
        request: RequestId(0),
        reply: Reply::Transaction(vec![]),
    });
    let deep = [&start[..3], &[start[3], 1].repeat(100_000)].concat();
    assert_eq!(decode_output(&deep), Err(Malformed::OutOfRange("depth")));
}

#[test]
fn an_ack_takes_few_bytes() {
    let receipt = crate::task::Receipt { number: 7, grant: Grant { incarnation: 1, serial: 9 } };
    let held = Held { queue: (&b"jobs"[..]).into(), by: HeldBy::Receipt(receipt) };
    let ack = letter(&Command::Ack(Ack::new(held)));
    assert_eq!(&ack[1..], b"\x04jobs\0\x01\x07\x01\x09\0");
}
