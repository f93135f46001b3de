//! The end of a run: there are no more faults, and everything must finish within bounds.
//!
//! Leases end, delays pass, takers are served, every queue is emptied, and nothing without an owner
//! is left.

use std::sync::atomic::Ordering;

use crate::faulty_disk::CrashPolicy;
use crate::model::Home;
use pinpriq_proto::command::{
    BatchCommand, Command, QueueCommand, Selection, Sides, Take, TakeMode, Wait,
};
use pinpriq_proto::fanout::MemberCommand;
use pinpriq_proto::named_limits::LimitCommand;
use pinpriq_proto::schedule::ScheduleCommand;
use pinpriq_proto::settings::{COSTMAX, RATE, SETTINGS, Setting, Value};
use pinpriq_proto::shares::{Own, ShareChange};
use pinpriq_proto::task::State;
use pinpriq_proto::time::Span;
use pinpriq_server::config::DoorName;

use crate::sim::ask::{Ask, Name};
use crate::sim::faults::Kind;
use crate::sim::oracle::Request;
use crate::sim::world::World;

/// The most rounds until nothing is left.
const ROUNDS_MAX: u64 = 400;

/// Delays that are longer than this many spans are not waited for.
const SPANS_TO_WAIT: u64 = 100;

impl World {
    /// Ends the faults, and drains everything.
    pub(crate) fn calm_down(&mut self) {
        // The machine may stop again in the last operation of a start that succeeds.
        self.end_full_disk();
        while self.oracle.borrow().failed || self.disk.has_stopped() {
            self.restart_after_failure();
        }
        self.is_calm = true;
        // A shard that receives letters again starts working, so the disk must be healed before
        // that.
        self.disk.heal();
        self.end_disk_fault();
        self.knobs.short_writes = 0;
        self.hear_all();
        self.settle();
        self.check();
        for client in &mut self.clients {
            (client.stalled, client.silent) = (0, 0);
        }
        // Blocked clients are served or receive a reply; then they leave, and their leases end.
        self.settle();
        self.check();
        for client in std::mem::take(&mut self.clients) {
            self.part_with(client.id);
        }
        if self.dice.chance(30) {
            self.crash(CrashPolicy::KeepAll, Kind::Kill);
        }
        self.knobs.resp_clients = 1;
        (self.knobs.pinpriq_clients, self.knobs.beanstalkd_clients) = (0, 0);
        self.knobs.chunk_in = 0;
        self.knobs.chunk_out = 0;
        self.keep_clients();
        self.drop_schedules();
        self.drain_everything();
        self.finish_archive();
        self.check_empty();
    }

    /// Ends what would put tasks for ever.
    fn drop_schedules(&mut self) {
        let names: Vec<Vec<u8>> = {
            let oracle = self.oracle.borrow();
            oracle.model.schedules.values().map(|known| known.name.to_vec()).collect()
        };
        for name in names {
            self.request(&ScheduleCommand::Drop(&name).into());
        }
    }

    fn drain_everything(&mut self) {
        let step = Span::from_ms(self.knobs.span_ms);
        for _ in 0..ROUNDS_MAX {
            let names: Vec<Name> = {
                let oracle = self.oracle.borrow();
                let name = |home: &Home| Name {
                    queue: home.name.to_vec(),
                    member: home.lane.as_ref().map(|lane| lane.name.member.to_vec()),
                };
                oracle.model.homes.values().map(name).collect()
            };
            if self.oracle.borrow().model.task_count() == 0 {
                break;
            }
            for name in names {
                self.empty(&name);
            }
            self.clocks.advance(step);
            self.tick();
            self.settle();
        }
        self.settle();
        let left = self.oracle.borrow().model.task_count();
        assert_eq!(left, 0, "everything can be taken in the end");
        for member in [&b"m"[..], b"1", b"10", b""] {
            self.request(&MemberCommand::Leave(member).into());
        }
        for name in self.names() {
            self.request(&QueueCommand::Drop(&name).into());
        }
        // Lanes may use limits until they are cleaned.
        self.settle();
        self.tick();
        let limits: Vec<Vec<u8>> = {
            let oracle = self.oracle.borrow();
            oracle.model.named_limits.values().map(|known| known.record.name.to_vec()).collect()
        };
        for name in limits {
            self.request(&LimitCommand::Drop(&name).into());
        }
        // No batch has tasks any more.
        let batches: Vec<Vec<u8>> = {
            let oracle = self.oracle.borrow();
            oracle.model.batches.values().map(|known| known.record.name.to_vec()).collect()
        };
        for name in batches {
            self.request(&BatchCommand::Close(&name).into());
            self.request(&BatchCommand::Drop(&name).into());
        }
        self.settle();
        self.tick();
        self.check();
    }

    fn names(&self) -> Vec<Vec<u8>> {
        let oracle = self.oracle.borrow();
        let homes = oracle.model.homes.values().filter(|home| home.lane.is_none());
        homes.map(|home| home.name.to_vec()).collect()
    }

    /// Takes and acknowledges the tasks, brings back buried ones, and removes those that cannot be
    /// taken.
    fn empty(&mut self, name: &Name) {
        let queue = name.borrow();
        self.request(&QueueCommand::Resume { queue, sides: Sides::Both }.into());
        self.lift_limits(name);
        self.request(&Command::Plow { queue, count: None, delay: Span::ZERO, ttl: None });
        self.request(&Command::Take(Take {
            queues: &[queue.name],
            member: queue.member,
            count: 1_000,
            wait: Wait::No,
            selection: Selection { group: true, ..Selection::DEFAULT },
            mode: TakeMode::Pop,
        }));
        let never_selected: Vec<Vec<u8>> = {
            let oracle = self.oracle.borrow();
            let soon = oracle.model.now.after(Span::from_ms(SPANS_TO_WAIT * self.knobs.span_ms));
            let own = oracle.model.tasks().filter(|task| {
                let member = task.lane.as_ref().map(|lane| lane.member.to_vec());
                *task.queue == *name.queue && member == name.member
            });
            let stuck = own.filter(|task| {
                let kind = task.progress.state.kind();
                let unranked = task.progress.priority.is_none();
                // The back-off of a task that has failed often is too long to wait for, and so is a
                // moment that the wall clock showed before it was set back.
                let waits_long = matches!(
                    task.progress.state,
                    State::Waiting { ready_at }
                        if task.progress.failures > 8 || ready_at.is_none_or(|at| at > soon)
                );
                waits_long
                    || kind == pinpriq_proto::task::StateKind::Done
                    || (unranked && kind == pinpriq_proto::task::StateKind::Ready)
            });
            stuck.map(|task| crate::sim::client::id_text(&task.id)).take(100).collect()
        };
        if !never_selected.is_empty() {
            let ids: Vec<&[u8]> = never_selected.iter().map(Vec::as_slice).collect();
            self.request(&Command::Kill { queue, ids: &ids });
        }
    }

    /// Lets a queue hand out as much as it has, in any order.
    fn lift_limits(&mut self, name: &Name) {
        let (is_limited, shares) = {
            let oracle = self.oracle.borrow();
            let own = |home: &&Home| {
                let member = home.lane.as_ref().map(|lane| lane.name.member.to_vec());
                *home.name == *name.queue && member == name.member
            };
            let home = oracle.model.homes.values().find(own);
            let has_turns = home.is_some_and(Home::has_turns);
            let is_rated = home.is_some_and(Home::is_rated);
            let shares = oracle.model.own_shares.values().filter(|own| *own.queue == *name.queue);
            let shares = shares.filter(|_| name.member.is_none());
            let shares: Vec<Vec<u8>> = shares.map(|own| own.share.to_vec()).collect();
            (is_rated || has_turns, shares)
        };
        let change =
            ShareChange { weight: Some(1), limit: Some(Own::Default), rate: Some(Own::Default) };
        for share in &shares {
            self.request(&QueueCommand::Share { queue: &name.queue, share, change }.into());
        }
        if is_limited {
            let later = SETTINGS.into_iter().filter(|it| it.tag > COSTMAX.tag);
            let none = |it: &'static Setting| (it, it.usual());
            let settings: Vec<_> =
                [(RATE, Value::None)].into_iter().chain(later.map(none)).collect();
            let (queue, settings) = (name.borrow(), &settings[..]);
            self.request(&QueueCommand::Set { queue, settings }.into());
        }
    }

    /// Makes a request of the one client that is left.
    fn request(&mut self, command: &Command<'_>) {
        self.keep_clients();
        let at = self.clients.iter().position(|client| client.door == DoorName::Resp);
        let Some(at) = at else { panic!("there is a client to the last") };
        self.clients[at].ask(Request::Resp(Ask::of(command)), &mut self.oracle.borrow_mut());
        self.operations += 1;
        self.serve(at);
        self.pump();
        self.serve(at);
    }

    fn check_empty(&mut self) {
        assert!(self.gate.load(Ordering::Relaxed), "the disk answers");
        for _ in 0..40 {
            self.clocks.advance(Span::from_ms(60));
            self.tick();
        }
        let Some(sim) = &self.sim else { panic!("the server runs to the last") };
        let (present, figures) = sim.inspect(self.shard(), |durable| {
            let engine = durable.engine();
            engine.check();
            (engine.totals().in_any_state(), durable.figures())
        });
        assert_eq!(present, 0, "nothing is left");
        assert!(
            figures.bytes_used <= self.most_bytes_used(figures.bytes_live),
            "an empty server keeps {} bytes of journal",
            figures.bytes_used
        );
        // Three spares, and one segment that is about to become one.
        let most = self.most_bytes_used(0) + self.knobs.segment_bytes;
        let most = most + self.bytes_for_archive(figures.segments);
        let used = self.disk.used();
        assert!(
            used <= most,
            "an empty server keeps {used} bytes, {figures:?}: {}",
            self.file_sizes()
        );
    }
}
