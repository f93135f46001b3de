//! Chooses the bugs that the gate plants: those that a change may have touched, and a few by
//! chance.
//!
//! A bug counts as touched if the difference since a commit shows the line that plants it or the
//! line that lists it, with a few lines around. It does not look at which tests have changed: the
//! bugs by chance, and the long run, which plants all, are there for those.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;

use pinpriq_planted::Bug;

use crate::tidy::tree::root;

/// How many lines around a changed line count as changed.
const LINES_AROUND: u32 = 8;

/// Returns the bugs that have been touched since this commit, and `chance` of the others. Another
/// `seed` chooses others.
pub(crate) fn choose(since: &str, chance: usize, seed: &str) -> Result<Vec<Bug>, String> {
    let difference = difference_since(since)?;
    let (touched, mut others): (Vec<Bug>, Vec<Bug>) =
        Bug::ALL.iter().partition(|bug| is_touched(**bug, &difference));
    others.sort_by_key(|bug| {
        let mut hasher = DefaultHasher::new();
        (seed, bug.word()).hash(&mut hasher);
        hasher.finish()
    });
    others.truncate(chance);
    let chosen: BTreeSet<&str> = touched.iter().chain(&others).map(|bug| bug.word()).collect();
    println!(
        "planted: {} bugs that were touched since {since}, {} by chance (seed {seed})",
        touched.len(),
        others.len()
    );
    Ok(Bug::ALL.iter().copied().filter(|bug| chosen.contains(bug.word())).collect())
}

/// Whether the difference has the line that plants this bug, or the one that lists it.
fn is_touched(bug: Bug, difference: &str) -> bool {
    let plants = format!("planted!({bug:?})");
    let lists = format!("{bug:?} \"{}\"", bug.word());
    difference.lines().any(|line| line.contains(&plants) || line.contains(&lists))
}

/// Returns what git shows of the crates.
fn difference_since(commit: &str) -> Result<String, String> {
    let around = format!("--unified={LINES_AROUND}");
    let mut git = Command::new("git");
    git.args(["diff", "--no-color", &around, commit, "--", "crates"]).current_dir(root());
    let output = git.output().map_err(|error| format!("git cannot be started: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "git shows no difference since {commit:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::is_touched;
    use pinpriq_planted::Bug;

    #[test]
    fn bug_is_touched_where_its_line_shows() {
        let bug = Bug::ALL[0];
        let planted = format!("@@ -1,3 +1,4 @@\n     if planted!({bug:?}) {{\n+        one();");
        assert!(is_touched(bug, &planted));
        assert!(is_touched(bug, &format!("+    {bug:?} \"{}\"", bug.word())));
        assert!(!is_touched(Bug::ALL[1], &planted));
    }
}
