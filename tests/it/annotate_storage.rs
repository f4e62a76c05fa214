//! A journal that cannot be written: the rater and the terminal say so, and nothing half written remains.

#![cfg(unix)]

use std::fs;
use std::process::{Command, Stdio};

use crate::annotate_site::{Site, command};

/// Returns the command with a limit on the size of files, as if the disk were full.
fn limited(command: &Command) -> Command {
    let mut limited = Command::new("sh");
    // Blocks have 512 bytes. Without the trap, the signal of the limit would end the program.
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"]);
    limited.arg(command.get_program()).args(command.get_args());
    limited.stderr(Stdio::piped());
    limited
}

#[test]
fn failed_write_is_printed_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("out/ratings.jsonl");
    Site::start(dir.path()).kill();
    let mut on_free_port = command(dir.path());
    on_free_port.args(["--listen", "127.0.0.1:0"]);
    let site = Site::start_command(&mut limited(&on_free_port));
    let fields = format!("action=save&comment={}", "x".repeat(600));
    let answer = site.post("dr-lee", "/case/2", &fields);
    assert_eq!(answer.status, 500);
    assert!(answer.text().contains("could not be saved"), "{}", answer.text());
    // The name of the file is for the administrator only.
    assert!(!answer.text().contains("jsonl"));
    assert_eq!(fs::read(&journal).unwrap(), b"");
    let stderr = site.kill();
    assert!(stderr.contains("error: dr-lee, case 2: not saved: cannot write"), "{stderr}");
    assert!(
        stderr.contains("ratings.jsonl: File too large") && stderr.contains("hint: "),
        "{stderr}"
    );
    // With room again, the same form is stored.
    let site = Site::start(dir.path());
    assert_eq!(site.post("dr-lee", "/case/2", &fields).status, 200);
    assert_eq!(fs::read_to_string(&journal).unwrap().lines().count(), 1);
}
