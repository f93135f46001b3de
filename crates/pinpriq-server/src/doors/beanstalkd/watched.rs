//! The tubes that one connection watches, in the order that beanstalkd lists them in.

use pinpriq_engine::time::Timestamp;

use super::{DEFAULT, Shared};

/// The tubes from which a connection reserves: at least one, each once.
pub(super) struct Watched(Vec<Box<[u8]>>);

impl Watched {
    /// Returns the tubes of a connection that has just begun: `default`.
    pub(super) fn begin(shared: &Shared) -> Self {
        shared.watch(DEFAULT, Timestamp::ZERO);
        Self(vec![DEFAULT.into()])
    }

    /// Returns the tubes, in order.
    pub(super) fn tubes(&self) -> &[Box<[u8]>] {
        &self.0
    }

    /// Adds a tube, if it is not there and fewer than `most` are. Returns whether it is there now.
    pub(super) fn add(
        &mut self,
        tube: &[u8],
        now: Timestamp,
        (most, shared): (usize, &Shared),
    ) -> bool {
        if self.0.iter().any(|it| **it == *tube) {
            return true;
        }
        if self.0.len() >= most {
            return false;
        }
        shared.watch(tube, now);
        self.0.push(tube.into());
        true
    }

    /// Removes a tube, if it is there and not the only one. The last one takes its place, as in
    /// beanstalkd. Returns whether it is not there now.
    pub(super) fn remove(&mut self, tube: &[u8], shared: &Shared) -> bool {
        let Some(at) = self.0.iter().position(|it| **it == *tube) else { return true };
        if self.0.len() == 1 {
            return planted!(LastTubeIgnored);
        }
        shared.unwatch(tube);
        self.0.swap_remove(at);
        true
    }

    /// Watches nothing any more.
    pub(super) fn end(&mut self, shared: &Shared) {
        self.0.drain(..).for_each(|tube| shared.unwatch(&tube));
    }
}
