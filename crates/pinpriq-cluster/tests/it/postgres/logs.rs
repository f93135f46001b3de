//! What every ledger and every store on a ledger does, on PostgreSQL without trouble.

use pinpriq_cluster::postgres::{ConnectError, Postgres, PostgresOptions};
use pinpriq_store::Store;
use pinpriq_store::ledger::{
    Answer, Appended, Call, LedgerOptions, LedgerStore, Seized, Seq, Term, Trimmed,
};
use pinpriq_testing::stores;

use crate::postgres::engine::Engine;
use crate::remote::engines::{ask, run_ledger_suite};

#[test]
fn it_passes_all_cases() {
    let Some(engine) = Engine::start(&[]) else { return };
    let (postgres, _) = engine.connect(engine.options("cases")).unwrap();
    run_ledger_suite(|shard, writer| engine.ledger(&postgres, shard, writer.0));
}

#[test]
fn a_store_on_it_does_what_every_store_does() {
    let Some(engine) = Engine::start(&[]) else { return };
    let (postgres, _) = engine.connect(engine.options("store")).unwrap();
    let open = |writer| -> Box<dyn Store> {
        let options = LedgerOptions { slack_bytes: 20_000, ..LedgerOptions::default() };
        Box::new(LedgerStore::new(engine.ledger(&postgres, 3, writer), options))
    };
    let mut writer = 1;
    let mut reopen = || {
        writer += 1;
        open(writer)
    };
    stores::run(&mut || open(1), Some(&mut reopen));
}

#[test]
fn every_node_checks_and_prepares_the_server() {
    let Some(engine) = Engine::start(&[]) else { return };
    for schema in ["", "a b", "a\"; DROP SCHEMA public; --", "ä", &"x".repeat(41)] {
        let refused = engine.connect(engine.options(schema)).err();
        assert_eq!(refused, Some(ConnectError::Schema(schema.to_owned())));
    }
    // Many prepare the same schema at once.
    let together: Vec<_> = (0..8)
        .map(|_| engine.runtime.spawn(Postgres::connect(engine.options("Odd-name_1"))))
        .collect();
    for connected in together {
        let (_, report) = engine.runtime.block_on(connected).unwrap().unwrap();
        assert!(!report.has_synchronous_standbys() && report.version >= 130_000, "{report:?}");
    }
    let client = engine.client();
    let storage = "SELECT attstorage FROM pg_attribute \
                   WHERE attrelid = '\"Odd-name_1\".entry'::regclass AND attname = 'body'";
    assert_eq!(engine.sql(&client, storage).as_deref(), Some("e"));
    // Who may use the tables need not have the right to create them.
    let grants = "CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA \"Odd-name_1\" TO guest; \
                  GRANT ALL ON ALL TABLES IN SCHEMA \"Odd-name_1\" TO guest";
    engine.sql(&client, grants);
    let mut options = engine.options("Odd-name_1");
    options.address = options.address.replace("user=pinpriq", "user=guest");
    let (postgres, _) = engine.connect(options.clone()).unwrap();
    let mut ledger = engine.ledger(&postgres, 1, 1);
    ledger.start(Call::Seize { at_least: Term(7) });
    ledger.wait();
    assert!(matches!(ledger.poll(), Some(Answer::Seized(Ok(seized))) if seized.tenure.term.0 == 7));
    options.schema = "another".to_owned();
    assert!(matches!(engine.connect(options), Err(ConnectError::Unusable(_))));
}

#[test]
fn of_several_hosts_the_first_that_accepts_changes_is_used() {
    let Some(engine) = Engine::start(&[]) else { return };
    // It accepts connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().port();
    let mut options = engine.options("hosts");
    options.address = options.address.replace("host=127.0.0.1 port=", "");
    let (port, rest) = options.address.split_once(' ').unwrap();
    options.address = format!("host=127.0.0.1,127.0.0.1 port={silent},{port} {rest}");
    engine.connect(options).unwrap();
}

#[test]
fn a_server_that_may_lose_commits_is_refused() {
    let Some(engine) = Engine::start(&["fsync=off"]) else { return };
    assert_eq!(engine.connect(engine.options("s")).err(), Some(ConnectError::FsyncOff));
}

#[test]
fn room_comes_back_when_entries_are_removed_though_the_tables_stay_large() {
    const BYTES_MAX: u64 = 8 << 20;
    let Some(engine) = Engine::start(&[]) else { return };
    let options = PostgresOptions { bytes_max: BYTES_MAX, ..engine.options("room") };
    let (postgres, _) = engine.connect(options).unwrap();
    let mut ledger = engine.ledger(&postgres, 1, 1);
    let used = |ask: &mut dyn FnMut(Call) -> Answer| match ask(Call::Status) {
        Answer::Status(Ok(status)) => status.bytes_used,
        other => panic!("{other:?}"),
    };
    let mut ask = |call| ask(&mut *ledger, call);
    let Answer::Seized(Ok(Seized { tenure, .. })) = ask(Call::Seize { at_least: Term(1) }) else {
        panic!("the log cannot be seized")
    };
    for seq in (1..=60).map(Seq) {
        let bytes = vec![7; 100 << 10].into();
        let appended = ask(Call::Append { tenure, seq, bytes });
        assert_eq!(appended, Answer::Appended(Appended::Done));
    }
    assert!(used(&mut ask) > BYTES_MAX * 6 / 10);
    // The last entry stays, and with it the end of the tables.
    let trimmed = ask(Call::Trim { tenure, before: Seq(60) });
    assert_eq!(trimmed, Answer::Trimmed(Trimmed::Done));
    let is_soon = (0..100).any(|_| {
        std::thread::park_timeout(std::time::Duration::from_millis(50));
        used(&mut ask) < BYTES_MAX / 10
    });
    assert!(is_soon, "{} bytes are used by one entry", used(&mut ask));
}
