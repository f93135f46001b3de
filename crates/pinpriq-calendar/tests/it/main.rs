//! Tests of calendars, only through public items.

#[cfg(test)]
mod clocks;
#[cfg(test)]
mod dates;
#[cfg(test)]
mod every;
#[cfg(test)]
mod minutes;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod spans;
