//! Whole outputs of the program, compared with the files in `tests/snapshots`.
//!
//! CONTRIBUTING.md says how to review and accept a change. On CI (`CI` is set) a difference only
//! fails; elsewhere the new output also lies beside the old one, as `NAME.snap.new`.

mod demo;
mod errors;
mod help;
mod labels;
mod mask;

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::folder::{Folder, Said, said};

/// The columns of the terminal that help pages and tables are made for.
const COLUMNS: usize = 80;
/// Beginnings of the names of variables, in capitals, that change what the program does or how it prints.
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

/// The snapshots of one folder below `tests/snapshots`.
struct Snapshots {
    folder: PathBuf,
    seen: BTreeSet<String>,
    faults: Vec<String>,
}

impl Snapshots {
    fn of(group: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self {
            folder: root.join("tests/snapshots").join(group),
            seen: BTreeSet::new(),
            faults: Vec::new(),
        }
    }

    /// Compares an output with its snapshot. A difference fails in [`Self::finish`], so that one run shows
    /// all of them.
    fn check(&mut self, name: &str, text: &str) {
        assert!(self.seen.insert(name.to_owned()), "{name} is used twice");
        let mut settings = insta::Settings::new();
        settings.set_snapshot_path(&self.folder);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let compare = || settings.bind(|| insta::assert_snapshot!(name, text));
        if catch_unwind(AssertUnwindSafe(compare)).is_err() {
            self.faults.push(format!("{name}: the output differs"));
        }
    }

    /// Counts a snapshot as used though this build cannot make its output.
    fn skip(&mut self, name: &str) {
        self.seen.insert(name.to_owned());
    }

    /// Fails if an output differs from its snapshot, or a snapshot belongs to no output.
    fn finish(mut self) {
        let updates = std::env::var("INSTA_UPDATE").is_ok_and(|mode| mode == "always");
        for entry in fs::read_dir(&self.folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let snapshot = name.strip_suffix(".snap");
            let unused = snapshot.is_some_and(|name| !self.seen.contains(name));
            let pending = updates && name.ends_with(".snap.new");
            if !unused && !pending {
                continue;
            }
            if updates {
                fs::remove_file(path).unwrap();
            } else {
                self.faults.push(format!("{name}: no output has this name"));
            }
        }
        let folder = self.folder.display();
        let accept = "INSTA_UPDATE=always cargo test -p acem3 --test it snapshots";
        let faults = self.faults.join("\n");
        assert!(
            self.faults.is_empty(),
            "{folder}\n{faults}\nto accept: {accept}"
        );
    }
}

/// Runs the program as in a terminal of [`COLUMNS`], apart from the environment of the tests.
fn run(folder: &Folder, args: &[&str], columns: usize, environment: &[(&str, &str)]) -> Said {
    let mut command = folder.command(args);
    for (name, _) in std::env::vars_os() {
        let capitals = name.to_string_lossy().to_uppercase();
        if UNSET.iter().any(|start| capitals.starts_with(start)) {
            command.env_remove(name);
        }
    }
    command
        .env("COLUMNS", columns.to_string())
        .env("HOME", folder.path(""))
        .env("NO_COLOR", "1")
        .env("RAYON_NUM_THREADS", "2")
        .envs(environment.iter().copied());
    said(&command.output().unwrap())
}

/// What a person sees who types the command, which is words separated by spaces; in the environment's
/// form `NAME=value` before `acem3` where there is any.
fn transcript(folder: &Folder, command: &str) -> String {
    let words = command.split(' ').filter(|word| !word.is_empty());
    let (settings, args): (Vec<&str>, Vec<&str>) =
        words.partition(|word| word.starts_with(char::is_uppercase) && word.contains('='));
    let environment: Vec<_> = settings.iter().filter_map(|s| s.split_once('=')).collect();
    let said = run(folder, &args, COLUMNS, &environment);
    let typed = [&settings[..], &["acem3"], &args].concat().join(" ");
    mask::mask(folder, &layout(&typed, &said))
}

/// A command, its exit code, and what it wrote.
fn layout(typed: &str, said: &Said) -> String {
    let mut text = format!("$ {typed}\nexit code {}\n", said.code);
    for (name, stream) in [("stdout", &said.out), ("stderr", &said.err)] {
        if !stream.is_empty() {
            text.extend(["\n--- ", name, " ---\n", stream]);
        }
    }
    text
}
