//! Tests of the history checker: what it must accept, and what it must object to.

#[cfg(test)]
mod between;
#[cfg(test)]
mod doctored;
#[cfg(test)]
mod good;
#[cfg(test)]
mod program;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod story;
