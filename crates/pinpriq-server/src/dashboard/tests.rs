//! What holds for the files: they are all there, they need nothing from elsewhere, and they are
//! small.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use super::*;

/// The most bytes of everything together, compressed.
const COMPRESSED_MAX: usize = 100 << 10;

fn text(path: &str) -> &'static str {
    let (file, _) = file(path).unwrap_or_else(|| panic!("there is no {path}"));
    std::str::from_utf8(file.bytes).unwrap()
}

fn add_files(directory: &Path, found: &mut BTreeSet<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
    for entry in directory.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_files(&path, found);
        } else {
            let path = path.strip_prefix(&root).unwrap().to_str().unwrap();
            found.insert(format!("/assets/{path}"));
        }
    }
}

fn modules() -> impl Iterator<Item = &'static File> {
    let is_module =
        |file: &&File| file.media_type.contains("javascript") && !file.path.contains("/vendor/");
    FILES.iter().filter(is_module)
}

#[test]
fn every_file_of_the_directory_is_there() {
    let mut found = BTreeSet::new();
    add_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("assets"), &mut found);
    let known: BTreeSet<String> = FILES.iter().map(|file| file.path.to_owned()).collect();
    assert_eq!(known, found);
}

#[test]
fn everything_that_is_loaded_exists() {
    for part in text("/").split("=\"/assets/").skip(1) {
        text(&format!("/assets/{}", &part[..part.find('"').unwrap()]));
    }
    for module in modules() {
        let folder = &module.path[..module.path.rfind('/').unwrap()];
        for part in text(module.path).split("from \"").skip(1) {
            let name = &part[..part.find('"').unwrap()];
            let path = match name.strip_prefix("../") {
                Some(rest) => format!("{}/{rest}", &folder[..folder.rfind('/').unwrap()]),
                None => format!("{folder}/{}", name.strip_prefix("./").unwrap()),
            };
            text(&path);
        }
    }
}

#[test]
fn the_page_asks_for_every_module_at_once() {
    for module in modules().filter(|it| !it.path.ends_with("/main.js")) {
        let line = format!("<link rel=\"modulepreload\" href=\"{}\">", module.path);
        assert!(text("/").contains(&line), "{line}");
    }
}

#[test]
fn nothing_is_written_within_the_page() {
    let page = text("/");
    for word in ["<style", " style=", " onclick=", " onload=", "javascript:", "http:", "https:"] {
        assert!(!page.contains(word), "{word}");
    }
    assert_eq!(page.matches("<script").count(), page.matches("<script src=\"/assets/").count());
}

#[test]
fn text_never_becomes_markup() {
    for module in modules() {
        for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!text(module.path).contains(word), "{} has {word}", module.path);
        }
    }
}

#[test]
fn modules_are_small_and_say_what_they_are_for() {
    for module in modules() {
        let text = text(module.path);
        assert!(text.starts_with("// "), "{}", module.path);
        assert!(text.lines().count() <= 300, "{} is too long", module.path);
        let is_long = |line: &&str| line.chars().count() > 100;
        assert_eq!(text.lines().find(is_long), None, "{}", module.path);
    }
}

#[test]
fn all_together_are_small() {
    let compressed = FILES.iter().map(|file| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(file.bytes).unwrap();
        encoder.finish().unwrap().len()
    });
    let sum: usize = compressed.sum();
    assert!(sum <= COMPRESSED_MAX, "{sum} bytes");
}

#[test]
fn tags_tell_files_apart() {
    let tags: BTreeSet<&str> = FILES.iter().map(|it| file(it.path).unwrap().1).collect();
    assert_eq!(tags.len(), FILES.len());
    assert_eq!(file("/").unwrap(), file("/assets/index.html").unwrap());
    assert_eq!(file("/assets/"), None);
    assert_eq!(file("/assets/../Cargo.toml"), None);
}
