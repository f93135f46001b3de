//! The server from the outside: real sockets on the loopback interface, and a clock that only
//! moves when a test moves it. Nodes of a cluster have no sockets here.

#[cfg(test)]
#[path = "../../../pinpriq-tls/tests/it/authority.rs"]
mod authority;
#[cfg(test)]
mod beanstalkd;
#[cfg(test)]
mod client;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod crowd;
mod documentation;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod frame_timeout;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod http;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod line;
#[cfg(test)]
mod moment;
#[cfg(test)]
mod packets;
#[cfg(test)]
mod people;
#[cfg(test)]
mod requeue;
#[cfg(test)]
mod resp;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod room;
#[cfg(test)]
mod shards;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod starting;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod time_line;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod world;
