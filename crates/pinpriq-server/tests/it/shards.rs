//! Several shards without sockets and threads: in which order requests are done, how much is under
//! way between shards, and what becomes of it when a connection ends.

use std::rc::Rc;

use pinpriq_proto::limits::Limits as EngineLimits;
use pinpriq_proto::task::ClientId;
use pinpriq_server::clock::Clock;
use pinpriq_server::config::{Config, DoorName, Limits};
use pinpriq_store::shards::{first_number, shard_of};
use pinpriq_store::{Durable, MemoryStore};
use pinpriq_testing::server::Simulation;

use crate::client::{named_bytes, push_bytes};
use crate::manual_clock::ManualClock;
use crate::world::START;

/// A server to whose first shard everybody connects. A client that names a queue of it first stays
/// there.
struct Several {
    sim: Simulation,
    /// A queue that lives in the first shard, and one that lives in the last.
    here: String,
    away: String,
}

impl Several {
    fn start(shards: usize, limits: Limits) -> Self {
        let open = |shard| {
            let store = Box::new(MemoryStore::new().numbering_after(first_number(shard)));
            let bytes_max = limits.task_bytes_max;
            let limits = EngineLimits { bytes_max, ..EngineLimits::default() };
            (Durable::open(store, limits, START, 1).unwrap().0, None)
        };
        let clock: Rc<dyn Clock> = Rc::new(ManualClock::at(START));
        let config = Config { limits, ..Config::default() };
        let sim = Simulation::of_shards((0..shards).map(open).collect(), &config, &clock);
        let queue_in = |shard| {
            let names = (0..).map(|number| format!("q{number}"));
            names.into_iter().find(|name| shard_of(name.as_bytes(), shards) == shard).unwrap()
        };
        Self { sim, here: queue_in(0), away: queue_in(shards - 1) }
    }

    /// A new client whose connection stays in the first shard.
    fn client(&mut self, door: DoorName) -> ClientId {
        let client = self.sim.connect(door);
        let here = self.here.clone();
        match door {
            DoorName::Resp | DoorName::RespCluster => {
                self.send(client, format!("POP {here}\r\n").as_bytes());
            }
            DoorName::Http | DoorName::Beanstalkd => unreachable!("no client speaks that here"),
            DoorName::Pinpriq => self.send(client, &named_bytes(b'P', here.as_bytes())),
        }
        self.read(client, usize::MAX);
        client
    }

    /// Bytes of a client arrive, and whatever follows from them happens.
    fn send(&mut self, client: ClientId, bytes: &[u8]) {
        assert!(self.sim.reads_from(client));
        self.sim.feed(client, bytes);
        self.sim.run();
    }

    /// The client reads up to this many bytes of its answers.
    fn read(&mut self, client: ClientId, most: usize) -> String {
        let mut bytes = Vec::new();
        while bytes.len() < most && self.sim.drain(client, most - bytes.len(), &mut bytes) > 0 {
            self.sim.run();
        }
        String::from_utf8(bytes).unwrap()
    }

    /// A new client makes a request and reads the answer.
    fn ask(&mut self, request: &str) -> String {
        let client = self.sim.connect(DoorName::Resp);
        self.send(client, request.as_bytes());
        let answer = self.read(client, usize::MAX);
        self.sim.cut(client);
        self.sim.run();
        answer
    }
}

#[test]
fn a_connection_is_served_where_the_first_queue_lives_that_it_names() {
    let mut several = Several::start(3, Limits::default());
    let (here, away) = (several.here.clone(), several.away.clone());
    for (requests, shard) in [
        ("PING\r\n".to_owned(), 0),
        (format!("POP {here}\r\nPOP {away}\r\n"), 0),
        (format!("POP {away}\r\nPOP {here}\r\n"), 2),
        // What was said before holds, and nothing is done twice or left out.
        (format!("HELLO 3 SETNAME me\r\nPUT {away} once\r\nPUT {here} once\r\n"), 2),
        // It has something under way in other shards, or credit.
        (format!("BEAT m\r\nPOP {away}\r\n"), 0),
        (format!("CREDIT 1\r\nPOP {away}\r\n"), 0),
        // Requests with queues of two shards are refused.
        (format!("POP {here} {away}\r\n"), 0),
    ] {
        let answers = several.ask(&format!("{requests}CLIENT LIST\r\n"));
        assert!(answers.contains(&format!(" shard={shard}\n")), "{requests:?}: {answers:?}");
        assert_eq!(answers.contains("name=me "), requests.contains("SETNAME"), "{answers:?}");
    }
    let stats = several.ask("STATS\r\n");
    assert!(stats.contains("put\r\n:2\r\n"), "{stats:?}");
}

#[test]
fn nothing_is_done_behind_a_request_that_is_blocked_in_another_shard() {
    let mut several = Several::start(2, Limits::default());
    let client = several.client(DoorName::Resp);
    let (here, away) = (several.here.clone(), several.away.clone());
    let requests = format!("POP {away} WAIT 1000\r\nPUT {here} later\r\n");
    several.send(client, requests.as_bytes());
    let pop = format!("POP {here}\r\n");
    assert!(!several.ask(&pop).contains("later"), "the PUT went before the POP");
    several.ask(&format!("PUT {away} first\r\n"));
    assert!(several.read(client, usize::MAX).contains("first"));
    assert!(several.ask(&pop).contains("later"));
}

#[test]
fn a_connection_has_only_so_much_under_way_to_a_shard() {
    const BYTES: usize = 60_000;
    let mut several = Several::start(2, Limits::default());
    let client = several.client(DoorName::Pinpriq);
    several.sim.set_deaf(1, true);
    let push = push_bytes(several.away.as_bytes(), 60_000, 1, b"k", &vec![7; BYTES]);
    let mut pushed = 0;
    while pushed < 100 && several.sim.reads_from(client) {
        several.send(client, &push);
        pushed += 1;
    }
    assert!((4..8).contains(&pushed), "{pushed} pushes are under way");
    several.sim.set_deaf(1, false);
    several.sim.run();
    assert!(several.sim.reads_from(client), "there is room again");
    let present = several.sim.inspect(1, |durable| durable.engine().totals().present());
    assert_eq!(present, pushed);
}

#[test]
fn what_comes_in_vain_before_a_reset_goes_back() {
    // Both shards have nothing, so that both may deliver for the one credit.
    for mode in ["", " TTR 90000"] {
        let mut several = Several::start(2, Limits::default());
        let client = several.client(DoorName::Resp);
        let (here, away) = (several.here.clone(), several.away.clone());
        let subscribe =
            format!("HELLO 3\r\nSUBSCRIBE QUEUES 2 {here} {away}{mode}\r\nCREDIT 1\r\n");
        several.send(client, subscribe.as_bytes());
        several.read(client, usize::MAX);
        let putter = several.client(DoorName::Resp);
        several.sim.set_deaf(0, true);
        several.send(putter, format!("PUT {here} here\r\nPUT {away} away\r\n").as_bytes());
        several.sim.feed(client, b"RESET\r\nPING\r\n");
        several.sim.set_deaf(0, false);
        several.sim.run();
        assert_eq!(several.read(client, usize::MAX), "+RESET\r\n+PONG\r\n", "{mode}");
        for queue in [here, away] {
            assert_eq!(several.ask(&format!("POP {queue}\r\n")).matches('*').count(), 2, "{mode}");
        }
    }
}

#[test]
fn what_was_sent_before_the_end_is_done_once_there_is_room() {
    const BYTES: usize = 60_000;
    for shards in [1, 2] {
        let limits = Limits { task_bytes_max: 2 * BYTES as u64, ..Limits::default() };
        let mut several = Several::start(shards, limits);
        let client = several.client(DoorName::Pinpriq);
        let push = push_bytes(several.away.as_bytes(), 60_000, 1, b"k", &vec![b'x'; BYTES]);
        several.send(client, &push);
        several.send(client, &push);
        several.sim.end_input(client);
        several.sim.run();
        let pop = format!("POP {}\r\n", several.away);
        for popped in 0..2 {
            let answer = several.ask(&pop);
            assert!(answer.len() > BYTES, "{popped} of 2 pushes were done, with {shards} shards");
        }
        assert!(!several.sim.is_connected(client), "nothing is left to be done");
    }
}

#[test]
fn popped_tasks_that_were_not_sent_go_back_whatever_was_answered_behind() {
    for shards in [1, 2] {
        let mut several = Several::start(shards, Limits::default());
        let client = several.client(DoorName::Resp);
        let away = several.away.clone();
        let requests = format!("PUT {away} payload\r\nPOP {away}\r\nBEAT m LEASE soon\r\n");
        several.send(client, requests.as_bytes());
        let answer = several.read(client, 26);
        assert!(answer.contains("*1"), "the POP is not answered: {answer:?}");
        several.sim.cut(client);
        several.sim.run();
        let answer = several.ask(&format!("POP {away}\r\n"));
        assert!(answer.contains("payload"), "the task is lost, with {shards} shards");
    }
}

#[test]
fn a_member_that_leaves_and_joins_again_is_there() {
    for shards in [1, 2] {
        let mut several = Several::start(shards, Limits::default());
        let client = several.client(DoorName::Resp);
        for topic in [several.here.clone(), several.away.clone()] {
            let join = format!("JOIN {topic} m LEASE 1000\r\n");
            several.send(client, format!("{join}LEAVE m\r\n{join}").as_bytes());
            let answers = several.read(client, usize::MAX);
            let members = several.ask(&format!("MEMBERS {topic}\r\n"));
            assert!(members.contains("member"), "{answers:?}, {members:?}, {shards} shards");
        }
    }
}

#[test]
fn who_ends_its_own_connection_is_answered_and_gone() {
    for shards in [1, 2] {
        let mut several = Several::start(shards, Limits::default());
        let client = several.client(DoorName::Resp);
        let requests = format!("CLIENT KILL ID {}\r\nPUT {} x\r\n", client.0, several.here);
        several.send(client, requests.as_bytes());
        assert_eq!(several.read(client, usize::MAX), ":1\r\n", "{shards} shards");
        assert!(!several.sim.is_connected(client), "{shards} shards");
    }
}

#[test]
fn what_was_pushed_stays_when_the_connection_breaks_at_once() {
    for shards in [1, 2] {
        let mut several = Several::start(shards, Limits::default());
        let client = several.client(DoorName::Pinpriq);
        let push = push_bytes(several.away.as_bytes(), 60_000, 1, b"k", b"x");
        several.sim.feed(client, &push);
        several.sim.cut(client);
        several.sim.run();
        let present =
            several.sim.inspect(shards - 1, |durable| durable.engine().totals().present());
        assert_eq!(present, 1, "{shards} shards");
    }
}
