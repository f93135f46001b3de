//! A directory remembers its cluster, whatever happens while that is written.

use pinpriq_store::disk::write_all_at;

use super::*;

const CLUSTER: KnownCluster = KnownCluster { id: 0xabc, shards: 16, generation: 2 };
const CONTENT: Content = Content { data: 0xdef, cluster: CLUSTER };
const TEXT: &str = "\
pinpriq node 1
data 00000000000000000000000000000def
cluster 00000000000000000000000000000abc
shards 16
generation 2
";

fn put(directory: &Path, name: &str, text: &str) {
    let disk = RealDisk::create(directory).unwrap();
    drop(disk.remove(name));
    let file = disk.open(name, OpenMode::CreateNew).unwrap();
    write_all_at(&*file, 0, text.as_bytes()).unwrap();
}

#[test]
fn a_directory_keeps_its_id_and_its_cluster() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("n1");
    let mut data = NodeData::open(&directory, 0xdef).unwrap();
    assert_eq!((data.id(), data.cluster()), (0xdef, None));
    assert!(!is_of_node(&directory));
    data.belong(CLUSTER).unwrap();
    let error = NodeData::open(&directory, 1).err().unwrap();
    assert_eq!(error.exit_code(), 3);
    assert!(error.to_string().contains("another process uses this directory"), "{error}");
    drop(data);
    assert!(is_of_node(&directory));
    let mut data = NodeData::open(&directory, 1).unwrap();
    assert_eq!((data.id(), data.cluster()), (0xdef, Some(CLUSTER)));
    let later = KnownCluster { generation: 3, ..CLUSTER };
    data.belong(later).unwrap();
    drop(data);
    assert_eq!(NodeData::open(&directory, 1).unwrap().cluster(), Some(later));
}

#[test]
fn the_file_is_as_documented_and_nothing_else_is_one() {
    assert_eq!(text_of(&CONTENT), TEXT);
    assert_eq!(parse(TEXT), Some(CONTENT));
    let root = tempfile::tempdir().unwrap();
    let newer = TEXT.replace("node 1", "node 2");
    for (text, expected) in [
        ("", "is not as a node has written it"),
        (&TEXT[..TEXT.len() - 1], "is not as a node has written it"),
        (&TEXT.replace("16", "0"), "is not as a node has written it"),
        (&TEXT.replace("abc", "ABC"), "is not as a node has written it"),
        (&TEXT.replace("shards 16", "shards 65536"), "is not as a node has written it"),
        (&format!("{TEXT}more\n"), "is not as a node has written it"),
        (&"x".repeat(NODE_BYTES_MAX * 3), "is not as a node has written it"),
        (&newer, "Use the newer server"),
    ] {
        put(root.path(), NODE_NAME, text);
        let error = NodeData::open(root.path(), 1).err().unwrap();
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn a_directory_of_a_single_server_is_refused() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "segment-0000000001.log", "");
    let error = NodeData::open(root.path(), 1).err().unwrap();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("holds the tasks of a single server"), "{error}");
}
