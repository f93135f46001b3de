//! What an operator can ask of the engine under a cluster, also in the words of `CLUSTER ADMIN`.
//! Asks nothing.

/// Stands for a node: the shard goes where it belongs.
const BACK: &str = "--back";

/// See the start of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Status,
    Nodes,
    Shards,
    Check,
    /// Starts or stops the drain of a node.
    Drain {
        node: String,
        drains: bool,
    },
    /// Tells a shard to move to a node, or takes that back.
    Move {
        shard: u16,
        node: Option<String>,
    },
    AcceptRollback,
    Upgrade,
}

impl Operation {
    /// Its words.
    pub(super) fn words(&self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        match self {
            Self::Status => words(&["status"]),
            Self::Nodes => words(&["nodes"]),
            Self::Shards => words(&["shards"]),
            Self::Check => words(&["check"]),
            Self::Drain { node, drains: true } => words(&["drain", node]),
            Self::Drain { node, drains: false } => words(&["undrain", node]),
            Self::Move { shard, node: Some(node) } => words(&["move", &shard.to_string(), node]),
            Self::Move { shard, node: None } => words(&["move", &shard.to_string(), BACK]),
            Self::AcceptRollback => words(&["accept-rollback"]),
            Self::Upgrade => words(&["upgrade"]),
        }
    }

    /// Reads its words.
    pub(super) fn read(words: &[String]) -> Option<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(match words[..] {
            ["status"] => Self::Status,
            ["nodes"] => Self::Nodes,
            ["shards"] => Self::Shards,
            ["check"] => Self::Check,
            ["drain", node] => Self::Drain { node: node.to_owned(), drains: true },
            ["undrain", node] => Self::Drain { node: node.to_owned(), drains: false },
            ["move", shard, BACK] => Self::Move { shard: shard.parse().ok()?, node: None },
            ["move", shard, node] => {
                Self::Move { shard: shard.parse().ok()?, node: Some(node.to_owned()) }
            }
            ["accept-rollback"] => Self::AcceptRollback,
            ["upgrade"] => Self::Upgrade,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        let node = || "n1".to_owned();
        for operation in [
            Operation::Status,
            Operation::Nodes,
            Operation::Shards,
            Operation::Check,
            Operation::Drain { node: node(), drains: true },
            Operation::Drain { node: node(), drains: false },
            Operation::Move { shard: 3, node: Some(node()) },
            Operation::Move { shard: 1_023, node: None },
            Operation::AcceptRollback,
            Operation::Upgrade,
        ] {
            assert_eq!(Operation::read(&operation.words()), Some(operation));
        }
        for words in
            ["", "drain", "status n1", "move x n1", "move 65536 n1", "move 1", "import", "STATUS"]
        {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(Operation::read(&words), None, "{words:?}");
        }
    }
}
