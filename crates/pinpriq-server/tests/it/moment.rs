//! Requests that came together happen at one moment, however long they take.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use pinpriq_proto::limits::Limits;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_server::clock::Clock;
use pinpriq_server::config::{Config, DoorName};
use pinpriq_server::parts::{Asked, Witness};
use pinpriq_store::{Durable, MemoryStore};
use pinpriq_testing::server::Simulation;

use crate::world::START;

/// A clock that goes on by a millisecond each time that it is read.
struct RestlessClock(Cell<Timestamp>);

impl Clock for RestlessClock {
    fn now(&self) -> Timestamp {
        self.0.set(self.0.get().after(Span::from_ms(1)));
        self.0.get()
    }

    fn ahead_of_wall(&self) -> i64 {
        0
    }

    fn until(&self, _at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(std::future::pending())
    }
}

/// Notes the moment of each command.
#[derive(Default)]
struct Moments(RefCell<Vec<Timestamp>>);

impl Witness for Moments {
    fn sees(&self, now: Timestamp, _durable: &Durable, asked: &Asked<'_>) {
        if let Asked::Command(..) = asked {
            self.0.borrow_mut().push(now);
        }
    }
}

#[test]
fn requests_read_together_share_a_moment() {
    let store = Box::new(MemoryStore::new());
    let (durable, _) = Durable::open(store, Limits::default(), START, 1).unwrap();
    let clock: Rc<dyn Clock> = Rc::new(RestlessClock(Cell::new(START)));
    let moments = Rc::new(Moments::default());
    let mut server = Simulation::new(durable, &Config::default(), &clock, Some(moments.clone()));
    let client = server.connect(DoorName::Resp);
    let (first, second) = (b"PUT jobs 1\r\nTAKE jobs\r\nPUT jobs 2\r\n", b"PUT jobs 3\r\n");
    server.feed(client, first);
    server.feed(client, second);
    let moments = moments.0.borrow();
    let [one, two, three, later] = moments[..] else { panic!("{moments:?}") };
    assert_eq!((one, one), (two, three));
    assert!(later > three, "{moments:?}");
}
