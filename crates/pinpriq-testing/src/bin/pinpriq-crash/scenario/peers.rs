//! The same kills and power losses for other servers, in one Markdown table.
//!
//! Two kinds of tasks are counted: those that were acknowledged and are gone, and those that had
//! been taken out for good and came back. A task whose answer was lost counts in favour of the
//! server.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::args::Wanted;
use crate::clock::let_pass;
use crate::contestant::{CONTESTANTS, Contestant, Popped, Speaker};
use crate::fault::{Fallible, Verdict};
use crate::files;
use crate::loop_disk::LoopDisk;
use crate::process::{is_installed, signal};
use crate::report::say;
use crate::rounds::LOAD_MS;
use pinpriq_testing::Dice;

/// The number of clients that put. One more client takes tasks out.
const PUTTERS: u64 = 16;
/// There is one power loss for this many kills, because each takes longer.
const KILLS_FOR_A_CUT: u64 = 4;

/// What is known about the tasks of one server.
#[derive(Default)]
struct Known {
    put: HashSet<String>,
    /// Taken out for good.
    popped: HashSet<String>,
    /// Perhaps taken out.
    perhaps: HashSet<String>,
    /// Pops whose answer was lost, which may have taken out a task.
    unheard: u64,
    /// Tasks that were delivered after they had been taken out for good.
    came_back: u64,
}

impl Known {
    fn add(&mut self, other: Self) {
        self.put.extend(other.put);
        self.perhaps.extend(other.perhaps);
        self.unheard += other.unheard;
        for task in other.popped {
            self.pop(task);
        }
    }

    fn pop(&mut self, task: String) {
        self.came_back += u64::from(!self.popped.insert(task));
    }

    fn lost(&self) -> u64 {
        let gone = |task: &&String| !self.popped.contains(*task) && !self.perhaps.contains(*task);
        let missing = u64::try_from(self.put.iter().filter(gone).count()).unwrap_or(u64::MAX);
        missing.saturating_sub(self.unheard)
    }
}

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    let mut rows = Vec::new();
    let mut not_run = Vec::new();
    let mut lost_here = 0;
    for contestant in CONTESTANTS {
        let name = contestant.tongue.name();
        if let Some(program) = contestant.tongue.program()
            && !is_installed(program)
        {
            not_run.push(format!("{name}, {}: {program} is not installed", contestant.settings));
            continue;
        }
        let scratch = files::scratch(&wanted.scratch)?;
        let directory = scratch.path().join("data");
        let known = endure(wanted, contestant, &directory, wanted.kills, None)?;
        rows.push(row(contestant, "SIGKILL", wanted.kills, &known));
        let mut lost = known.lost() + known.came_back;
        let cuts = (wanted.kills / KILLS_FOR_A_CUT).max(1);
        match LoopDisk::new(scratch.path())? {
            Ok(mut disk) => {
                let directory = disk.path().join("data");
                let known = endure(wanted, contestant, &directory, cuts, Some(&mut disk))?;
                rows.push(row(contestant, "power loss", cuts, &known));
                lost += known.lost() + known.came_back;
            }
            Err(why) => not_run.push(format!("{name}, power loss: {why}")),
        }
        if contestant.tongue.program().is_none() {
            lost_here += lost;
        }
        say(rows.last().map_or("", String::as_str));
    }
    say("");
    say("| server | settings | ended by | times | puts acknowledged | removals acknowledged \
         | lost | came back |");
    say("|---|---|---|---|---|---|---|---|");
    for row in rows {
        say(row);
    }
    say("");
    if lost_here > 0 {
        return Ok(Verdict::Failed(format!("pinpriq lost or brought back {lost_here} tasks")));
    }
    if not_run.is_empty() {
        Ok(Verdict::Passed("see the table".to_owned()))
    } else {
        Ok(Verdict::NotRun(not_run.join("; ")))
    }
}

fn row(contestant: Contestant, ending: &str, times: u64, known: &Known) -> String {
    let Contestant { tongue, settings, .. } = contestant;
    let (put, popped) = (known.put.len(), known.popped.len());
    let (lost, came_back) = (known.lost(), known.came_back);
    let name = tongue.name();
    format!(
        "| {name} | {settings} | {ending} | {times} | {put} | {popped} | {lost} | {came_back} |"
    )
}

/// Ends a server this many times under load, and then takes out what is left.
fn endure(
    wanted: &Wanted,
    contestant: Contestant,
    directory: &Path,
    times: u64,
    mut disk: Option<&mut LoopDisk>,
) -> Fallible<Known> {
    let mut dice = Dice::new(wanted.seed);
    let mut known = Known::default();
    let numbers = AtomicU64::new(0);
    for _ in 0..times {
        files::make_directory(directory)?;
        let mut running = contestant.start(wanted, directory)?;
        let address = running.address;
        let moment = Duration::from_micros(dice.below(LOAD_MS * 1_000));
        let heard = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..=PUTTERS)
                .map(|number| {
                    let mut dice = dice.fork();
                    let speaker = Speaker::connect(contestant.tongue, address);
                    let numbers = &numbers;
                    scope.spawn(move || match speaker {
                        Ok(speaker) if number < PUTTERS => put_on(speaker, numbers, &mut dice),
                        Ok(speaker) => pop_on(speaker),
                        Err(_) => Known::default(),
                    })
                })
                .collect();
            let_pass(moment);
            if let Some(disk) = &mut disk {
                signal("-STOP", running.process.id())?;
                disk.cut()?;
            }
            running.process.kill()?;
            let heard = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
            heard.collect::<Result<Vec<Known>, _>>().map_err(|_| "a client panicked".into())
        });
        let heard: Fallible<Vec<Known>> = heard;
        heard?.into_iter().for_each(|heard| known.add(heard));
        if let Some(disk) = &mut disk {
            disk.switch_on()?;
        }
    }
    files::make_directory(directory)?;
    let mut running = contestant.start(wanted, directory)?;
    let mut speaker = Speaker::connect(contestant.tongue, running.address)?;
    loop {
        match speaker.pop() {
            Popped::Task(task) => known.pop(task),
            Popped::Nothing => break,
            _ => return Err(format!("{} ended in the drain", contestant.tongue.name()).into()),
        }
    }
    running.process.kill()?;
    Ok(known)
}

fn put_on(mut speaker: Speaker, numbers: &AtomicU64, dice: &mut Dice) -> Known {
    let mut known = Known::default();
    loop {
        let task = format!("task-{}-{}", numbers.fetch_add(1, Ordering::Relaxed), "x".repeat(80));
        if speaker.put(&task, dice.below(4)).is_err() {
            return known;
        }
        known.put.insert(task);
    }
}

fn pop_on(mut speaker: Speaker) -> Known {
    let mut known = Known::default();
    loop {
        match speaker.pop() {
            Popped::Task(task) => known.pop(task),
            Popped::Nothing => {}
            Popped::Perhaps(task) => {
                known.perhaps.insert(task);
                return known;
            }
            Popped::Unheard => {
                known.unheard += 1;
                return known;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Known;

    #[test]
    fn what_was_acknowledged_and_is_gone_is_lost() {
        let put = ["a", "b", "c", "d"].map(str::to_owned).into();
        let mut known = Known { put, ..Known::default() };
        known.pop("a".to_owned());
        known.perhaps.insert("b".to_owned());
        assert_eq!(known.lost(), 2);
        known.unheard = 1;
        assert_eq!(known.lost(), 1);
    }

    #[test]
    fn what_was_taken_out_twice_came_back() {
        let mut known = Known::default();
        known.pop("a".to_owned());
        let mut later = Known::default();
        later.pop("a".to_owned());
        known.add(later);
        assert_eq!(known.came_back, 1);
    }
}
