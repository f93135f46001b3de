//! Puts tasks: plain, with a priority, many at once, and one whose end it awaits.

use std::thread;

use pinpriq_examples::{Task, connect, payloads};
use redis::{RedisResult, cmd, pipe};

fn main() -> RedisResult<()> {
    let mut pinpriq = connect()?;

    // PUT returns the id of the new task. A lower number is more urgent.
    let id: String = cmd("PUT").arg("rust-mails").arg("to: ann").query(&mut pinpriq)?;
    println!("put task {id}");
    cmd("PUT").arg("rust-mails").arg("to: bob").arg("PRIORITY").arg(-1).exec(&mut pinpriq)?;
    let seen: Vec<Task> = cmd("PEEK").arg("rust-mails").arg("COUNT").arg(9).query(&mut pinpriq)?;
    assert_eq!(payloads(seen), ["to: bob", "to: ann"]);

    // A pipeline puts many tasks in one round trip.
    let mut many = pipe();
    for number in 0..100 {
        many.cmd("PUT").arg("numbers").arg(number);
    }
    let ids: Vec<String> = many.query(&mut pinpriq)?;
    assert_eq!(ids.len(), 100);
    let popped: Vec<Task> = cmd("POP").arg("numbers").arg("COUNT").arg(999).query(&mut pinpriq)?;
    assert_eq!(popped.len(), 100);

    // With WAIT the producer learns how its task ended.
    let worker = thread::spawn(|| -> RedisResult<()> {
        let mut own = connect()?;
        let taken: Vec<Task> = cmd("TAKE").arg("urgent").arg("WAIT").arg(-1).query(&mut own)?;
        for (queue, _, receipt, _) in taken {
            cmd("ACK").arg(queue).arg(receipt).exec(&mut own)?;
        }
        Ok(())
    });
    let put = cmd("PUT").arg("urgent").arg("now!").arg("WAIT").arg(30_000).query(&mut pinpriq)?;
    let (_, outcome): (String, String) = put;
    assert_eq!(outcome, "acked");
    worker.join().expect("the worker is not to panic")?;

    let dropped: u64 = cmd("QUEUE").arg("DROP").arg("rust-mails").query(&mut pinpriq)?;
    assert_eq!(dropped, 2);
    println!("producer: ok");
    Ok(())
}
