//! The data directory of a node: which cluster it belongs to, and who it is.
//!
//! The tasks of a cluster are in its engine, so the directory is small. It has a file `node`, which
//! is replaced as a whole, and one with the watermarks. A lock keeps a second process out. Which
//! engine holds the cluster is not in it: that is what the file is there to check.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinpriq_store::disk::{OpenMode, read_full_at};
use pinpriq_store::journal::lock;
use pinpriq_store::layout::{replace_file, shards_in};
use pinpriq_store::{Disk, RealDisk, StoreError};

use super::watermarks::Watermarks;
use crate::error::ServeError;

/// The file that says who the node is.
const NODE_NAME: &str = "node";

/// Its name while it is written. One left over by a crash has no meaning.
const NODE_NEW_NAME: &str = "node.new";

/// The version of the file.
const VERSION: u32 = 1;

/// An upper bound on the size of the file.
const NODE_BYTES_MAX: usize = 256;

/// A cluster as a node remembers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownCluster {
    /// Its id.
    pub id: u128,
    /// How many shards it has.
    pub shards: u16,
    /// The highest generation that the node has seen.
    pub generation: u32,
}

/// What the file says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Content {
    data: u128,
    cluster: KnownCluster,
}

/// The data directory of a node, which no other process uses meanwhile.
pub struct NodeData {
    directory: PathBuf,
    disk: Arc<dyn Disk>,
    _lock: Box<dyn Send>,
    /// Whether a thread may write the watermarks.
    has_threads: bool,
    data: u128,
    cluster: Option<KnownCluster>,
}

impl NodeData {
    /// Opens the directory, and makes it if it does not exist. One that has no id yet gets `drawn`
    /// when it first [belongs](Self::belong) to a cluster.
    ///
    /// Refuses a directory with the tasks of a single server, one that another process uses, and a
    /// file that it cannot read. Changes no file that is there.
    pub fn open(directory: &Path, drawn: u128) -> Result<Self, ServeError> {
        refuse_journal(directory)?;
        let disk = RealDisk::create(directory)
            .map_err(|source| ServeError::Directory { data: directory.to_owned(), source })?;
        let opened = Self::begin((directory.to_owned(), Arc::new(disk)), drawn, true)?;
        // A single server may have been here before the lock.
        refuse_journal(directory)?;
        Ok(opened)
    }

    /// Like [`NodeData::open`], on any disk, and without threads: for simulators.
    pub fn on_disk(disk: Arc<dyn Disk>, drawn: u128) -> Result<Self, ServeError> {
        Self::begin((PathBuf::from("disk"), disk), drawn, false)
    }

    fn begin(
        (directory, disk): (PathBuf, Arc<dyn Disk>),
        drawn: u128,
        has_threads: bool,
    ) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Store { data: directory.clone(), source };
        let lock = lock(&*disk).map_err(failed)?;
        let content = read(&*disk).map_err(failed)?;
        let data = content.map_or(drawn, |content| content.data);
        let cluster = content.map(|content| content.cluster);
        Ok(Self { directory, disk, _lock: lock, has_threads, data, cluster })
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The id of the directory, which it keeps.
    #[must_use]
    pub const fn id(&self) -> u128 {
        self.data
    }

    /// The cluster that it belongs to, if it belongs to one.
    #[must_use]
    pub const fn cluster(&self) -> Option<KnownCluster> {
        self.cluster
    }

    /// Opens the watermarks of a cluster with this many shards. Once only.
    pub(crate) fn watermarks(&self, shards: u16) -> Result<Watermarks, ServeError> {
        let opened = Watermarks::open(Arc::clone(&self.disk), shards, self.has_threads);
        opened.map_err(|source| ServeError::Store { data: self.directory.clone(), source })
    }

    /// Notes which cluster the directory belongs to. That is durable when it returns. Costs nothing
    /// if it is known.
    pub fn belong(&mut self, cluster: KnownCluster) -> Result<(), ServeError> {
        if self.cluster == Some(cluster) {
            return Ok(());
        }
        let text = text_of(&Content { data: self.data, cluster });
        let written = replace_file(&*self.disk, (NODE_NAME, NODE_NEW_NAME), text.as_bytes());
        written.map_err(|source| ServeError::Store { data: self.directory.clone(), source })?;
        self.cluster = Some(cluster);
        Ok(())
    }
}

/// Whether a directory belongs to a node of a cluster. Changes nothing.
pub(crate) fn is_of_node(directory: &Path) -> bool {
    let opened = RealDisk::open_read_only(directory).and_then(|disk| disk.list());
    opened.is_ok_and(|entries| entries.iter().any(|entry| entry.name == NODE_NAME))
}

/// Refuses a directory with the tasks of a single server.
fn refuse_journal(directory: &Path) -> Result<(), ServeError> {
    match shards_in(directory) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => {
            let why = format!(
                "the data directory {} holds the tasks of a single server, which a cluster would \
                 not serve: give --data another directory",
                directory.display()
            );
            Err(ServeError::Cluster { why })
        }
        Err(source) => Err(ServeError::Store { data: directory.to_owned(), source }),
    }
}

/// Reads the file, if it is there.
fn read(disk: &dyn Disk) -> Result<Option<Content>, StoreError> {
    let fail = |error| StoreError::from_io("read", NODE_NAME, 0, error);
    let file = match disk.open(NODE_NAME, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(fail)?,
    };
    let mut bytes = vec![0; NODE_BYTES_MAX + 1];
    let length = read_full_at(&*file, 0, &mut bytes).map_err(fail)?;
    let text = String::from_utf8_lossy(&bytes[..length]);
    let version = text.lines().next().and_then(|line| line.strip_prefix("pinpriq node "));
    if let Some(version) = version.and_then(|version| version.parse().ok())
        && version > VERSION
    {
        let file = NODE_NAME.to_owned();
        return Err(StoreError::NewerFormat { file, version, known: VERSION });
    }
    let content = parse(&text).ok_or_else(|| StoreError::Mixed {
        what: format!(
            "the file {NODE_NAME} is not as a node has written it: bring it back from a backup, \
             or give the node a new directory with --data"
        ),
    });
    content.map(Some)
}

/// The content of the file. There is one text for each.
fn text_of(content: &Content) -> String {
    let Content { data, cluster: KnownCluster { id, shards, generation } } = content;
    format!(
        "pinpriq node {VERSION}\ndata {data:032x}\ncluster {id:032x}\nshards {shards}\n\
         generation {generation}\n"
    )
}

fn parse(text: &str) -> Option<Content> {
    let mut lines = text.lines().skip(1);
    let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let data = u128::from_str_radix(value("data")?, 16).ok()?;
    let id = u128::from_str_radix(value("cluster")?, 16).ok()?;
    let (shards, generation) = (value("shards")?.parse().ok()?, value("generation")?.parse().ok()?);
    let content = Content { data, cluster: KnownCluster { id, shards, generation } };
    (shards > 0 && text_of(&content) == text).then_some(content)
}

#[cfg(test)]
mod tests;
