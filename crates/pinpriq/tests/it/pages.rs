//! The commands that print texts, and the refusals of `serve`.

use crate::peer::{check, pinpriq};

#[test]
fn completions_are_made_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = pinpriq(&["completions", shell]).output().unwrap();
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("frame-timeout-ms"), "{shell}");
    }
}

#[test]
fn the_manual_page_is_printed() {
    let output = pinpriq(&["man"]).output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains(".TH pinpriq 1"));
}

#[test]
fn a_manual_page_is_written_for_each_command() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("man1");
    check(&pinpriq(&["man", "--dir", dir.to_str().unwrap()]).output().unwrap(), 0, b"");
    for page in ["pinpriq.1", "pinpriq-serve.1", "pinpriq-pop.1", "pinpriq-wire-push.1"] {
        let page = dir.join(page);
        assert!(page.metadata().unwrap().len() > 100, "{}", page.display());
    }
}

#[test]
fn the_version_is_printed() {
    let output = pinpriq(&["--version"]).output().unwrap();
    check(&output, 0, format!("pinpriq {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
}

#[test]
fn serve_refuses_nonsense_wherever_it_comes_from() {
    let config = "testdata/unknown_key.toml";
    let table = [
        (vec!["serve", "--connections-max", "0"], None, "it must be from 1 to 1000000, not 0"),
        (vec!["serve"], Some(("PINPRIQ_CONNECTIONS_MAX", "x")), "it must be a whole number"),
        (
            vec!["serve"],
            Some(("PINPRIQ_OUT_BYTES_MAX", "x")),
            "`x` is not a size: give a size such",
        ),
        (vec!["serve"], Some(("PINPRIQ_OUT_BYTES_MAX", "2GiB")), "`2GiB` is out of bounds"),
        (vec!["serve", "--config", config], None, "line 2, column 1"),
        (vec!["serve"], Some(("PINPRIQ_CONFIG", config)), "unknown field `conections-max`"),
        (vec!["serve", "--nonsense"], None, "unexpected argument '--nonsense'"),
    ];
    for (arguments, variable, words) in table {
        let complaint = check(&pinpriq(&arguments).envs(variable).output().unwrap(), 2, b"");
        assert!(complaint.contains(words), "{arguments:?}: {complaint}");
    }
}
