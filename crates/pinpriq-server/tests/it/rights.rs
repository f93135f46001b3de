//! Tables of requests with the rights that they need, and who tries them: every door has one.

/// A request, and what it needs.
pub(crate) struct Row {
    pub(crate) request: &'static str,
    pub(crate) needs: Vec<&'static str>,
}

/// A user to try a request as.
pub(crate) struct Attempt {
    /// The place of the row.
    pub(crate) row: usize,
    pub(crate) rules: String,
    pub(crate) is_allowed: bool,
}

/// Returns the rows of a table: each is a request, a bar, and the rules that it needs.
pub(crate) fn rows(table: &'static str) -> Vec<Row> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let row = |line: &'static str| {
        let (request, needs) = line.rsplit_once('|').unwrap();
        Row { request: request.trim(), needs: needs.split_whitespace().collect() }
    };
    lines.map(row).collect()
}

/// Returns who tries what: a user with all rights that a request needs, others who lack one each,
/// and one of another tenant.
pub(crate) fn attempts(rows: &[Row]) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    for (at, Row { needs, .. }) in rows.iter().enumerate() {
        let mut attempt = |rules: String, is_allowed| {
            attempts.push(Attempt { row: at, rules, is_allowed });
        };
        match needs[..] {
            ["everybody" | "users" | "within"] => attempt(String::new(), true),
            ["everywhere-look" | "everywhere-manage"] => {
                let (_, right) = needs[0].split_once('-').unwrap();
                attempt(format!("{right}:*"), true);
                attempt(String::new(), false);
                attempt(format!("put:* take:* {right}:a*"), false);
            }
            ["copies"] => {
                attempt("look:* manage:*".to_owned(), true);
                attempt("put:* take:* look:* manage:a* admin".to_owned(), false);
                attempt("put:* take:* look:a* manage:* admin".to_owned(), false);
                attempt("admin".to_owned(), false);
                attempt(String::new(), false);
            }
            ["admin"] => {
                attempt("admin".to_owned(), true);
                attempt("put:* take:* look:* manage:*".to_owned(), false);
            }
            _ => {
                attempt(needs.join(" "), true);
                attempt(needs.join("* ") + "*", true);
                for lacking in needs {
                    let others: Vec<&str> =
                        needs.iter().filter(|it| *it != lacking).copied().collect();
                    // All others everywhere, and this one elsewhere.
                    let (right, name) = lacking.split_once(':').unwrap();
                    let all = ["put", "take", "look", "manage"].into_iter();
                    let all = all.filter(|it| it != &right).map(|it| format!("{it}:*"));
                    let all: Vec<String> = all.collect();
                    let same = others.iter().filter(|it| it.starts_with(right));
                    let same: Vec<&str> = same.copied().collect();
                    let (all, same) = (all.join(" "), same.join(" "));
                    attempt(format!("{all} {same} {right}:other-{name} {right}:{name}.*"), false);
                }
                let elsewhere = needs.iter().map(|need| need.replace(':', ":zz"));
                attempt(elsewhere.collect::<Vec<_>>().join("* ") + "* admin", false);
            }
        }
    }
    attempts
}
