//! A transaction: a task is done and what follows from it is put, all at one moment or not at all.

use pinpriq_examples::{Task, connect, payloads};
use redis::{Connection, ErrorKind, RedisResult, cmd, pipe};

/// Acknowledges an order, and puts an invoice and a parcel. Returns the replies in that order.
fn finish(
    pinpriq: &mut Connection,
    receipt: Option<&str>,
    order: &str,
) -> RedisResult<(String, String, String)> {
    let mut steps = pipe();
    // MULTI is sent before the commands, and EXEC after them.
    steps.atomic();
    steps.cmd("ACK").arg("rust-orders").arg(receipt);
    steps.cmd("PUT").arg("{rust-orders}-invoices").arg(order);
    steps.cmd("PUT").arg("{rust-orders}-parcels").arg(order).arg("PRIORITY").arg(1);
    steps.query(pinpriq)
}

fn look(pinpriq: &mut Connection, queue: &str) -> RedisResult<Vec<String>> {
    cmd("PEEK").arg(queue).arg("COUNT").arg(9).query(pinpriq).map(payloads)
}

fn main() -> RedisResult<()> {
    let mut pinpriq = connect()?;
    cmd("PUT").arg("rust-orders").arg("order 17").exec(&mut pinpriq)?;
    let mut take = cmd("TAKE");
    let taken: Vec<Task> = take.arg("rust-orders").arg("TTR").arg(30_000).query(&mut pinpriq)?;
    let (_, _, receipt, order) = &taken[0];

    let (acked, invoice, parcel) = finish(&mut pinpriq, receipt.as_deref(), order)?;
    println!("acknowledged the order, put invoice {invoice} and parcel {parcel}");
    assert_eq!(acked, "OK");

    // The lease has ended. So the first command is refused, and none of the others happens. This
    // library does not say why.
    let refused = finish(&mut pinpriq, receipt.as_deref(), order);
    let refused = refused.expect_err("an old receipt is not accepted");
    assert_eq!(refused.kind(), ErrorKind::UnexpectedReturnType);
    // It does if MULTI and EXEC are commands like the others.
    let mut steps = pipe();
    steps.cmd("MULTI");
    steps.cmd("PUT").arg("{rust-orders}-invoices").arg(order);
    steps.cmd("ACK").arg("rust-orders").arg(receipt.as_deref());
    steps.cmd("EXEC");
    let refused = steps.exec(&mut pinpriq).expect_err("an old receipt is not accepted");
    let errors = refused.into_server_errors().expect("the server has refused it");
    assert_eq!((errors[0].0, errors[0].1.code()), (3, "EXECABORT"));
    // The position of the command, and its refusal.
    assert!(errors[0].1.details().is_some_and(|details| details.starts_with("2 STALE")));
    for queue in ["{rust-orders}-invoices", "{rust-orders}-parcels"] {
        assert_eq!(look(&mut pinpriq, queue)?, ["order 17"]);
    }

    // What cannot be part of a transaction is refused at once, and then nothing happens either.
    let mut wrong = pipe();
    wrong.atomic();
    wrong.cmd("PUT").arg("{rust-orders}-invoices").arg("order 18");
    wrong.cmd("TAKE").arg("rust-orders");
    let refused = wrong.exec(&mut pinpriq).expect_err("a TAKE is not accepted");
    let errors = refused.into_server_errors().expect("the server has refused it");
    assert_eq!((errors[0].0, errors[0].1.code()), (1, "ERR"));
    for queue in ["{rust-orders}-invoices", "{rust-orders}-parcels"] {
        assert_eq!(look(&mut pinpriq, queue)?, ["order 17"]);
        cmd("QUEUE").arg("DROP").arg(queue).exec(&mut pinpriq)?;
    }
    println!("transaction: ok");
    Ok(())
}
