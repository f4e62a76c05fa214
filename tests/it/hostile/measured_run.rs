//! Runs the program and measures the peak memory of the program and its isolated processes.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use crate::folder::{Folder, ProgramOutput, program_output};

/// Memory that a bad input may use in addition to a good one, in bytes.
pub(crate) const MAX_MEMORY: u64 = 1 << 30;

/// Runs the program and returns its output and the peak of its memory in bytes.
///
/// The peak is 0 on systems without `/proc`.
pub(crate) fn run(folder: &Folder, args: &[&str]) -> (ProgramOutput, u64) {
    let mut command = folder.command(args);
    let stdout = fs::File::create(folder.path("stdout.txt")).unwrap();
    let stderr = fs::File::create(folder.path("stderr.txt")).unwrap();
    let mut child =
        command.stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr)).spawn().unwrap();
    let mut peak = 0;
    let status = loop {
        peak = peak.max(memory_of_tree(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        sleep(Duration::from_millis(5));
    };
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    let (stdout, stderr) = (read("stdout.txt"), read("stderr.txt"));
    (program_output(&std::process::Output { status, stdout, stderr }), peak)
}

/// Returns the resident memory of a process and its descendants in bytes.
fn memory_of_tree(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = kibibytes.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().filter_map(|id| id.parse().ok());
    kibibytes.unwrap_or(0) * 1024 + children.map(memory_of_tree).sum::<u64>()
}
