//! Files that are read, and files that are refused in a sentence.

use std::fmt::Write as _;

use super::{FILE_BYTES_MAX, read};
use crate::users::Right;
use crate::users::limits::Limit;
use crate::users::token::Token;

/// Of "swordfish", with little memory.
pub(crate) const HASH: &str = "$argon2id$v=19$m=64,t=1,p=1$c29tZSBzYWx0IGhlcmU$\
                               AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn digest(byte: char) -> String {
    format!("sha256:{}", byte.to_string().repeat(64))
}

fn whole() -> String {
    let digest = digest('a');
    format!(
        "# Who may do what.\n\
         [users.orders]\n\
         password = \"{HASH}\"\n\
         rules = [\"put:orders.*\", \"look:*\"]\n\
         \n\
         [users.orders.limits]\n\
         max_connections = 100\n\
         max_tasks = 1_000_000\n\
         \n\
         [users.orders.tokens]\n\
         ci = \"{digest}\"\n\
         \n\
         [users.anonymous]\n\
         rules = [\"put:jobs\"]\n\
         \n\
         [users.\"ops@example.com\"]\n\
         rules = [\"admin\"]\n"
    )
}

#[test]
fn a_whole_file_is_read() {
    let users = read(&whole()).unwrap();
    let names: Vec<&str> = users.each().map(|user| user.name.as_str()).collect();
    assert_eq!(names, ["anonymous", "ops@example.com", "orders"]);
    let orders = users.user("orders").unwrap();
    assert!(orders.rights.allows(Right::Put, b"orders.new"));
    assert!(!orders.rights.allows(Right::Put, b"jobs"));
    assert_eq!(orders.password.as_ref().and_then(|hash| hash.text()), Some(HASH));
    assert_eq!(orders.limits.of(Limit::Tasks).map(u64::from), Some(1_000_000));
    assert_eq!(orders.limits.of(Limit::RequestsPerSecond), None);
    let tokens: Vec<&str> = orders.tokens.keys().map(crate::users::Name::as_str).collect();
    assert_eq!(tokens, ["ci"]);
    assert!(users.user("ops@example.com").unwrap().rights.is_admin());
    assert_eq!(users.user("anonymous").unwrap().password, None);
}

#[test]
fn the_file_of_the_documentation_can_be_read() {
    let page = include_str!("../../../../../docs/security.md");
    let (_, after) = page.split_once("```toml\n").unwrap();
    let (text, _) = after.split_once("```").unwrap();
    let users = read(text).unwrap();
    let names: Vec<&str> = users.each().map(|user| user.name.as_str()).collect();
    assert_eq!(names, ["ops@example.com", "orders", "packer"]);
    assert!(users.user("packer").unwrap().tokens.contains_key("line-1"));
}

#[test]
fn there_may_be_no_users() {
    for text in ["", "# No users yet.\n", "users = {}", "[users]\n"] {
        assert!(read(text).unwrap().is_empty(), "{text}");
    }
}

#[test]
fn users_can_be_written_in_any_way_that_toml_has() {
    let same = ["users.a.rules = [\"put:*\"]", "users = { a = { rules = ['put:*'] } }"];
    for text in same {
        assert_eq!(read(text), read("[users.a]\nrules = [\n  \"put:*\", # all\n]\n"), "{text}");
    }
}

#[test]
fn a_refusal_names_the_line_and_what_to_do() {
    let (one, hash) = (digest('1'), HASH);
    let dear = hash.replace("m=64", "m=4000000");
    let long = "n".repeat(65);
    let wrong = [
        "[users.a\n".to_owned(),
        "users = 5\n".to_owned(),
        "\n\n[user.a]\n".to_owned(),
        "[users.\"a b\"]\n".to_owned(),
        format!("[users.{long}]\n"),
        "[users]\na = true\n".to_owned(),
        "[users.a]\nrule = []\n".to_owned(),
        "[users.a]\nrules = \"put:*\"\n".to_owned(),
        "[users.a]\nrules = [\n  \"put:*\",\n  \"puts:*\",\n]\n".to_owned(),
        "[users.a]\nrules = [\"put:a*b\"]\n".to_owned(),
        "[users.a]\nrules = [1]\n".to_owned(),
        "[users.a]\npassword = 5\n".to_owned(),
        "[users.a]\npassword = \"\"\n".to_owned(),
        format!("[users.a]\npassword = \"{dear}\"\n"),
        "[users.a.limits]\nmax_task = 5\n".to_owned(),
        "[users.a.limits]\nmax_tasks = 0\n".to_owned(),
        "[users.a.limits]\nmax_tasks = -1\n".to_owned(),
        "[users.a.limits]\nmax_tasks = 1.5\n".to_owned(),
        "[users.a.limits]\nmax_tasks = \"5\"\n".to_owned(),
        "[users.a.limits]\nshare = 5\n".to_owned(),
        "[users.a.limits]\nshare = \"\"\n".to_owned(),
        "[users.a]\nlimits = 5\n".to_owned(),
        "[users.a]\ntokens = [\"x\"]\n".to_owned(),
        "[users.a.tokens]\n\"a b\" = \"\"\n".to_owned(),
        "[users.a.tokens]\nci = 5\n".to_owned(),
        format!("[users.a.tokens]\nci = \"{one}\"\n[users.b.tokens]\nx = \"{one}\"\n"),
        "[users.a]\n[users.a]\n".to_owned(),
        "[users.a]\nrules = []\nrules = []\n".to_owned(),
    ];
    let mut all = String::new();
    for text in wrong {
        writeln!(all, "{}", read(&text).unwrap_err()).unwrap();
    }
    expect_test::expect_file!["../../../testdata/users/wrong_files.txt"].assert_eq(&all);
}

#[test]
fn no_message_contains_a_secret() {
    let token = Token::make().unwrap();
    for secret in ["swordfish-123", HASH, token.text(), &token.digest().text()] {
        let wrong = [
            format!("[users.a]\npassword = \"{secret} \"\n"),
            format!("[users.a]\npassword = [\"{secret}\"]\n"),
            format!("[users.a]\npassword = {secret}\n"),
            format!("[users.a]\npassword = \"{secret}\n"),
            format!("[users.a]\npassword \"{secret}\"\n"),
            format!("[users.a]\npassword = \"{secret}\" \"{secret}\"\n"),
            format!("[users.a.tokens]\nci = \"{secret} \"\n"),
            format!("[users.a.tokens]\nci = {secret}\n"),
            format!("[users.a]\ntokens = \"{secret}\"\n"),
        ];
        for text in wrong {
            let sentence = read(&text).unwrap_err().to_string();
            assert!(!sentence.contains(secret), "{sentence}");
        }
    }
    // The refusal shows what stands in place of a name or a rule, unless it is a secret.
    for secret in [HASH, token.text(), &token.digest().text()] {
        let wrong = [
            format!("[users.\"{secret} \"]\n"),
            format!("\"{secret}\" = 1\n\"{secret}\" = 1\n"),
            format!("[users.a]\n\"{secret}\" = 1\n"),
            format!("[users.a]\nrules = [\"{secret}\"]\n"),
            format!("[users.a]\nrules = [\"put:{secret}*x\"]\n"),
            format!("[users.a.tokens]\n\"{secret} \" = \"\"\n"),
            format!("[users.a.limits]\n\"{secret}\" = 1\n"),
        ];
        for text in wrong {
            let sentence = read(&text).unwrap_err().to_string();
            assert!(!sentence.contains(secret), "{sentence}");
        }
    }
}

#[test]
fn a_file_has_bounds() {
    let comment = "#".repeat(FILE_BYTES_MAX);
    assert!(read(&comment).is_ok());
    let refused = read(&format!("{comment}#")).unwrap_err().to_string();
    assert_eq!(refused, "it has more than 4194304 bytes, which is the most");
    let users = |count: usize| {
        (0..count).fold(String::new(), |text, index| text + &format!("[users.u{index}]\n"))
    };
    assert_eq!(read(&users(10_000)).unwrap().len(), 10_000);
    let rules = |count: usize| format!("[users.a]\nrules = [{}]\n", "\"put:a\",".repeat(count));
    assert!(read(&rules(1_000)).is_ok());
    let tokens = |count: usize| {
        let line = |index: usize| format!("t{index} = \"sha256:{index:064}\"\n");
        (0..count).fold("[users.a.tokens]\n".to_owned(), |text, index| text + &line(index))
    };
    assert!(read(&tokens(100)).is_ok());
    for (text, words) in [
        (users(10_001), "more than 10000 users"),
        (rules(1_001), "more than 1000 rules"),
        (tokens(101), "more than 100 tokens"),
    ] {
        let sentence = read(&text).unwrap_err().to_string();
        assert!(sentence.contains(words), "{sentence}");
    }
}
