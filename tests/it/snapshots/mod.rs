//! Snapshot tests: whole outputs of the program, compared with the files in `tests/snapshots`.
//!
//! CONTRIBUTING.md describes how to review and accept a difference. If `CI` is set, a difference
//! only fails the test. Otherwise the new output is also written next to the old one, as
//! `NAME.snap.new`.

mod demo;
mod errors;
mod help;
mod labels;
mod mask;

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::folder::{Folder, ProgramOutput, program_output};

/// Terminal width of the snapshots.
const COLUMNS: usize = 80;
/// Prefixes (upper case) of environment variables that change what the program does or prints.
const UNSET: [&str; 10] = [
    "ALL_PROXY",
    "CLICOLOR",
    "FORCE_COLOR",
    "HF_",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "HUGGINGFACE_",
    "OPENAI_",
    "RUST_",
    "XDG_",
];

/// The snapshots in one folder of `tests/snapshots`.
struct Snapshots {
    folder: PathBuf,
    checked: BTreeSet<String>,
    problems: Vec<String>,
}

impl Snapshots {
    fn open(group: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self {
            folder: root.join("tests/snapshots").join(group),
            checked: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// Compares an output with its snapshot. [`Self::finish`] reports differences, so that one run
    /// shows all of them.
    fn check(&mut self, name: &str, text: &str) {
        assert!(self.checked.insert(name.to_owned()), "{name} is used twice");
        let mut settings = insta::Settings::new();
        settings.set_snapshot_path(&self.folder);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let compare = || settings.bind(|| insta::assert_snapshot!(name, text));
        if catch_unwind(AssertUnwindSafe(compare)).is_err() {
            self.problems.push(format!("{name}: the output differs"));
        }
    }

    /// Marks a snapshot as used although this build cannot produce its output.
    fn skip(&mut self, name: &str) {
        self.checked.insert(name.to_owned());
    }

    /// Fails if an output differs from its snapshot or a snapshot is unused. With
    /// `INSTA_UPDATE=always`, deletes unused and pending snapshots instead.
    fn finish(mut self) {
        let updates = std::env::var("INSTA_UPDATE").is_ok_and(|mode| mode == "always");
        for entry in fs::read_dir(&self.folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let snapshot = name.strip_suffix(".snap");
            let unused = snapshot.is_some_and(|name| !self.checked.contains(name));
            let pending = updates && name.ends_with(".snap.new");
            if !unused && !pending {
                continue;
            }
            if updates {
                fs::remove_file(path).unwrap();
            } else {
                self.problems.push(format!("{name}: unused snapshot"));
            }
        }
        let folder = self.folder.display();
        let accept = "INSTA_UPDATE=always cargo test -p acem3 --test it snapshots";
        let problems = self.problems.join("\n");
        assert!(self.problems.is_empty(), "{folder}\n{problems}\nto accept: {accept}");
    }
}

/// Runs the program with a terminal width, isolated from the environment of the tests.
fn run(
    folder: &Folder,
    args: &[&str],
    columns: usize,
    environment: &[(&str, &str)],
) -> ProgramOutput {
    let mut command = folder.command(args);
    for (name, _) in std::env::vars_os() {
        let upper_case = name.to_string_lossy().to_uppercase();
        if UNSET.iter().any(|prefix| upper_case.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
        .env("COLUMNS", columns.to_string())
        .env("HOME", folder.path(""))
        .env("NO_COLOR", "1")
        .env("RAYON_NUM_THREADS", "2")
        .envs(environment.iter().copied());
    program_output(&command.output().unwrap())
}

/// Runs a command and returns its masked transcript. The words of the command are separated by
/// spaces; `NAME=value` words set the environment.
fn transcript(folder: &Folder, command: &str) -> String {
    let words = command.split(' ').filter(|word| !word.is_empty());
    let (settings, args): (Vec<&str>, Vec<&str>) =
        words.partition(|word| word.starts_with(char::is_uppercase) && word.contains('='));
    let environment: Vec<_> = settings.iter().filter_map(|s| s.split_once('=')).collect();
    let output = run(folder, &args, COLUMNS, &environment);
    let typed = [&settings[..], &["acem3"], &args].concat().join(" ");
    mask::mask(folder, &layout(&typed, &output))
}

/// Formats a command, its exit code and its output.
fn layout(typed: &str, output: &ProgramOutput) -> String {
    let mut text = format!("$ {typed}\nexit code {}\n", output.exit_code);
    for (name, stream) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !stream.is_empty() {
            text.extend(["\n--- ", name, " ---\n", stream]);
        }
    }
    text
}
