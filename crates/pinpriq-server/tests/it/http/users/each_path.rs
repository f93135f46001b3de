//! Each path of the API with each right that its command needs: allowed with all of them, and not
//! without one of them, nor with the same rights on other queues. `testdata/http/rights.txt` has
//! the requests and what they need; a path that is missing there fails the test.

use super::super::Visitor;
use super::{basic, with_people};
use crate::people::Person;
use crate::rights::{Attempt, Row, attempts, rows};

const TABLE: &str = include_str!("../../../../testdata/http/rights.txt");

/// A request of the table: the method with the path, and the body.
fn parts(request: &str) -> (String, &str) {
    let mut words = request.splitn(3, ' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    (format!("{method} {path}"), words.next().unwrap_or_default())
}

/// Whether a request is one for this path of the documentation, such as `GET /v1/queues/{queue}`.
fn is_for(request: &str, documented: &str) -> bool {
    let plain = request.split('?').next().unwrap();
    let (words, wanted): (Vec<_>, Vec<_>) =
        (plain.split(['/', ':']).collect(), documented.split(['/', ':']).collect());
    let fits = |(word, wanted): (&&str, &&str)| wanted.starts_with('{') || word == wanted;
    words.len() == wanted.len() && words.iter().zip(&wanted).all(fits)
}

#[test]
fn the_table_has_every_path() {
    let known: Vec<&str> = super::documented().collect();
    assert!(known.len() > 40, "{} paths", known.len());
    let tried: Vec<String> = rows(TABLE).iter().map(|row| parts(row.request).0).collect();
    for path in &known {
        assert!(tried.iter().any(|request| is_for(request, path)), "{path} is not tried");
    }
    for request in &tried {
        assert!(known.iter().any(|path| is_for(request, path)), "{request} is no path");
    }
}

#[test]
fn each_path_needs_each_of_its_rights() {
    let rows = rows(TABLE);
    let attempts = attempts(&rows);
    let people: Vec<Person> = attempts
        .iter()
        .enumerate()
        .map(|(at, it)| Person::new(&format!("u{at}"), &it.rules))
        .collect();
    with_people(&people, async |address, _| {
        for (at, Attempt { row, rules, is_allowed }) in attempts.iter().enumerate() {
            let Row { request, .. } = &rows[*row];
            let (line, body) = parts(request);
            let kind = match body {
                _ if line.contains(":batch") => "Content-Type: application/x-ndjson\r\n",
                json if json.starts_with('{') => "Content-Type: application/json\r\n",
                _ => "Content-Type: text/plain\r\n",
            };
            let fields = format!("{}{kind}", basic(&format!("u{at}:password")));
            let mut visitor = Visitor::at(address).await;
            visitor.send(&line, &fields, body.as_bytes()).await;
            let (status, told) = if line.contains("/events") && *is_allowed {
                // The answer has no end.
                (visitor.line().await.split(' ').nth(1).unwrap().parse().unwrap(), String::new())
            } else {
                visitor.answer().await
            };
            let is_denied = told.contains("\"code\":\"NOPERM\"");
            assert_eq!(is_denied, !is_allowed, "{request} with {rules}: {status} {told}");
            assert!(
                ![400, 401, 404, 405, 415, 500].contains(&status)
                    || told.contains("NOTFOUND")
                    || told.contains("NOQUEUE"),
                "{request} with {rules}: {status} {told}"
            );
        }
    });
}
