//! A small file system that the server fills itself: the server can start again any number of
//! times, and acknowledging frees room.
//!
//! The file system is in memory and has a limited size, so the harness needs the right to mount
//! one. Power loss is covered by another scenario.

use std::path::{Path, PathBuf};
use std::process::Command;

use pinpriq_client::blocking::Resp;
use pinpriq_proto::wire::resp::{Value, Words};

use crate::args::Wanted;
use crate::fault::{Fallible, Verdict};
use crate::files;
use crate::process::{is_installed, run as carry_out};
use crate::report::say;
use crate::server::{Program, Server, Started};
use crate::wire;

/// The sizes of the file system, in MiB.
const SIZES: [u64; 2] = [100, 220];
/// Enough queues for every shard to have one.
const QUEUES: [&str; 6] = ["one", "two", "three", "four", "five", "six"];
const PAYLOAD_BYTES: usize = 2_000;
/// The number of requests sent at once.
const AT_ONCE: usize = 100;
const STARTS: u64 = 20;
/// How often something may be refused before it counts as refused for good. There is a wait of 50
/// ms after each refusal.
const TRIES: u32 = 200;

/// A mounted file system.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // Nothing more can be done about a file system that is still in use.
        let _ = carry_out(Command::new("umount").arg(&self.0));
    }
}

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    if !is_installed("mount") || !is_installed("umount") {
        return Ok(Verdict::NotRun("mount is not installed".to_owned()));
    }
    let mut figures = Vec::new();
    for mib in SIZES {
        for shards in [1, 2] {
            let scratch = files::scratch(&wanted.scratch)?;
            let place = scratch.path().join("disk");
            files::make_directory(&place)?;
            let size = format!("size={mib}m");
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&place);
            if let Err(why) = carry_out(&mut mount) {
                return Ok(Verdict::NotRun(format!("no file system can be mounted: {why}")));
            }
            let mounted = Mounted(place);
            let program = Program { shards, ..wanted.program.clone() };
            let context = format!("{mib} MiB, {shards} shards");
            match survive(&program, &mounted.0.join("data"))? {
                Ok(tasks) => figures.push(format!("{context}: {tasks} tasks")),
                Err(what) => return Ok(Verdict::Failed(format!("{context}: {what}"))),
            }
            say(format_args!("full: {context} done"));
        }
    }
    Ok(Verdict::Passed(format!("{STARTS} starts each; {}", figures.join(", "))))
}

/// Fills the disk, starts often, and takes everything out. Returns the number of tasks, or what was
/// wrong.
fn survive(program: &Program, data: &Path) -> Fallible<Result<u64, String>> {
    let mut server = program.start(data)?;
    let mut wire = wire::connect(server.address)?;
    let mut tasks = 0;
    for queue in QUEUES {
        tasks += fill(&mut wire, queue)?;
    }
    for start in 1..=STARTS {
        drop(wire);
        if start % 2 == 0 {
            server.kill()?
        } else {
            server.stop()?
        };
        server = match program.try_start(data)? {
            Started::Listening(server) => server,
            Started::Ended(status, log) => {
                return Ok(Err(format!("start {start} ended with {status}: {log}")));
            }
        };
        wire = wire::connect(server.address)?;
    }
    let mut taken = 0;
    for queue in QUEUES {
        match drain(&mut wire, queue)? {
            Ok(count) => taken += count,
            Err(what) => return Ok(Err(format!("{what}; {}", server.process.text()))),
        }
    }
    if taken != tasks {
        return Ok(Err(format!("{tasks} tasks were accepted, and {taken} taken")));
    }
    for queue in QUEUES {
        let mut tries = 0;
        while let Value::Error(refusal) = wire.ask(&Words::new(&format!("PUT {queue} again")))? {
            tries += 1;
            if tries == TRIES {
                return Ok(Err(format!("a put is refused on an empty disk: {refusal}")));
            }
            wait(&mut wire)?;
        }
    }
    stopped(server)?;
    Ok(Ok(tasks))
}

fn stopped(mut server: Server) -> Fallible<()> {
    let status = server.stop()?;
    if status.success() { Ok(()) } else { Err(format!("the stop ended with {status}").into()) }
}

/// Puts tasks until a put is refused.
fn fill(wire: &mut Resp, queue: &str) -> Fallible<u64> {
    let payload = vec![b'x'; PAYLOAD_BYTES];
    let put = Words::new(&format!("PUT {queue}")).bytes(payload);
    let mut accepted = 0;
    loop {
        wire.send([&put; AT_ONCE])?;
        let mut is_full = false;
        for _ in 0..AT_ONCE {
            match wire.reply()? {
                Value::Error(refusal) if refusal.starts_with("BUSY") => is_full = true,
                Value::Error(refusal) => return Err(refusal.into()),
                _ => accepted += 1,
            }
        }
        if is_full {
            return Ok(accepted);
        }
    }
}

/// Takes and acknowledges until there is nothing left.
fn drain(wire: &mut Resp, queue: &str) -> Fallible<Result<u64, String>> {
    let (mut count, mut refused) = (0, 0);
    loop {
        let tasks = match wire.ask(&Words::new(&format!("TAKE {queue} COUNT 100")))? {
            Value::Array(tasks) => tasks,
            Value::Null => return Ok(Ok(count)),
            Value::Error(refusal) if refusal.starts_with("BUSY") && refused < TRIES => {
                refused += 1;
                wait(wire)?;
                continue;
            }
            other => return Ok(Err(format!("a take is answered {other:?}"))),
        };
        if tasks.is_empty() {
            return Ok(Ok(count));
        }
        refused = 0;
        let mut acks = Vec::new();
        for task in tasks {
            let Value::Array(parts) = task else { return Err("a task is no array".into()) };
            let receipt = parts.get(2).and_then(Value::as_bytes).ok_or("no receipt")?;
            acks.push(Words::new(&format!("ACK {queue}")).bytes(receipt));
        }
        wire.send(&acks)?;
        for _ in &acks {
            match wire.reply()? {
                Value::Error(refusal) => return Ok(Err(format!("an ack is refused: {refusal}"))),
                _ => count += 1,
            }
        }
    }
}

/// Waits a moment for the server, on a queue that is not used.
fn wait(wire: &mut Resp) -> Fallible<()> {
    wire.ask(&Words::new("POP nothing WAIT 50"))?;
    Ok(())
}
