//! Commands whose fields somebody else chooses: tests, simulators and fuzzers.
//!
//! `KINDS` of a type of commands lists its kinds, and `of_kind` makes one of a kind from fields
//! that are [`Chosen`], each by its type and its name. So a new command takes part in whatever
//! chooses that way. Nothing here draws anything, and a program that chooses nothing has no code of
//! it.

/// A value that `C` can choose.
pub trait Chosen<C> {
    /// Returns a value for the field of this name.
    fn chosen(by: &mut C, field: &'static str) -> Self;
}
