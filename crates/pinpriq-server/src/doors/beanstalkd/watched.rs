//! The tubes that one connection watches, in the order that beanstalkd lists them in.

use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::time::Timestamp;

use super::{DEFAULT, Shared};
use crate::session::kept::{Kept, Share};

/// The tubes from which a connection reserves: at least one, each once.
pub(super) struct Watched {
    tubes: Vec<Rc<[u8]>>,
    /// What they count among all that connections keep.
    kept: Share,
    bytes: usize,
}

/// What a watched tube counts in addition to its name, here and among the tubes of all
/// connections. An estimate.
const TUBE_OVERHEAD_BYTES: usize = 128;

impl Watched {
    /// Returns the tubes of a connection that has just begun: `default`.
    pub(super) fn begin(shared: &Shared, kept: &Arc<Kept>) -> Self {
        shared.watch(DEFAULT, Timestamp::ZERO);
        let bytes = bytes_of(DEFAULT);
        Self { tubes: vec![DEFAULT.into()], kept: kept.share(), bytes }
    }

    /// Returns the tubes, in order.
    pub(super) fn tubes(&self) -> &[Rc<[u8]>] {
        &self.tubes
    }

    /// Returns about how many bytes they occupy.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a tube, if it is not there, fewer than `most` are, and connections may keep more.
    /// Returns whether it is there now.
    pub(super) fn add(
        &mut self,
        tube: &[u8],
        now: Timestamp,
        (most, shared): (usize, &Shared),
    ) -> bool {
        if self.tubes.iter().any(|it| **it == *tube) {
            return true;
        }
        if self.tubes.len() >= most {
            return false;
        }
        self.count(self.bytes + bytes_of(tube));
        if self.kept.is_too_much() {
            self.count(self.bytes - bytes_of(tube));
            return false;
        }
        shared.watch(tube, now);
        self.tubes.push(tube.into());
        true
    }

    /// Removes a tube, if it is there and not the only one. The last one takes its place, as in
    /// beanstalkd. Returns whether it is not there now.
    pub(super) fn remove(&mut self, tube: &[u8], shared: &Shared) -> bool {
        let Some(at) = self.tubes.iter().position(|it| **it == *tube) else { return true };
        if self.tubes.len() == 1 {
            return false;
        }
        shared.unwatch(tube);
        self.tubes.swap_remove(at);
        self.count(self.bytes - bytes_of(tube));
        true
    }

    /// Stops watching.
    pub(super) fn end(&mut self, shared: &Shared) {
        self.tubes.drain(..).for_each(|tube| shared.unwatch(&tube));
        self.count(0);
    }

    fn count(&mut self, bytes: usize) {
        self.bytes = bytes;
        self.kept.set(bytes);
    }
}

const fn bytes_of(tube: &[u8]) -> usize {
    tube.len() + TUBE_OVERHEAD_BYTES
}
