//! How the program ends: exit codes, and errors as a person reads them.
//!
//! An error is shown as one line per cause, then the `hint:` lines that came with it. Only the
//! first line of a cause is shown: with `RUST_BACKTRACE=1` the display of a tensor library's error
//! carries a backtrace, which is not what the person needs. TOML errors begin with the place alone
//! and end with the reason, so of them both lines are shown.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::support::text::printable;

/// What the exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All was done.
    Done,
    /// A threshold or comparison failed.
    Failed,
    /// Bad usage or input.
    Usage,
    /// More was left without a verdict than allowed.
    Unscored,
    /// The run failed; what was judged is safe and the same command resumes.
    Engine,
    /// Interrupted; the same command resumes.
    Interrupted,
}

impl Exit {
    /// The number the system sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unscored => 3,
            Self::Engine => 4,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Marks an error as the run's own, not the input's: `error.context(Stopped(..))` ends in
/// [`Exit::Engine`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EngineFailure(pub String);

/// Marks that the person asked to stop, with what becomes of what was done: [`Exit::Interrupted`].
#[derive(Debug, thiserror::Error)]
#[error("interrupted; {0}")]
pub struct Interrupted(pub &'static str);

/// Marks that somebody stopped reading what this program prints, as `| head` does: all is well then.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads on")]
pub struct ClosedStdout;

/// The error with a line `hint: …` that says what to do next, where no cause of it has one.
pub fn advised(error: anyhow::Error, hint: &str) -> anyhow::Error {
    let says = |text: String| text.lines().any(|line| line.trim().starts_with("hint:"));
    if error.chain().any(|cause| says(cause.to_string())) {
        return error;
    }
    // A cause without a first line of its own is no line of the message.
    error.context(format!("hint: {hint}"))
}

/// Ends the program: prints the error, if there is one, and gives the exit code.
pub fn finish(result: anyhow::Result<Exit>) -> ExitCode {
    let error = match result {
        Ok(exit) => return exit.into(),
        Err(error) => error,
    };
    if error.downcast_ref::<ClosedStdout>().is_some() {
        return Exit::Done.into();
    }
    if let Some(interrupted) = error.downcast_ref::<Interrupted>() {
        let _ = writeln!(io::stderr(), "{interrupted}");
        return Exit::Interrupted.into();
    }
    let exit = exit_of(&error);
    // Nobody is left to be told when stderr is gone.
    let _ = io::stderr().write_all(describe(&error).as_bytes());
    exit.into()
}

fn exit_of(error: &anyhow::Error) -> Exit {
    let marked = error.downcast_ref::<EngineFailure>().is_some();
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
    if marked || causes.any(is_full) {
        Exit::Engine
    } else {
        Exit::Usage
    }
}

/// Whether there was no room: that is no fault of the command, and it can be given again.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// The error as it is printed.
pub fn describe(error: &anyhow::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut hints: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.clone().find(|line| !line.starts_with("hint:"));
        hints.extend(
            lines
                .by_ref()
                .filter(|l| l.starts_with("hint:"))
                .map(str::to_owned),
        );
        let Some(first) = first else { continue };
        // An error that prints its source itself would say it twice.
        if !causes.iter().any(|seen| seen.contains(first)) {
            causes.push(toml_cause(first, &text).unwrap_or_else(|| first.to_owned()));
        }
    }
    let mut text = String::new();
    for (i, cause) in causes.iter().enumerate() {
        let lead = if i == 0 { "error: " } else { "  because: " };
        let _ = writeln!(text, "{lead}{}", printable(cause));
    }
    hints.dedup();
    for hint in hints {
        let _ = writeln!(text, "{}", printable(&hint));
    }
    text
}

/// The place and the reason of a TOML error: its first line and its last. Between them are the line
/// itself, behind its number and a bar, and a mark below it.
fn toml_cause(first: &str, text: &str) -> Option<String> {
    let place = first.strip_prefix("TOML parse error ")?;
    let quoted = |line: &str| -> Option<String> {
        let rest = line.trim_start_matches(|c: char| c.is_numeric() || c == ' ');
        Some(rest.strip_prefix('|')?.trim().to_owned())
    };
    let mut lines = text.lines().map(str::trim);
    let at = lines
        .clone()
        .find_map(|line| quoted(line).filter(|text| !text.is_empty()));
    let reason = lines.rfind(|line| {
        !line.is_empty() && quoted(line).is_none() && !line.starts_with("hint:") && *line != first
    })?;
    // The name of a type of this program's language says nothing to the person.
    let reason = reason.replace(" as i128", "");
    let at = at.map_or_else(String::new, |line| format!(", `{line}`"));
    Some(format!("{place}{at}: {reason}"))
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn an_error_is_one_line_per_cause_and_its_hints_last() {
        let error = anyhow!("unknown tensor `a`\n   0: backtrace::frame\n   1: main")
            .context("panel/config.toml: expected 4 members, got 3\nhint: acem3 verify panel");
        assert_eq!(
            describe(&error),
            "error: panel/config.toml: expected 4 members, got 3\n  because: unknown tensor `a`\n\
             hint: acem3 verify panel\n"
        );
    }

    #[test]
    fn a_toml_error_keeps_its_reason() {
        let broken = toml::from_str::<toml::Table>("seed = \nb = 1\n").unwrap_err();
        let reason = broken.message().lines().last().unwrap().to_owned();
        let text = describe(&anyhow::Error::new(broken).context("train.toml: not a recipe"));
        let (place, _) = text.split_once(&reason).expect("the reason is told");
        assert!(
            place.starts_with("error: train.toml: not a recipe\n  because: at line 1"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn advice_is_given_where_there_is_none() {
        let plain = advised(anyhow!("torn").context("x.bin"), "fetch it again");
        let told = "error: x.bin\n  because: torn\nhint: fetch it again\n";
        assert_eq!(describe(&plain), told);
        assert_eq!(describe(&advised(plain, "another")), told);
    }

    #[test]
    fn a_cause_that_was_said_is_not_repeated() {
        let error = anyhow!("no space").context("cannot write x: no space");
        assert_eq!(describe(&error), "error: cannot write x: no space\n");
    }

    #[test]
    fn only_a_marked_error_is_the_engine_s() {
        assert_eq!(exit_of(&anyhow!("bad flag")), Exit::Usage);
        let marked = anyhow!("cuda").context(EngineFailure("the judge failed".to_owned()));
        assert_eq!(exit_of(&marked.context("at case 3")), Exit::Engine);
    }

    #[test]
    fn a_full_disk_is_nobody_s_usage() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(
            exit_of(&anyhow!(full).context("cannot write x")),
            Exit::Engine
        );
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(
            exit_of(&anyhow!(denied).context("cannot write x")),
            Exit::Usage
        );
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        assert_eq!(finish(Err(ClosedStdout.into())), ExitCode::SUCCESS);
        let elsewhere = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(exit_of(&anyhow!(elsewhere)), Exit::Usage);
    }
}
