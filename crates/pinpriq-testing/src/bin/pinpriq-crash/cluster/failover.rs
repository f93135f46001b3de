//! Troubles of PostgreSQL: the standby is gone, or the primary is, or both, with waits cancelled in
//! between. Nothing may be acknowledged that the server which is left does not have.

use std::time::Duration;

use super::load::Load;
use super::postgres::{APPENDS, Postgres};
use super::trouble::{LONG_PAUSE, Stage};
use super::{NODES, SHARDS};
use crate::clock::{Clock, let_pass};
use crate::fault::Fallible;
use crate::process::GUARD;
use crate::report::say;

/// How long statements are cancelled that wait for a standby.
const CANCELLED: Duration = Duration::from_millis(1_500);

/// The longest time for which a primary that was killed is away, in milliseconds.
const AWAY_MS: u64 = 3_000;

/// The time between two attempts to cancel some.
const BETWEEN: Duration = Duration::from_millis(20);

/// How many connections nodes may have while nothing is answered: two for each shard and one for
/// each node, each of which may have left two others behind.
const CONNECTIONS_MAX: u64 = 3 * (2 * SHARDS as u64 + NODES as u64);

impl Stage {
    /// The standby is killed, and comes back after a while. Every second time, waits for it are
    /// cancelled at first.
    pub(super) fn lose_standby(&mut self, load: &Load<'_>) -> Fallible<()> {
        let postgres = self.engine.postgres()?;
        postgres.kill_standby()?;
        load.board.set_mute(true);
        if self.dice.once_in(2) {
            cancel(postgres)?;
        }
        let_pass(LONG_PAUSE);
        let connections = postgres.connections()?;
        if connections > CONNECTIONS_MAX {
            let what = format!("{connections} connections wait for a standby");
            load.board.fail(format!("{what}, at most {CONNECTIONS_MAX} are allowed"));
        }
        load.board.set_mute(false);
        postgres.start_standby()
    }

    /// The primary is killed, and the standby is promoted.
    pub(super) fn lose_primary(&mut self, load: &Load<'_>) -> Fallible<()> {
        let postgres = self.engine.postgres()?;
        postgres.kill_primary()?;
        load.board.set_mute(true);
        postgres.promote()?;
        postgres.rebuild(|| load.board.set_mute(false))
    }

    /// The primary is killed, and comes back with what it has written. The standby may not have it.
    pub(super) fn crash_primary(&mut self, load: &Load<'_>) -> Fallible<()> {
        let postgres = self.engine.postgres()?;
        postgres.kill_primary()?;
        load.board.set_mute(true);
        let_pass(Duration::from_millis(self.dice.below(AWAY_MS)));
        load.board.set_mute(false);
        postgres.start_primary()
    }

    /// The standby is killed, the waits for it are cancelled, so that PostgreSQL reports success
    /// and shows what is on one server only. Then that server is killed, and the standby is
    /// promoted, which knows nothing of it.
    pub(super) fn cancel_waits(&mut self, load: &Load<'_>) -> Fallible<()> {
        let postgres = self.engine.postgres()?;
        postgres.kill_standby()?;
        load.board.set_mute(true);
        cancel(postgres)?;
        postgres.kill_primary()?;
        postgres.promote()?;
        postgres.rebuild(|| load.board.set_mute(false))
    }
}

/// Cancels the first appends that wait for the standby, and then for a while everything that waits.
fn cancel(postgres: &Postgres) -> Fallible<()> {
    let clock = Clock::starting();
    let mut appends = 0;
    while appends == 0 {
        if clock.elapsed() > GUARD {
            return Err("no append ever waits for the standby".into());
        }
        let_pass(BETWEEN);
        appends += postgres.cancel_waits(APPENDS)?;
    }
    // What comes after them is cancelled too: what resolves, renews and seizes.
    let (clock, mut all) = (Clock::starting(), appends);
    while clock.elapsed() < CANCELLED {
        let_pass(BETWEEN);
        all += postgres.cancel_waits("")?;
    }
    say(format_args!("cluster: {all} waits cancelled, the first {appends} of appends"));
    Ok(())
}
