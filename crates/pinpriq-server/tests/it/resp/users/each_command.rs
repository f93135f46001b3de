//! Each command with each right that it needs: allowed with all of them, and not without one of
//! them, nor with the same rights on other queues. `testdata/resp/rights.txt` has the commands and
//! what they need; one that is missing there fails the test.

use std::collections::BTreeSet;

use pinpriq_proto::request::spec::Spec;
use pinpriq_proto::request::table::TABLE as COMMANDS;

use super::sign_in;
use crate::people::{People, Person};
use crate::resp::client::{Client, World, show};
use crate::rights::{Attempt, Row, attempts};
use crate::world::{in_memory, test};

const TABLE: &str = include_str!("../../../../testdata/resp/rights.txt");

/// The commands that can be part of a transaction, without options that wait.
const STEPS: [&str; 13] = [
    "PUT", "ACK", "RELEASE", "FAIL", "BURY", "TOUCH", "UPDATE", "DIG", "KILL", "SWITCH", "RESTART",
    "PUBLISH", "CANCEL",
];

fn rows() -> Vec<Row> {
    crate::rights::rows(TABLE)
}

/// The name of the command of a request that the documentation begins with in this way.
fn command_of(request: &str) -> String {
    let mut words = request.split(' ');
    let first = words.next().unwrap();
    let has_sub = ["QUEUE", "SCHEDULE", "LIMIT", "BATCH", "CLIENT", "COMMAND", "ACL", "CLUSTER"]
        .contains(&first);
    let sub = words.next().filter(|_| has_sub);
    sub.map_or_else(|| first.to_owned(), |sub| format!("{first} {sub}"))
}

#[test]
fn the_table_has_every_command() {
    let known: BTreeSet<String> = COMMANDS.iter().map(Spec::full_name).collect();
    let tried: BTreeSet<String> = rows().iter().map(|row| command_of(row.request)).collect();
    assert_eq!(tried, known);
}

async fn connect(world: &World, attempt: usize) -> Client {
    let mut client = world.connect().await;
    sign_in(&mut client, &format!("u{attempt}")).await;
    client
}

#[test]
fn each_command_needs_each_of_its_rights() {
    test(async || {
        let rows = rows();
        let attempts = attempts(&rows);
        let mut people: Vec<Person> = attempts
            .iter()
            .enumerate()
            .map(|(at, it)| Person::new(&format!("u{at}"), &it.rules))
            .collect();
        people.push(Person::new("boss", "admin"));
        let people = People::new(&people);
        let world = World::start(people.at(in_memory())).await;
        let mut boss = world.connect().await;
        sign_in(&mut boss, "boss").await;
        for (at, Attempt { row, rules, is_allowed }) in attempts.iter().enumerate() {
            let request = rows[*row].request;
            let what = format!("{request} with {rules}");
            let mut client = connect(&world, at).await;
            let told = client.reply(request).await;
            assert_eq!(told != "NOPERM", *is_allowed, "{what}: {told}");
            let told = boss.reply(&format!("ACL DRYRUN u{at} {request}")).await;
            let needs_rules = rows[*row].needs[0].contains(':');
            if needs_rules && !told.starts_with("ERR") {
                assert_eq!(told == "OK", *is_allowed, "dry run of {what}: {told}");
            }
            let is_step = STEPS.contains(&request.split(' ').next().unwrap());
            if is_step && !request.contains("WAIT") {
                let mut client = connect(&world, at).await;
                assert_eq!(client.reply("MULTI").await, "OK");
                let queued = client.reply(request).await;
                assert_eq!(queued == "QUEUED", *is_allowed, "{what} in a transaction: {queued}");
                let told = client.reply("EXEC").await;
                assert_ne!(told, "NOPERM", "{what}");
            }
        }
    });
}

#[test]
fn commands_of_users_need_a_sign_in() {
    test(async || {
        let people = People::new(&[Person::new("ana", "")]);
        let world = World::start(people.at(in_memory())).await;
        for Row { request, needs } in rows() {
            let mut client = world.connect().await;
            let told = show(&client.ask(request).await);
            assert_eq!(told == "NOAUTH", needs != ["everybody"], "{request}: {told}");
        }
    });
}
