//! The engine's data in memory: tasks and payloads in pages, the orders derived from them, and the
//! consumers that wait. Nothing here knows about commands.

pub(crate) mod accounts;
pub(crate) mod batches;
pub(crate) mod bucket;
pub(crate) mod consumers;
pub(crate) mod deadlines;
pub(crate) mod details;
pub(crate) mod discarded;
pub(crate) mod endings;
pub(crate) mod gate;
pub(crate) mod indexes;
pub(crate) mod lingering;
pub(crate) mod memberships;
pub(crate) mod named_limits;
pub(crate) mod news;
pub(crate) mod numbers;
pub(crate) mod own_shares;
pub(crate) mod pace;
pub(crate) mod packed;
pub(crate) mod pages;
pub(crate) mod payloads;
pub(crate) mod putters;
pub(crate) mod queues;
pub(crate) mod ranked;
pub(crate) mod reasons;
pub(crate) mod schedules;
pub(crate) mod share_counts;
pub(crate) mod slots;
pub(crate) mod sorted;
pub(crate) mod tallies;
pub(crate) mod tasks;
pub(crate) mod turns;
pub(crate) mod undo;
pub(crate) mod unstarted;
pub(crate) mod vacancies;
pub(crate) mod windows;
