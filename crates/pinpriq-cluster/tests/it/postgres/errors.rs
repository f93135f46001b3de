//! What an append makes of each error of PostgreSQL. A trigger raises them on request.

use std::sync::Arc;

use pinpriq_store::ledger::{Answer, Appended, Call, Resolved, Seq, Term};
use tokio_postgres::Client;

use crate::postgres::engine::Engine;
use crate::remote::engines::ask;

/// A trigger that raises an error or a warning with a code for the next few entries.
const TRIGGER: &str = "\
    CREATE TABLE s.fault (code text, level text); \
    CREATE SEQUENCE s.fault_count; \
    CREATE FUNCTION s.fault() RETURNS trigger LANGUAGE plpgsql AS $$ \
    DECLARE wanted s.fault; BEGIN \
        SELECT * INTO wanted FROM s.fault; \
        IF wanted.level IS NULL OR nextval('s.fault_count') > 3 THEN RETURN NEW; END IF; \
        IF wanted.level = 'warning' THEN \
            RAISE WARNING 'on request' USING ERRCODE = wanted.code; RETURN NEW; \
        ELSIF wanted.level = 'notice' THEN \
            RAISE NOTICE 'on request' USING ERRCODE = wanted.code; RETURN NEW; \
        END IF; \
        RAISE EXCEPTION 'on request' USING ERRCODE = wanted.code; \
    END $$; \
    CREATE TRIGGER fault BEFORE INSERT ON s.entry FOR EACH ROW EXECUTE FUNCTION s.fault()";

fn set_fault(engine: &Engine, client: &Client, code: &str, level: &str) {
    let insert = format!(
        "DELETE FROM s.fault; INSERT INTO s.fault VALUES ('{code}', '{level}'); \
         SELECT setval('s.fault_count', 1, false)"
    );
    engine.sql(client, &insert);
}

#[test]
fn only_what_is_sure_to_have_done_nothing_is_told_so() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut ledger = engine.ledger(&postgres, 1, 1);
    let mut ask = |call| ask(&mut *ledger, call);
    let Answer::Seized(Ok(seized)) = ask(Call::Seize { at_least: Term(0) }) else {
        panic!("no answer to a seize")
    };
    let (tenure, mut seq) = (seized.tenure, Seq(1));
    let client = engine.client();
    engine.sql(&client, TRIGGER);
    for (code, level, expected) in [
        ("01000", "notice", Appended::Done),
        ("01000", "warning", Appended::Unknown),
        ("40001", "error", Appended::Done),
        ("40P01", "error", Appended::Done),
        ("55P03", "error", Appended::Done),
        ("53100", "error", Appended::Full),
        ("53200", "error", Appended::Full),
        ("23505", "error", Appended::Fenced),
        ("40003", "error", Appended::Unknown),
        ("08006", "error", Appended::Unknown),
        ("57014", "error", Appended::Unknown),
        ("57P01", "error", Appended::Unknown),
        ("42501", "error", Appended::Unknown),
        ("XX000", "error", Appended::Unknown),
    ] {
        set_fault(&engine, &client, code, level);
        let append = Call::Append { tenure, seq, bytes: Arc::from(&b"x"[..]) };
        let answer = ask(append.clone());
        assert_eq!(answer, Answer::Appended(expected), "{level} {code}");
        let is_there = expected == Appended::Done || level == "warning";
        let resolved = ask(Call::Resolve { tenure, seq });
        let real = if is_there { Resolved::Committed } else { Resolved::Absent };
        assert_eq!(resolved, Answer::Resolved(real), "{level} {code}");
        if !is_there {
            engine.sql(&client, "DELETE FROM s.fault");
            assert_eq!(ask(append), Answer::Appended(Appended::Done), "after {level} {code}");
        }
        seq.0 += 1;
    }
    let status = ask(Call::Status);
    assert!(matches!(status, Answer::Status(Ok(status)) if status.bytes_max == 1 << 40));
}

#[test]
fn an_address_that_requires_tls_is_refused() {
    let Some(engine) = Engine::start(&[]) else { return };
    let mut options = engine.options("s");
    options.address.push_str(" sslmode=require");
    let refused = engine.connect(options).err().unwrap().to_string();
    assert!(refused.contains("TLS"), "{refused}");
}
