//! What the programs around a task tell each other in environment variables.

/// How the variables begin that tell a command the headers of the task that it works on.
pub(crate) const HEADER: &str = "PINPRIQ_HEADER_";

/// The headers that say which trace a task belongs to, each with the variable in which programs
/// tell each other the same.
pub(crate) const TRACE: [(&str, &str); 2] =
    [("traceparent", "TRACEPARENT"), ("tracestate", "TRACESTATE")];
