//! Starts isolated processes and asks them.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufReader, Read as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use serde::Serialize;

use super::limits::{CPU_SECONDS, MEMORY_BYTES};
use super::message::{self, Message};

/// First argument of an isolated process. The second is the name of its task.
pub const ISOLATED_ARGUMENT: &str = "isolated-process";
/// Maximum length of the error output that is examined, in bytes.
const MAX_ERROR_BYTES: u64 = 4096;

/// The program to start, once isolation is enabled.
static PROGRAM: OnceLock<OsString> = OnceLock::new();

/// Makes the program parse untrusted files in isolated processes.
///
/// Only the program itself calls this. In programs that use the library, and in tests, files are
/// parsed in the same process, because their executable does not have the task.
pub fn enable() {
    // On Linux, this path still names the running program after its file was replaced.
    let own_link = std::path::Path::new("/proc/self/exe");
    let program = if own_link.exists() {
        Some(own_link.as_os_str().to_owned())
    } else {
        std::env::current_exe().ok().map(std::path::PathBuf::into_os_string)
    };
    if let Some(program) = program {
        let _ = PROGRAM.set(program);
    }
}

/// Returns true after [`enable`].
pub fn is_enabled() -> bool {
    PROGRAM.get().is_some()
}

/// Returns the name of the task if this process was started as an isolated process.
pub fn requested_task() -> Option<OsString> {
    let mut arguments = std::env::args_os().skip(1);
    arguments.next().filter(|argument| argument == ISOLATED_ARGUMENT)?;
    arguments.next()
}

/// Why an isolated process did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessFailure {
    /// The process could not be started.
    NotStarted(String),
    /// The request used more CPU time than allowed.
    CpuTime,
    /// The request used more memory than allowed.
    Memory,
    /// Another process ended it.
    Killed,
    /// The process ended in another way, for example after a stack overflow.
    Crashed(String),
}

impl fmt::Display for ProcessFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(problem) => write!(
                f,
                "the process that reads it cannot be started: {problem}\n\
                 hint: check the limits on processes and memory"
            ),
            Self::CpuTime => write!(
                f,
                "reading it takes more than {CPU_SECONDS} seconds of CPU time\n\
                 hint: convert it to a plain file, for example PNG for an image"
            ),
            Self::Memory => write!(
                f,
                "reading it takes more than {} MiB of memory\n\
                 hint: reduce it, or convert it to a plain file, for example PNG for an image",
                MEMORY_BYTES >> 20
            ),
            Self::Killed => write!(
                f,
                "the process that reads it was killed twice\n\
                 hint: check whether the system runs out of memory"
            ),
            Self::Crashed(status) => write!(
                f,
                "reading it crashes the decoder ({status})\nhint: the file is damaged; export it again"
            ),
        }
    }
}

/// An isolated process. It ends when this is dropped.
#[derive(Debug)]
pub struct IsolatedProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl IsolatedProcess {
    /// Starts a process for a task.
    ///
    /// # Errors
    /// The process cannot be started, or isolation is not enabled.
    pub fn start(task: &str) -> Result<Self, ProcessFailure> {
        let program = PROGRAM
            .get()
            .ok_or_else(|| ProcessFailure::NotStarted("isolation is not enabled".into()))?;
        let mut command = Command::new(program);
        command.args([ISOLATED_ARGUMENT, task]);
        Self::start_command(command)
    }

    /// Starts a command that answers messages.
    fn start_command(mut command: Command) -> Result<Self, ProcessFailure> {
        let not_started = |error: io::Error| ProcessFailure::NotStarted(error.to_string());
        command
            // More threads would reserve address space.
            .env("RAYON_NUM_THREADS", "1")
            .env("MALLOC_ARENA_MAX", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // An interrupt from the terminal is for the program. It finishes the current batch.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(not_started)?;
        let input = child.stdin.take();
        let output = child
            .stdout
            .take()
            .ok_or_else(|| ProcessFailure::NotStarted("it has no standard output".to_owned()))?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Sends a request and returns the answer.
    ///
    /// # Errors
    /// The process ended. Its other requests fail too.
    pub fn ask(
        &mut self,
        header: &impl Serialize,
        body: &[u8],
        max_answer_bytes: u64,
    ) -> Result<Message, ProcessFailure> {
        let sent = match &mut self.input {
            Some(input) => message::write(input, header, body),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        let answer = sent.and_then(|()| Message::read(&mut self.output, max_answer_bytes));
        match answer {
            Ok(Some(answer)) => Ok(answer),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(ProcessFailure::Crashed(error.to_string()))
            }
            Ok(None) | Err(_) => Err(self.failure()),
        }
    }

    /// Waits for the end of the process and returns the reason.
    fn failure(&mut self) -> ProcessFailure {
        self.input = None;
        let mut errors = Vec::new();
        if let Some(stream) = self.child.stderr.take() {
            // What cannot be read is not needed.
            let _ = stream.take(MAX_ERROR_BYTES).read_to_end(&mut errors);
        }
        let errors = String::from_utf8_lossy(&errors);
        match self.child.wait() {
            Ok(status) => describe_end(status, &errors),
            Err(error) => ProcessFailure::Crashed(error.to_string()),
        }
    }
}

impl Drop for IsolatedProcess {
    fn drop(&mut self) {
        // The process ends when its input does, unless it is busy with a request.
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the reason why a process ended. `errors` is its error output.
fn describe_end(status: ExitStatus, errors: &str) -> ProcessFailure {
    // The message of the standard library before it aborts.
    if errors.contains("memory allocation of") {
        return ProcessFailure::Memory;
    }
    #[cfg(unix)]
    {
        use rustix::process::Signal;
        use std::os::unix::process::ExitStatusExt as _;
        let is_any = |signals: &[Signal]| {
            status.signal().is_some_and(|number| signals.iter().any(|s| s.as_raw() == number))
        };
        if is_any(&[Signal::XCPU]) {
            return ProcessFailure::CpuTime;
        }
        if is_any(&[Signal::KILL, Signal::TERM, Signal::HUP, Signal::INT]) {
            return ProcessFailure::Killed;
        }
    }
    ProcessFailure::Crashed(status.to_string())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    /// Asks a shell script and returns the failure.
    fn failure_of(script: &str) -> ProcessFailure {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut process = IsolatedProcess::start_command(command).unwrap();
        process.ask(&"request", b"body", 10).unwrap_err()
    }

    #[test]
    fn the_end_of_a_process_is_an_error_with_its_reason() {
        assert_eq!(failure_of("kill -KILL $$"), ProcessFailure::Killed);
        assert_eq!(failure_of("kill -XCPU $$"), ProcessFailure::CpuTime);
        let out_of_memory = "echo 'memory allocation of 9 bytes failed' >&2; kill -ABRT $$";
        assert_eq!(failure_of(out_of_memory), ProcessFailure::Memory);
        let crash = failure_of("kill -SEGV $$");
        assert!(matches!(&crash, ProcessFailure::Crashed(status) if status.contains("signal")));
        assert!(crash.to_string().contains("hint: "), "{crash}");
        assert!(matches!(failure_of("exit 3"), ProcessFailure::Crashed(_)));
        assert!(matches!(failure_of("printf '%0100d' 1"), ProcessFailure::Crashed(_)));
    }

    #[test]
    fn missing_program_is_not_started() {
        let command = Command::new("/nonexistent/program");
        let failure = IsolatedProcess::start_command(command).err().unwrap();
        assert!(matches!(failure, ProcessFailure::NotStarted(_)), "{failure:?}");
    }
}
