//! The dashboard: the files that a browser gets from the server.
//!
//! The files are part of the program, so nothing is built or fetched for them. Nothing here knows
//! of HTTP.

mod files;

use std::sync::LazyLock;

use files::FILES;

/// What the browser may load and run: nothing but what comes from the server itself, and no script
/// or style within the page.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; object-src 'none'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct File {
    /// Its path, as a browser asks for it.
    pub(crate) path: &'static str,
    /// What it is.
    pub(crate) media_type: &'static str,
    /// What is in it.
    pub(crate) bytes: &'static [u8],
}

/// Returns the file of a path such as `/` or `/assets/main.js`, with its tag: another one means
/// that it has changed.
pub(crate) fn file(path: &str) -> Option<(File, &'static str)> {
    static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| FILES.iter().map(tag).collect());
    let path = if path == "/" { "/assets/index.html" } else { path };
    let at = FILES.iter().position(|file| file.path == path)?;
    Some((FILES[at], &TAGS[at]))
}

/// Returns the tag of a file, in quotes: a hash of what is in it (FNV-1a), and its length.
fn tag(file: &File) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in file.bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("\"{hash:016x}-{:x}\"", file.bytes.len())
}

#[cfg(test)]
mod tests;
