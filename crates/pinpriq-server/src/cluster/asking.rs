//! Asks the registry of a cluster without a session, for tools. Blocks.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use pinpriq_cluster::{RegistryAnswer, RegistryCall};

use super::config::ClusterEngine;

/// Asks the registry of a cluster once, beside whatever else is asked of it. Returns none if the
/// thread of the engine has ended. Blocks for as long as the engine takes, and must not be called
/// on a thread of an async runtime. `session_ttl` bounds the answer, and opens no session.
pub fn ask_registry<E: ClusterEngine + ?Sized>(
    engine: &E,
    session_ttl: Duration,
    call: RegistryCall,
) -> Option<RegistryAnswer> {
    let (wake, woken) = sync_channel(1);
    let wake = Arc::new(move || {
        // There is one answer, and room for one.
        _ = wake.try_send(());
    });
    let mut registry = engine.registry(session_ttl, wake);
    registry.start(call);
    woken.recv().ok().and_then(|()| registry.poll())
}
