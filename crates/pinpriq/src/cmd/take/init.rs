//! Process 1 of a container: collects what its descendants leave behind, and passes signals on.
//!
//! A process whose parent has ended becomes a child of process 1, and stays as a zombie until that
//! collects it. So a worker that is process 1 does its work in a second process. It knows no tasks.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};

use super::stop::signals;
use crate::exit::Failure;

/// How a process ends by the code of a shell: this and the number of the signal.
const SIGNALLED: i32 = 128;

/// If this is process 1, runs the program a second time below it and ends as that does.
pub(super) fn work_below_if_first() -> Result<(), Failure> {
    if std::process::id() != 1 {
        return Ok(());
    }
    let failed = |error| Failure::on_the_way(format!("the worker cannot be started: {error}"));
    let mut signals = signals()?;
    let program = std::env::current_exe().map_err(failed)?;
    // Signals of a terminal go to whole groups. The worker hears of them from here, and once.
    let worker = Command::new(program)
        .args(std::env::args_os().skip(1))
        .stdin(Stdio::inherit())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let worker = Pid::from_child(&worker);
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if let Some(signal) = Signal::from_named_raw(signal) {
                // It may have ended just now, and then this process is about to.
                let _ = kill_process(worker, signal);
            }
        }
    });
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == worker => std::process::exit(code_of(status)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                return Err(Failure::on_the_way(format!("the worker is lost: {error}")));
            }
        }
    }
}

fn code_of(status: WaitStatus) -> i32 {
    let signal = || status.terminating_signal().map(|signal| SIGNALLED.saturating_add(signal));
    status.exit_status().or_else(signal).unwrap_or(1)
}
