//! Test helper: a temporary folder with cases, and runs of the program in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// A temporary folder with the input `cases/` and the outputs of runs.
pub(crate) struct Folder {
    dir: tempfile::TempDir,
}

/// Exit code and output of a finished program.
pub(crate) struct ProgramOutput {
    /// Exit code; -1 if a signal ended the program.
    pub(crate) exit_code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Folder {
    /// Creates a folder without cases.
    pub(crate) fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("cases/images")).unwrap();
        Self { dir }
    }

    /// Creates a folder with `n` valid cases, two per image.
    pub(crate) fn with_cases(n: usize) -> Self {
        let folder = Self::empty();
        for i in 0..n.div_ceil(2) {
            let pixel = image::Luma([u8::try_from(i % 256).unwrap()]);
            let picture = image::GrayImage::from_pixel(3, 2, pixel);
            picture.save(folder.path(&format!("cases/images/{i}.png"))).unwrap();
        }
        let cases: Vec<Value> = (0..n).map(valid_case).collect();
        folder.write_cases(&cases);
        folder
    }

    /// Returns a path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes `cases/cases.jsonl`.
    pub(crate) fn write_cases(&self, cases: &[Value]) {
        let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
        self.write("cases/cases.jsonl", &(lines.join("\n") + "\n"));
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a file of bytes.
    pub(crate) fn write_bytes(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns the records of an output folder.
    pub(crate) fn records(&self, out: &str) -> Vec<Value> {
        let text = self.read(&format!("{out}/records.jsonl"));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the records of an output folder as earlier versions wrote them: without checksums.
    pub(crate) fn unchecked_records(&self, out: &str) -> String {
        let text = self.read(&format!("{out}/records.jsonl"));
        let line = |line: &str| line.rsplit_once(",\"checksum\"").unwrap().0.to_owned() + "}\n";
        text.lines().map(line).collect()
    }

    /// Returns the manifest of an output folder.
    pub(crate) fn manifest(&self, out: &str) -> Value {
        serde_json::from_str(&self.read(&format!("{out}/run.json"))).unwrap()
    }

    /// Returns a command for the program in this folder, without `ACEM3_*` variables.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = program(self.dir.path());
        command.args(args);
        command
    }

    /// Runs `acem3 judge cases --out OUT --panel scripted:` with additional arguments.
    pub(crate) fn judge(&self, out: &str, more: &[&str]) -> ProgramOutput {
        self.run(&[&["judge", "cases", "--out", out, "--panel", "scripted:"], more].concat())
    }

    /// Runs the program and waits until it exits.
    pub(crate) fn run(&self, args: &[&str]) -> ProgramOutput {
        program_output(&self.command(args).output().unwrap())
    }
}

/// Converts the output of a finished process.
pub(crate) fn program_output(output: &Output) -> ProgramOutput {
    ProgramOutput {
        exit_code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout.clone()).unwrap(),
        stderr: String::from_utf8(output.stderr.clone()).unwrap(),
    }
}

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acem3"));
    command.current_dir(folder).stdin(Stdio::null());
    // Wide enough to keep notes on one line.
    command.env("COLUMNS", "1000");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ACEM3_") {
            command.env_remove(name);
        }
    }
    command
}

/// Returns valid case number `i`.
pub(crate) fn valid_case(i: usize) -> Value {
    json!({
        "id": format!("c{i}"),
        "image": format!("images/{}.png", i / 2),
        "question": format!("what is shown in {i}?"),
        "responses": [
            {"model": "alpha", "text": format!("a shadow, {i}")},
            {"model": "beta", "text": format!("nothing, {i}")},
        ],
        "labels": {"final": [4, 1.5]},
        "meta": {"modality": "ct"},
        "note": i,
    })
}
