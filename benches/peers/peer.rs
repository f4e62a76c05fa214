//! An engine in a process of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result};

/// Returns the command that runs a script of this folder with the Python of an environment.
pub(crate) fn python(environment: &Path, script: &str) -> Command {
    let mut command = Command::new(environment.join("bin/python"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers").join(script));
    command
}

/// Returns the command that runs this program with a number of threads.
pub(crate) fn own_worker(threads: usize) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env("RAYON_NUM_THREADS", threads.to_string());
    Ok(command)
}

/// A running engine that answers jobs.
pub(crate) struct Peer {
    /// Name of the engine.
    pub(crate) engine: &'static str,
    /// Type of its weights.
    pub(crate) dtype: String,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts an engine and waits until it has loaded the model.
    pub(crate) fn start(engine: &'static str, dtype: &str, mut command: Command) -> Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{engine}: cannot start"))?;
        let input = process.stdin.take().context("no input")?;
        let output = BufReader::new(process.stdout.take().context("no output")?);
        let mut peer = Self { engine, dtype: dtype.to_owned(), process, input, output };
        peer.read_line()?;
        Ok(peer)
    }

    /// Runs a job and returns its number.
    pub(crate) fn run(&mut self, job: &str) -> Result<f64> {
        writeln!(self.input, "{job}")?;
        self.input.flush()?;
        let line = self.read_line()?;
        line.trim().parse().with_context(|| format!("{} wrote `{line}`", self.engine))
    }

    /// Returns the peak memory of the process in bytes. `None` except on Linux.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    }

    /// Sets the peak memory of the process to the memory in use. Does nothing except on Linux.
    pub(crate) fn reset_peak_memory(&self) {
        // Elsewhere there is no such file, and `peak_memory` returns `None`.
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.process.id()), "5");
    }

    fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        let bytes = self.output.read_line(&mut line)?;
        (bytes > 0).then_some(line).with_context(|| format!("{} stopped", self.engine))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The process may have stopped already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
