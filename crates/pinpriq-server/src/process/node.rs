//! A node of a cluster from its configuration to its orderly end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::TcpListener as StdListener;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_cluster::ownership::{Order, Ownership, OwnershipOptions};
use pinpriq_cluster::{Addresses, Instance, NodeRecord};
use pinpriq_proto::time::Span;
use pinpriq_store::ledger::Writer;
use pinpriq_tls::NodeKey;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::LocalSet;

use super::access::{self, Access};
use super::hosting::Hosting;
use super::http::HttpDoor;
use super::place::{Common, Company};
use super::server::{accept_all, addresses_of, take};
use super::serving::Context;
use super::signals::Signals;
use super::sockets::Port;
use crate::clock::{Clock as _, SystemClock, steady_ms};
use crate::cluster::clocks::ClockWatch;
use crate::cluster::config::ClusterConfig;
use crate::cluster::data::NodeData;
use crate::cluster::exchange::{Carrier, Exchange};
use crate::cluster::founding::found;
use crate::cluster::memory::NodeMemory;
use crate::cluster::rollback::{Reporter, on_threads};
use crate::cluster::terms::end_of;
use crate::config::{Config, DoorName};
use crate::error::ServeError;
use crate::facts::cluster::Report;
use crate::letters::letter::HostNews;
use crate::links::network::{End, Network, NetworkEvent, NetworkOptions, Record};
use crate::random::random;
use crate::runtime::runtime;
use crate::stop::Stop;

/// The longest time between two looks at what is due, in milliseconds.
const LOOK_MS: u64 = 100;

/// How long an orderly end may take until all shards are handed over, in milliseconds.
const HAND_OVER_MS: u64 = 10_000;

/// Why a node has no backups.
const NO_BACKUPS: &str = "a cluster keeps its tasks in its engine, which has backups of its own; \
    `pinpriq cluster export` writes a data directory from it";

/// Runs a node until SIGTERM or SIGINT stops it. Blocks.
pub fn run_node(config: Config, cluster: ClusterConfig) -> Result<(), ServeError> {
    let runtime = runtime().map_err(|source| ServeError::Runtime { source })?;
    LocalSet::new().block_on(&runtime, async {
        let leave = Stop::default();
        let signals = Signals::listen(&leave)?;
        let node = Node::open(config, cluster, leave.clone()).await?;
        let common = node.context.common.clone();
        tokio::task::spawn_local(signals.heed(leave, common));
        node.run().await
    })
}

/// A node that has its sockets and knows its cluster.
struct Node {
    context: Rc<Context>,
    listeners: Vec<(Port, TcpListener)>,
    control: Control,
    stop: Stop,
    config: Arc<Config>,
}

/// What decides about shards and carries it out.
struct Control {
    ownership: Ownership,
    hosting: Hosting,
    exchange: Rc<Exchange>,
    network: Rc<Network>,
    memory: NodeMemory,
    /// What hosts have said since the last turn.
    heard: Heard,
    bell: Arc<Notify>,
    leave: Stop,
    clock: Rc<SystemClock>,
    clocks: ClockWatch,
}

/// Notes what the host of a shard says.
type Tell = Box<dyn Fn(usize, &HostNews)>;

/// What the hosts of shards have said.
type Heard = Rc<RefCell<VecDeque<(usize, HostNews)>>>;

/// Returns what is heard of the hosts, and what notes and announces it.
fn hearing(bell: Arc<Notify>) -> (Heard, Tell) {
    let heard = Heard::default();
    let noted = heard.clone();
    let tell = Box::new(move |shard: usize, news: &HostNews| {
        noted.borrow_mut().push_back((shard, news.clone()));
        bell.notify_one();
    });
    (heard, tell)
}

impl Node {
    async fn open(config: Config, cluster: ClusterConfig, leave: Stop) -> Result<Self, ServeError> {
        let access = Access::open(&config)?;
        let taken = take(&config)?;
        let link = StdListener::bind(cluster.link)
            .map_err(|source| ServeError::Bind { address: cluster.link, source })?;
        let bell = Arc::new(Notify::new());
        let wake = {
            let bell = bell.clone();
            Arc::new(move || bell.notify_one())
        };
        let data = cluster.data.as_deref().map(|data| NodeData::open(data, draw().0));
        let data = data.transpose()?;
        let mut registry = cluster.engine.registry(cluster.session_ttl, wake);
        let clock = Rc::new(SystemClock::starting_at(SystemClock::wall()));
        let with = (&*bell, &*clock);
        let meta = found(&mut *registry, cluster.shards, data.as_ref(), with).await?;
        let reporter = Reporter {
            engine: cluster.engine.clone(),
            session_ttl: cluster.session_ttl,
            node: cluster.node.clone(),
            elsewhere: on_threads(),
        };
        let memory = NodeMemory::open(reporter, data, &meta).await?;
        let shards = usize::from(meta.shards);
        let stop = Stop::default();
        let company = Company { access, ..Company::of(&config) };
        let common = Common::of_cluster(shards, stop.clone(), company);
        let context = Context::behind_shards(&config, common.clone(), clock.another())
            .map_err(|source| ServeError::Failed { source })?;
        let listeners = taken.into_iter().map(|(port, taken)| Ok((port, taken.listen()?)));
        let listeners: Vec<_> = listeners.collect::<Result<_, ServeError>>()?;
        let instance = draw();
        // Without a directory, each process counts as another node of its name.
        let data_id = memory.data().map_or_else(|| draw().0, NodeData::id);
        let key = new_key()?;
        let record = NodeRecord {
            fingerprint: Some(key.fingerprint()),
            ..record(&cluster, (instance, data_id), &listeners, &link)?
        };
        let network = network((link, key), instance, &cluster, clock.clone())?;
        let (heard, tell) = hearing(bell.clone());
        let carrier = Box::new(network.0.clone());
        let exchange = Exchange::new(context.shard().clone(), carrier, tell);
        network.1.borrow_mut().replace(exchange.clone());
        if let Some(owners) = exchange.owners() {
            owners.note_engine(cluster.administer.clone());
        }
        context.connect_with(exchange.clone());
        let ttl_ms = u64::try_from(cluster.session_ttl.as_millis()).unwrap_or(u64::MAX);
        let options = OwnershipOptions::new(ttl_ms, meta.shards);
        let ownership = Ownership::new(registry, record, options, Box::new(draw));
        let (writer, config) = (Writer(instance.0), Arc::new(config));
        let (engine, kept) = (cluster.engine.clone(), memory.watermarks());
        let hosting = Hosting::new(config.clone(), common, (engine, kept), (writer, ttl_ms));
        let network = network.0;
        let clocks = ClockWatch::new(ttl_ms);
        let control = Control {
            ownership,
            hosting,
            exchange,
            network,
            memory,
            heard,
            bell,
            leave,
            clock,
            clocks,
        };
        control.exchange.note_nodes(&control.ownership);
        Ok(Self { context, listeners, control, stop, config })
    }

    async fn run(self) -> Result<(), ServeError> {
        let Self { context, listeners, control, stop, config } = self;
        context.common.note_addresses(&addresses_of(&listeners));
        let has_http = listeners.iter().any(|(port, _)| port.door == DoorName::Http);
        let http = has_http.then(|| HttpDoor::open(&context, &config, Err(NO_BACKUPS)));
        access::watch(&context);
        let audit = context.common.access.audit.clone();
        let watch = config.watch;
        let accepting: Vec<_> = listeners
            .into_iter()
            .map(|(port, listener)| {
                let (context, http) = (context.clone(), http.clone());
                tokio::task::spawn_local(async move {
                    match (port.door, http) {
                        (DoorName::Http, Some(http)) => {
                            http.accept_all(&context, &listener, port).await;
                        }
                        _ => accept_all((&context, watch), &listener, port).await,
                    }
                })
            })
            .collect();
        let outcome: Rc<RefCell<Result<(), ServeError>>> = Rc::new(RefCell::new(Ok(())));
        let served = {
            let (stop, outcome) = (stop.clone(), outcome.clone());
            async move {
                *outcome.borrow_mut() = control.run().await;
                stop.ask();
                for task in accepting {
                    task.abort();
                    let _ = task.await;
                }
            }
        };
        let ended = context.serve(served).await.map_err(|source| ServeError::Failed { source });
        let outcome = outcome.replace(Ok(()));
        if let Some(audit) = audit {
            audit.finish();
        }
        if outcome.is_ok() && ended.is_ok() {
            tracing::info!("stopped");
        }
        outcome.and(ended)
    }
}

impl Control {
    /// Serves what this node ought to serve, until it is asked to leave and all is handed over.
    async fn run(mut self) -> Result<(), ServeError> {
        let mut left_at = None;
        loop {
            let now = steady_ms();
            let reports: Vec<_> = self.heard.borrow_mut().drain(..).collect();
            for (shard, news) in reports {
                self.report(shard, &news).await?;
            }
            if left_at.is_none() && self.leave.is_asked_for() {
                tracing::info!("handing over");
                self.ownership.drain();
                left_at = Some(now);
            }
            for log in self.hosting.logs() {
                self.exchange.note_log(log);
                let Ok(shard) = u16::try_from(log.shard) else { continue };
                self.ownership.note_suspended(shard, log.is_suspended);
            }
            self.clocks.look(now, &self.exchange, &mut self.ownership);
            let orders = self.ownership.turn(now);
            let meta = self.ownership.view().meta.as_ref();
            if let Some(why) = self.memory.heed(meta, self.ownership.has_session()).await? {
                self.exchange.refuse_waiting(&why);
            }
            for order in orders {
                self.obey(order)?;
            }
            let silent_ms = self.ownership.registry_silent_for(now);
            if let Some(owners) = self.exchange.owners() {
                let (counters, clock_off_ms) = (self.ownership.counters(), self.clocks.off_ms());
                owners.note_report(Report { counters, silent_ms, clock_off_ms });
            }
            self.exchange.give_up_waiting(silent_ms);
            let is_late = left_at.is_some_and(|at| now >= at + HAND_OVER_MS);
            if left_at.is_some() && self.ownership.is_drained() || is_late {
                self.ownership.leave();
                if self.ownership.has_left() || is_late {
                    return Ok(());
                }
            }
            let due = self.ownership.poll_timeout().unwrap_or(u64::MAX);
            let pause = Span::from_ms(due.saturating_sub(now).clamp(1, LOOK_MS));
            tokio::select! {
                () = self.bell.notified() => {}
                () = self.clock.until(self.clock.now().after(pause)) => {}
            }
        }
    }

    async fn report(&mut self, shard: usize, news: &HostNews) -> Result<(), ServeError> {
        self.hosting.note(shard, news);
        let Ok(number) = u16::try_from(shard) else { return Ok(()) };
        match news {
            HostNews::Serves(term) => self.ownership.note_serving(number, *term),
            HostNews::Released => {
                tracing::info!(shard, "released");
                self.ownership.note_released(number);
            }
            HostNews::Failed(failure) => {
                let end = end_of(failure);
                tracing::warn!(shard, %failure, "the host of a shard has ended");
                self.memory.face(number, failure).await?;
                self.ownership.note_failed(number, end);
            }
        }
        Ok(())
    }

    fn obey(&mut self, order: Order) -> Result<(), ServeError> {
        match order {
            Order::Host(shard) => {
                self.hosting.start(usize::from(shard), self.memory.generation());
            }
            Order::Release(shard) => self.hosting.release(usize::from(shard)),
            // The host ends anyway, and reports that.
            Order::Resume(_) => {}
            Order::Refresh => {
                let own = self.ownership.node().instance;
                self.network.set_own(own.0);
                let nodes = self.ownership.view().nodes.iter();
                let others = nodes.filter(|node| node.instance != own);
                let peers = others.map(|it| (it.instance.0, peer(it)));
                self.network.set_peers(peers.collect());
                self.exchange.note_nodes(&self.ownership);
            }
            Order::GiveUp(why) => return Err(ServeError::Cluster { why }),
        }
        Ok(())
    }
}

/// Returns what this node says about itself.
fn record(
    cluster: &ClusterConfig,
    (instance, data): (Instance, u128),
    listeners: &[(Port, TcpListener)],
    link: &StdListener,
) -> Result<NodeRecord, ServeError> {
    let announced = |port: u16| format!("{}:{port}", cluster.announce);
    let of_door = |door: DoorName| {
        let listener = listeners.iter().find(|(own, _)| *own == Port { door, is_encrypted: false });
        let address = listener.and_then(|(_, listener)| listener.local_addr().ok());
        address.map_or_else(String::new, |address| announced(address.port()))
    };
    let link = link.local_addr().map_err(|source| ServeError::Runtime { source })?;
    tracing::info!(door = "link", address = %link, "listening");
    Ok(NodeRecord {
        instance,
        name: cluster.node.clone(),
        data,
        addresses: Addresses {
            link: cluster.announce_link.clone().unwrap_or_else(|| announced(link.port())),
            resp: of_door(DoorName::Resp),
            resp_cluster: of_door(DoorName::RespCluster),
            pinpriq: of_door(DoorName::Pinpriq),
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..NodeRecord::default()
    })
}

fn new_key() -> Result<NodeKey, ServeError> {
    NodeKey::generate().map_err(|error| ServeError::Runtime { source: io::Error::other(error) })
}

/// Returns what the links need to know of another node.
fn peer(node: &NodeRecord) -> Record {
    Record {
        node: node.name.clone(),
        address: node.addresses.link.clone(),
        fingerprint: node.fingerprint,
    }
}

/// The exchange, once there is one.
type Later = Rc<RefCell<Option<Rc<Exchange>>>>;

/// Starts the links to other nodes.
fn network(
    (listener, key): (StdListener, NodeKey),
    own: Instance,
    cluster: &ClusterConfig,
    clock: Rc<SystemClock>,
) -> Result<(Rc<Network>, Later), ServeError> {
    let later: Later = Rc::default();
    let options =
        NetworkOptions { listener, own: own.0, key, session_ttl: cluster.session_ttl, clock };
    let events = {
        let later = later.clone();
        Rc::new(move |event| {
            if let Some(exchange) = later.borrow().as_ref() {
                hear(exchange, event);
            }
        })
    };
    let network = Network::start(options, events);
    Ok((network.map_err(|source| ServeError::Runtime { source })?, later))
}

fn hear(exchange: &Exchange, event: NetworkEvent) {
    match event {
        NetworkEvent::Up(node) => exchange.link_up(node),
        NetworkEvent::Down(node) => exchange.link_down(node),
        NetworkEvent::Came { id, .. } => exchange.asker_came(id),
        NetworkEvent::Gone(id) => exchange.asker_gone(id),
        NetworkEvent::Message { from, body } => {
            exchange.hear(from, &body);
        }
    }
}

impl Carrier for Rc<Network> {
    fn send(&self, to: End, body: &[u8]) {
        Network::send(self, to, body);
    }
}

/// Draws an instance that was not drawn before.
fn draw() -> Instance {
    Instance(u128::from(random()) << 64 | u128::from(random()))
}
