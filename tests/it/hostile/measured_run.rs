//! Runs the program and measures memory and CPU time of the program and its isolated processes.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use crate::folder::{Folder, ProgramOutput, program_output};

/// Memory that a bad input may use in addition to a good one, in bytes.
const MAX_MEMORY: u64 = 1 << 30;
/// CPU time that a case may take, in clock ticks of 10 ms.
const MAX_TICKS_PER_CASE: u64 = 1000;

/// Runs the program on a number of cases and returns its output.
///
/// # Panics
///
/// The program used too much memory or CPU time. Systems without `/proc` do not measure them.
pub(crate) fn run(folder: &Folder, args: &[&str], cases: u64) -> ProgramOutput {
    let mut command = folder.command(args);
    let stdout = fs::File::create(folder.path("stdout.txt")).unwrap();
    let stderr = fs::File::create(folder.path("stderr.txt")).unwrap();
    let mut child =
        command.stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr)).spawn().unwrap();
    let mut peak = ProcessUse::default();
    let status = loop {
        let now = ProcessUse::of_tree(child.id());
        peak = ProcessUse { memory: peak.memory.max(now.memory), ticks: peak.ticks.max(now.ticks) };
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        sleep(Duration::from_millis(5));
    };
    assert!(peak.memory < MAX_MEMORY, "{args:?}: {} MiB", peak.memory >> 20);
    assert!(peak.ticks < cases * MAX_TICKS_PER_CASE, "{args:?}: {} s of CPU", peak.ticks / 100);
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    let (stdout, stderr) = (read("stdout.txt"), read("stderr.txt"));
    program_output(&std::process::Output { status, stdout, stderr })
}

/// What a process and its descendants use.
#[derive(Clone, Copy, Default)]
struct ProcessUse {
    /// Resident memory in bytes.
    memory: u64,
    /// CPU time in clock ticks, with that of ended children.
    ticks: u64,
}

impl ProcessUse {
    fn of_tree(process: u32) -> Self {
        let folder = format!("/proc/{process}");
        let read = |name: &str| fs::read_to_string(format!("{folder}/{name}")).unwrap_or_default();
        let status = read("status");
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
        // The fields after the name of the program, which can contain spaces.
        let stat = read("stat");
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        // utime, stime, cutime and cstime.
        let ticks = fields.split_whitespace().skip(11).take(4);
        let own = Self {
            memory: memory.unwrap_or(0) * 1024,
            ticks: ticks.filter_map(|field| field.parse::<u64>().ok()).sum(),
        };
        // Each thread has children of its own.
        let threads = fs::read_dir(format!("{folder}/task")).into_iter().flatten().flatten();
        let children = threads.flat_map(|thread| {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            children.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()
        });
        children.map(Self::of_tree).fold(own, |sum, child| Self {
            memory: sum.memory + child.memory,
            ticks: sum.ticks + child.ticks,
        })
    }
}
