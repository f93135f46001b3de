//! A place that has connections and no shard.

use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::time::Timestamp;
use pinpriq_store::durable::Loading;
use pinpriq_store::{MemoryStore, StoreError};
use tokio::sync::Notify;

use super::opening::engine_limits;
use super::serving::{Common, Context};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::random::random;

/// Returns the place behind the shards. It has no queues of its own. Time begins with `now`.
pub(crate) fn home(
    config: &Config,
    common: &Arc<Common>,
    now: Timestamp,
) -> Result<Rc<Context>, StoreError> {
    let store = Box::new(MemoryStore::after(0));
    let loading = Loading::load(store, engine_limits(config, 1), random())?;
    let incarnation = loading.loaded().header.incarnation + 1;
    let durable = loading.begin(now, incarnation)?;
    let clock = Rc::new(SystemClock::starting_at(now));
    let own = common.sharding.shards();
    let bell = Arc::new(Notify::new());
    Ok(Context::new(own, (config, common.clone()), (durable, bell), clock))
}
