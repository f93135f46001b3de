//! The start of a server: which addresses it gets, when clients can connect, and how a start that
//! is given up ends.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::rc::Rc;

use pinpriq_server::clock::Clock;
use pinpriq_server::config::{Config, DoorName, Durability, Listener, UsersFrom};
use pinpriq_server::{ServeError, Server, Stop};
use pinpriq_store::StoreError;
use pinpriq_store::layout::{Following, FollowingShard, FollowingStart, Phase};
use pinpriq_store::restore::Standby;
use tokio::net::TcpSocket;

use crate::manual_clock::ManualClock;
use crate::people::{People, Person};
use crate::world::{START, World, guard, in_memory, test};

/// A port of the test's own, at which it does not listen. A server can take it too. As long as the
/// socket is there, the system gives the port to no connection.
fn reserved() -> (TcpSocket, SocketAddr) {
    let socket = bound_to(SocketAddr::from(([127, 0, 0, 1], 0)));
    let address = socket.local_addr().unwrap();
    (socket, address)
}

fn bound_to(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket
}

fn on_disk(data: &Path) -> Config {
    Config { data: data.to_owned(), durability: Durability::Sync, ..in_memory() }
}

/// Starts a server that does this when its tasks are loaded, and gives it up again.
async fn start(config: Config, loaded: impl FnOnce()) -> Result<(), ServeError> {
    let clock = |start| -> Rc<dyn Clock> {
        loaded();
        Rc::new(ManualClock::at(start))
    };
    Server::bind_with_clock(config, Stop::default(), (START, 0), clock).await.map(drop)
}

/// All files below a directory.
#[expect(clippy::disallowed_methods, reason = "a test looks from the outside")]
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in directory.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let name = |file: String| format!("{}/{file}", path.display());
            files.extend(self::files(&path).into_iter().map(|(file, bytes)| (name(file), bytes)));
        } else {
            files.insert(path.display().to_string(), std::fs::read(&path).unwrap());
        }
    }
    files
}

/// The same with this address for a door.
fn at(door: DoorName, address: SocketAddr, mut config: Config) -> Config {
    config.listeners.retain(|listener| listener.door != door);
    config.listeners.push(Listener { door, address });
    config
}

#[test]
fn no_one_can_connect_before_the_tasks_are_loaded() {
    for shards in [1, 3] {
        test(async || {
            let (_socket, address) = reserved();
            let config = Config { shards, ..at(DoorName::Resp, address, in_memory()) };
            let stop = Stop::default();
            let clock = |start| -> Rc<dyn Clock> {
                let refused = TcpStream::connect(address).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
                Rc::new(ManualClock::at(start))
            };
            let server =
                Server::bind_with_clock(config, stop.clone(), (START, 0), clock).await.unwrap();
            assert_eq!(server.address(DoorName::Resp), Some(address));
            TcpStream::connect(address).unwrap();
            stop.ask();
            server.run().await.unwrap();
        });
    }
}

/// Asks for a path over HTTP, and returns the whole answer. Blocks.
fn asked(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(guard())).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_server_that_loads_answers_questions_about_health() {
    for shards in [1, 3] {
        test(async || {
            let (_socket, address) = reserved();
            let root = tempfile::tempdir().unwrap();
            let config = at(DoorName::Http, address, on_disk(&root.path().join("data")));
            let config = Config { shards, ..config };
            for expected in ["0 of 0 bytes so far (0 %)", "bytes so far (100 %)"] {
                let clock = |start| -> Rc<dyn Clock> {
                    assert!(asked(address, "/healthz").starts_with("HTTP/1.1 200 OK\r\n"));
                    for path in ["/readyz", "/", "/v1/queues", "/metrics"] {
                        let answer = asked(address, path);
                        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
                        assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
                        assert!(answer.contains("\"code\":\"LOADING\""), "{answer}");
                        assert!(answer.contains(expected), "{answer}");
                    }
                    Rc::new(ManualClock::at(start))
                };
                let stop = Stop::default();
                // Who says nothing does not hold up the start.
                let idle = Cell::new(None);
                let clock = |start| {
                    idle.set(Some(TcpStream::connect(address).unwrap()));
                    clock(start)
                };
                let opened =
                    Server::bind_with_clock(config.clone(), stop.clone(), (START, 0), clock);
                let server = opened.await.unwrap();
                assert_eq!(server.address(DoorName::Http), Some(address));
                let answer = tokio::task::spawn_blocking(move || asked(address, "/readyz"));
                let serving = tokio::task::spawn_local(server.run());
                let answer = answer.await.unwrap();
                assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
                stop.ask();
                serving.await.unwrap().unwrap();
            }
        });
    }
}

/// The timer that the system has running for the server's side of a connection: 2 if it is to be
/// probed when it has been idle for long enough.
#[expect(clippy::disallowed_methods, reason = "the kernel tells it in a file")]
fn timer(server: SocketAddr, client: SocketAddr) -> Option<u8> {
    let hex = |address: SocketAddr| format!("0100007F:{:04X}", address.port());
    let table = String::from_utf8(std::fs::read("/proc/net/tcp").unwrap()).unwrap();
    let line = table.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let ours = fields.next() == Some(&hex(server)) && fields.next() == Some(&hex(client));
        ours.then(|| fields.nth(2).unwrap().to_owned())
    })?;
    line.split(':').next().unwrap().parse().ok()
}

#[test]
fn an_idle_connection_is_going_to_be_probed_through_either_door() {
    test(async || {
        let config = in_memory();
        let stop = Stop::default();
        let server = Server::bind(config, stop.clone()).await.unwrap();
        let doors =
            [server.address(DoorName::Pinpriq).unwrap(), server.address(DoorName::Resp).unwrap()];
        let running = tokio::task::spawn_local(server.run());
        for address in doors {
            let client = tokio::net::TcpStream::connect(address).await.unwrap();
            while timer(address, client.local_addr().unwrap()) != Some(2) {
                tokio::task::yield_now().await;
            }
        }
        stop.ask();
        running.await.unwrap().unwrap();
    });
}

#[test]
fn a_server_beyond_loopback_wants_users() {
    let beyond = SocketAddr::from(([0, 0, 0, 0], 0));
    let beyond_loopback = || at(DoorName::Resp, beyond, in_memory());
    test(async || {
        let refused = start(beyond_loopback(), || ()).await.unwrap_err();
        assert!(matches!(refused, ServeError::Open { address } if address == beyond));
        assert_eq!(refused.exit_code(), 2);
        let told = refused.to_string();
        for way in ["--users", "--password-file", "127.0.0.1", "--insecure-open"] {
            assert!(told.contains(way), "{told}");
        }
        start(Config { insecure_open: true, ..beyond_loopback() }, || ()).await.unwrap();
        let people = People::new(&[Person::new("ana", "put:*")]);
        start(people.at(beyond_loopback()), || ()).await.unwrap();
        // No user could use a door without passwords.
        let wire = || at(DoorName::Pinpriq, beyond, in_memory());
        let refused = start(people.at(wire()), || ()).await.unwrap_err();
        assert!(matches!(refused, ServeError::Anonymous { door: "pinpriq", .. }), "{refused}");
        assert_eq!(refused.exit_code(), 2);
        let people = People::new(&[Person::new("anonymous", "put:*")]);
        start(people.at(wire()), || ()).await.unwrap();
    });
}

#[test]
fn users_that_cannot_be_read_stop_the_start() {
    test(async || {
        let mut people = People::new(&[]);
        people.write_text("[users.ana]\nrules = [\"put\"]\n");
        let refused = start(people.at(in_memory()), || ()).await.unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        assert!(refused.to_string().contains("line 2"), "{refused}");
        let missing = UsersFrom::File(people.folder().join("nowhere.toml"));
        let config = Config { users: Some(missing), ..in_memory() };
        let refused = start(config, || ()).await.unwrap_err();
        assert!(refused.to_string().contains("pinpriq user add"), "{refused}");
    });
}

#[test]
fn an_address_that_is_listened_on_is_refused_before_the_directory_is_touched() {
    test(async || {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        let other = World::plain().await;
        let (_socket, twice) = reserved();
        let configs = [
            (at(DoorName::Pinpriq, other.address, on_disk(&data)), 1),
            (at(DoorName::Resp, other.address, on_disk(&data)), 1),
            // That never ends by itself.
            (at(DoorName::Pinpriq, twice, at(DoorName::Resp, twice, on_disk(&data))), 2),
        ];
        for (config, code) in configs {
            let error = start(config, || {}).await.unwrap_err();
            let is_of_both = matches!(error, ServeError::Twice { .. });
            assert!(is_of_both == (code == 2), "{error}");
            assert!(is_of_both || matches!(error, ServeError::Bind { .. }), "{error}");
            assert_eq!(error.exit_code(), code);
            assert!(!data.exists());
        }
        other.end().await;
    });
}

#[test]
fn who_listens_first_has_the_address_that_two_took() {
    for shards in [1, 3] {
        test(async || {
            let data = tempfile::tempdir().unwrap();
            let (_reserved, address) = reserved();
            let socket = bound_to(address);
            let first = Cell::new(None);
            let config = Config { shards, ..at(DoorName::Pinpriq, address, on_disk(data.path())) };
            let begun = start(config.clone(), || first.set(Some(socket.listen(1).unwrap()))).await;
            let error = begun.unwrap_err();
            assert!(matches!(error, ServeError::Bind { .. }), "{error}");
            assert_eq!(error.exit_code(), 1);
            drop(first.take());
            // No harm was done, once all threads of the other start have ended.
            loop {
                match start(config.clone(), || {}).await {
                    Ok(()) => break,
                    Err(ServeError::Store { source: StoreError::Locked { .. }, .. }) => {}
                    Err(error) => panic!("{error}"),
                }
                tokio::task::yield_now().await;
            }
        });
    }
}

#[test]
fn a_stop_before_the_tasks_are_loaded_ends_the_start_and_changes_nothing() {
    for shards in [1, 3] {
        test(async || {
            let data = tempfile::tempdir().unwrap();
            let config = Config { shards, ..on_disk(data.path()) };
            let world = World::start(config.clone()).await;
            let mut client = world.connect().await;
            for queue in ["a", "b", "c", "d", "e"] {
                client.push(queue, 1, "k", "p").await;
            }
            client.fence().await;
            world.end().await;
            let before = files(data.path());
            let stop = Stop::default();
            stop.ask();
            let error = Server::bind(config.clone(), stop).await.map(drop).unwrap_err();
            assert!(matches!(error, ServeError::Stopped), "{error}");
            assert_eq!(error.exit_code(), 0);
            assert!(files(data.path()) == before);
        });
    }
}

#[test]
fn a_stop_ends_going_on_from_an_archive() {
    test(async || {
        let data = tempfile::tempdir().unwrap();
        let start = FollowingStart::default();
        let (segments, ahead) = (Vec::new(), Vec::new());
        let known = Following {
            format: Following::FORMAT,
            phase: Phase::Following,
            place: "a place".to_owned(),
            line: 1,
            number: 2,
            mark: 3,
            at_ms: 4,
            shards: vec![FollowingShard { start, highest: start, segments, ahead }],
        };
        drop(Standby::begin(data.path(), known).unwrap());
        let before = files(data.path());
        let stop = Stop::default();
        stop.ask();
        let error = Server::bind(on_disk(data.path()), stop).await.map(drop).unwrap_err();
        assert!(matches!(error, ServeError::Stopped), "{error}");
        assert!(files(data.path()) == before);
    });
}
