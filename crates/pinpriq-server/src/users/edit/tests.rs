//! Changes to texts, and what is left of the texts around them.

use std::num::NonZeroU64;

use expect_test::expect_file;

use super::{EditError, Editor};
use crate::users::file::tests::HASH;
use crate::users::limits::{Assignment, Limit};
use crate::users::name::Name;
use crate::users::password::PasswordHash;
use crate::users::rule::Rule;
use crate::users::token::{Token, TokenDigest};

const TEXT: &str = "\
# Users of the shop.
# Ask Kim before you change this.

# The web site.
[users.web]
rules = [\"put:orders.*\"] # no more than that

[users.web.tokens]
ci = \"sha256:1111111111111111111111111111111111111111111111111111111111111111\"

# Packs parcels.
[users.packer]
rules = [
    # one each
    \"take:orders.*\",
]
limits = { max_tasks = 5 }
# The end.
";

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn limit(text: &str) -> Assignment {
    text.parse().unwrap()
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn hash() -> PasswordHash {
    PasswordHash::read(HASH).unwrap()
}

fn digest(digit: &str) -> TokenDigest {
    TokenDigest::read(&format!("sha256:{}", digit.repeat(64))).unwrap()
}

/// Changes a text into that of a file in `testdata/users/edits`.
#[track_caller]
fn check(text: &str, change: impl FnOnce(&mut Editor) -> Result<(), EditError>, file: &str) {
    let mut editor = Editor::new(text).unwrap();
    change(&mut editor).unwrap();
    let after = editor.text();
    assert_eq!(crate::users::file::read(&after).as_ref(), Ok(editor.users()));
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/users/edits");
    expect_file![format!("{directory}/{file}.txt")].assert_eq(&after);
}

#[test]
fn a_user_is_added_at_the_end() {
    let add = |editor: &mut Editor| {
        editor.add(&name("ops@x.org"), Some(&hash()), &rules(&["look:*", "admin"]))?;
        editor.add(&name("anonymous"), None, &rules(&["put:jobs"]))
    };
    check(TEXT, add, "add");
    check("", add, "add_first");
}

#[test]
fn rights_are_replaced_and_comments_stay() {
    check(TEXT, |it| it.set_rights(&name("web"), &rules(&["put:a", "look:b%20c"])), "rights");
    let many: Vec<Rule> = (0..9).flat_map(|it| rules(&[&format!("put:queue-{it}")])).collect();
    check("[users.a]\n", |it| it.set_rights(&name("a"), &many), "rights_many");
}

#[test]
fn a_password_is_set() {
    check(TEXT, |it| it.set_password(&name("web"), &hash()), "password");
}

#[test]
fn limits_are_set_and_taken_away() {
    let set = |name_of: &'static str| {
        move |editor: &mut Editor| {
            let set = ["max_connections=7", "max_tasks=none", "share=a b"].map(limit);
            editor.set_limits(&name(name_of), &set)
        }
    };
    check(TEXT, set("packer"), "limits_inline");
    check(TEXT, set("web"), "limits");
    check(
        "[users.a]\n[users.a.limits]\nmax_tasks = 5\n[users.b]\n",
        |it| it.set_limits(&name("a"), &[limit("max_tasks=none")]),
        "limits_last",
    );
}

#[test]
fn tokens_come_and_go() {
    let add = |editor: &mut Editor| editor.add_token(&name("web"), &name("x@y"), &digest("2"));
    check(TEXT, add, "token");
    let add = |editor: &mut Editor| editor.add_token(&name("packer"), &name("ci"), &digest("2"));
    check(TEXT, add, "token_first");
    check(TEXT, |it| it.revoke_token(&name("web"), &name("ci")), "token_revoked");
}

#[test]
fn a_user_goes_and_comments_about_others_stay() {
    check(TEXT, |it| it.remove(&name("web")).map(drop), "remove_first");
    check(TEXT, |it| it.remove(&name("packer")).map(drop), "remove_last");
    let alone = "# All users.\n\n# One.\n[users.a]\nrules = []\n";
    check(alone, |it| it.remove(&name("a")).map(drop), "remove_only");
}

#[test]
fn every_form_of_a_table_can_be_changed() {
    for text in [
        "users = { a = { rules = [] } }\n",
        "users.a.rules = []\n",
        "users.a = {}\n",
        "[users]\na = { rules = [] }\n",
        "[users]\na.rules = []\n",
        "[users]\n[users.a]\n",
        "[users.a.limits]\n",
        "[users.a]\n[users.b]\n[users.a.limits]\nmax_tasks = 1\n",
    ] {
        let mut editor = Editor::new(text).unwrap();
        let (a, new, token) = (name("a"), name("new"), Token::make().unwrap().digest());
        editor.add(&new, Some(&hash()), &rules(&["put:*"])).unwrap();
        for user in [&a, &new] {
            editor.set_password(user, &hash()).unwrap();
            editor.set_rights(user, &rules(&["look:*"])).unwrap();
            editor.set_limits(user, &["max_tasks=7", "share=s"].map(limit)).unwrap();
        }
        editor.add_token(&a, &name("ci"), &token).unwrap();
        let users = crate::users::file::read(&editor.text()).unwrap();
        assert_eq!(&users, editor.users(), "{text}");
        let user = users.user("a").unwrap();
        assert_eq!(user.rules, rules(&["look:*"]), "{text}");
        assert_eq!(user.limits.of(Limit::Tasks), NonZeroU64::new(7), "{text}");
        assert_eq!(user.limits.share(), Some("s"), "{text}");
        assert_eq!(users.by_token(&token).unwrap().0.name, a, "{text}");
        assert_eq!(user.password, Some(hash()), "{text}");
        editor.revoke_token(&a, &name("ci")).unwrap();
        editor.remove(&a).unwrap();
        assert_eq!(editor.users().len(), if text.contains(".b]") { 2 } else { 1 }, "{text}");
    }
}

#[test]
fn what_is_not_there_cannot_be_changed() {
    let mut editor = Editor::new(TEXT).unwrap();
    let (web, no) = (name("web"), name("no"));
    let errors = [
        editor.add(&web, None, &[]).unwrap_err(),
        editor.remove(&no).unwrap_err(),
        editor.set_password(&no, &hash()).unwrap_err(),
        editor.set_rights(&no, &[]).unwrap_err(),
        editor.set_limits(&no, &[]).unwrap_err(),
        editor.add_token(&no, &web, &digest("2")).unwrap_err(),
        editor.add_token(&web, &name("ci"), &digest("2")).unwrap_err(),
        editor.revoke_token(&web, &no).unwrap_err(),
        editor.add_token(&name("packer"), &no, &digest("1")).unwrap_err(),
        editor.set_rights(&web, &vec![Rule::admin(); 1_001]).unwrap_err(),
        Editor::new("[users.a\n").unwrap_err(),
    ];
    assert_eq!(editor.text(), TEXT, "nothing was changed");
    let all = errors.iter().fold(String::new(), |all, error| all + &format!("{error}\n"));
    expect_file!["../../../testdata/users/wrong_edits.txt"].assert_eq(&all);
}
