//! The file of users: any text is read or refused, and whatever was read can be changed.
//!
//! No password is hashed here, which would take all the time there is, and no file is touched.

use pinpriq_server::users::{Editor, Name, Right, Rule, TokenDigest, User, Users, read};

/// A user and a digest that no text of a fuzzer is likely to have.
const NEW: &str = "added-by-the-target";
const DIGEST: &str = "sha256:5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed";

/// The shortest part of a text that counts as a secret.
const SECRET_MIN: usize = 16;

/// Reads any bytes as a file of users, and changes it if it is one.
///
/// # Panics
/// If a promise does not hold for these bytes.
pub fn users(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match read(text) {
        Err(error) => {
            let sentence = error.to_string();
            assert!(sentence.starts_with("line "), "{sentence}");
            assert!(!sentence.contains('\n'), "a message is one line: {sentence:?}");
            assert!(!tells_secret(text, &sentence), "{sentence:?}");
        }
        Ok(users) => {
            for user in users.each() {
                check_rights(user);
                check_change(text, &users, user);
            }
        }
    }
}

/// Whether a message contains a hash or a digest of the text.
fn tells_secret(text: &str, sentence: &str) -> bool {
    let words = text.split(['"', '\'', ' ', '\n']).filter(|word| word.len() >= SECRET_MIN);
    let mut secrets = words.filter(|it| it.contains("$argon2") || it.contains("sha256:"));
    secrets.any(|secret| sentence.contains(secret))
}

/// Asks for the names in the rules, and for those just beside them.
fn check_rights(user: &User) {
    for rule in &user.rules {
        let text = rule.to_string();
        assert_eq!(text.parse::<Rule>().as_ref(), Ok(rule), "{text}");
        let Some(pattern) = rule.pattern() else {
            assert!(user.rights.is_admin());
            continue;
        };
        let longer = [pattern.bytes(), b"x"].concat();
        let shorter = pattern.bytes().split_last().map_or(&[][..], |(_, rest)| rest);
        for name in [pattern.bytes(), &longer, shorter] {
            for right in Right::ALL {
                let gives = |rule: &Rule| {
                    rule.right() == right && rule.pattern().is_some_and(|it| it.matches(name))
                };
                let expected = user.rights.allows(right, name);
                assert_eq!(user.rules.iter().any(gives), expected, "{right} {name:?}");
            }
        }
    }
}

/// Gives a user a token, adds another user, and removes the first one.
fn check_change(text: &str, before: &Users, user: &User) {
    let (Ok(new), Ok(digest)) = (NEW.parse::<Name>(), TokenDigest::read(DIGEST)) else { return };
    if before.user(NEW).is_some() || before.by_token(&digest).is_some() {
        return;
    }
    let mut editor = match Editor::new(text) {
        Ok(editor) => editor,
        Err(error) => panic!("what was read cannot be changed: {error}"),
    };
    let is_full = user.tokens.len() >= pinpriq_server::users::TOKENS_MAX
        || before.len() >= pinpriq_server::users::USERS_MAX
        || text.len() + 4_096 > pinpriq_server::users::FILE_BYTES_MAX;
    if is_full || user.tokens.contains_key(&new) {
        return;
    }
    let changed = editor
        .add_token(&user.name, &new, &digest)
        .and_then(|()| editor.add(&new, None, &[Rule::admin()]));
    assert_eq!(changed, Ok(()), "a file that was read can be changed");
    let after = editor.users();
    assert_eq!(after.len(), before.len() + 1);
    assert_eq!(after.by_token(&digest).map(|(user, _)| &user.name), Some(&user.name));
    let others = |users: &Users| {
        let others = users.each().filter(|it| it.name != user.name && it.name != new);
        others.cloned().collect::<Vec<_>>()
    };
    assert_eq!(others(after), others(before));
    assert_eq!(editor.remove(&user.name).map(|gone| gone.rules), Ok(user.rules.clone()));
    assert!(editor.users().user(user.name.as_str()).is_none());
    assert_eq!(read(&editor.text()).as_ref(), Ok(editor.users()));
    assert_eq!(others(editor.users()), others(before));
}
