//! Tests of the simulators, the checker of histories, and what must hold for any bytes.

#[cfg(test)]
mod cluster_sim;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod history;
mod model;
#[cfg(test)]
mod shares;
#[cfg(test)]
mod sim;
