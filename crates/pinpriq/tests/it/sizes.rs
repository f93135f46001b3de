//! Sizes that the environment may change.

/// A number from the environment.
pub(crate) fn size(variable: &str, usual: u32) -> u32 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}
