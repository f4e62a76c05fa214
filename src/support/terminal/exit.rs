//! Exit codes and error messages.
//!
//! An error is printed as one line per cause, then its `hint:` lines. Only the first line of a
//! cause is printed, because the text of a candle error contains a backtrace if `RUST_BACKTRACE=1`
//! is set. TOML errors start with the position and end with the reason, so both lines are printed.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::support::network::url_secrets::hide_url_secrets;
use crate::support::text::cut::cut_message;
use crate::support::text::escape_control_chars;

/// The meaning of an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Done,
    /// A check failed.
    Failed,
    /// Invalid usage or input.
    Usage,
    /// More unscored records than allowed.
    Unscored,
    /// The run failed; completed verdicts are saved and the same command resumes.
    RunFailed,
    /// Interrupted; the same command resumes.
    Interrupted,
}

impl Exit {
    /// Returns the exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unscored => 3,
            Self::RunFailed => 4,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Marks an error of the run, not of its input: `error.context(RunFailure(..))` exits with
/// [`Exit::RunFailed`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RunFailure(pub String);

/// Marks an interrupted run, with a note on its results; exits with [`Exit::Interrupted`].
#[derive(Debug, thiserror::Error)]
#[error("interrupted; {0}")]
pub struct Interrupted(pub &'static str);

/// Marks a closed stdout, for example by `| head`; exits with [`Exit::Done`].
#[derive(Debug, thiserror::Error)]
#[error("stdout is closed")]
pub struct ClosedStdout;

/// Splits a message into its first line and its hints.
pub fn split_hints(message: &str) -> (&str, Vec<&str>) {
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    (first, lines.filter(|line| line.starts_with("hint:")).collect())
}

/// Adds a line `hint: …` to an error, unless one of its causes has one.
pub fn with_hint(error: anyhow::Error, hint: &str) -> anyhow::Error {
    let has_hint = |text: String| text.lines().any(|line| line.trim().starts_with("hint:"));
    if error.chain().any(|cause| has_hint(cause.to_string())) {
        return error;
    }
    // A cause that consists of a hint adds no line to the message.
    error.context(format!("hint: {hint}"))
}

/// Prints the error of a command, if there is one, and returns the exit code.
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
    let exit = exit_for(&error);
    // A closed stderr cannot be reported.
    let _ = io::stderr().write_all(render_error(&error).as_bytes());
    exit.into()
}

fn exit_for(error: &anyhow::Error) -> Exit {
    let marked = error.downcast_ref::<RunFailure>().is_some();
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
    if marked || causes.any(is_full) { Exit::RunFailed } else { Exit::Usage }
}

/// Returns true if the disk is full: the command is valid and can be run again.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// Returns the error as printed.
pub fn render_error(error: &anyhow::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut hints: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.clone().find(|line| !line.starts_with("hint:"));
        hints.extend(lines.by_ref().filter(|l| l.starts_with("hint:")).map(str::to_owned));
        let Some(first) = first else { continue };
        // Skip causes that an earlier cause already quotes.
        if !causes.iter().any(|printed| printed.contains(first)) {
            causes.push(toml_cause(first, &text).unwrap_or_else(|| first.to_owned()));
        }
    }
    let mut text = String::new();
    for (i, cause) in causes.iter().enumerate() {
        let prefix = if i == 0 { "error: " } else { "  because: " };
        let _ = writeln!(text, "{prefix}{}", printable(cause));
    }
    hints.dedup();
    for hint in hints {
        let _ = writeln!(text, "{}", printable(&hint));
    }
    text
}

/// Returns a line of an error without control characters, and without credentials in URLs that the
/// user passed where a path or an id is expected.
fn printable(line: &str) -> String {
    let line = escape_control_chars(line);
    cut_message(&hide_url_secrets(&line)).into_owned()
}

/// Returns position and reason of a TOML error: its first and last line. Between them are the
/// quoted line, after its number and a bar, and a mark below it.
fn toml_cause(first: &str, text: &str) -> Option<String> {
    let position = first.strip_prefix("TOML parse error ")?;
    let quoted = |line: &str| -> Option<String> {
        let rest = line.trim_start_matches(|c: char| c.is_numeric() || c == ' ');
        Some(rest.strip_prefix('|')?.trim().to_owned())
    };
    let mut lines = text.lines().map(str::trim);
    let quoted_line = lines.clone().find_map(|line| quoted(line).filter(|text| !text.is_empty()));
    let reason = lines.rfind(|line| {
        !line.is_empty() && quoted(line).is_none() && !line.starts_with("hint:") && *line != first
    })?;
    // The name of a Rust type does not help the user.
    let reason = reason.replace(" as i128", "");
    let quoted_line = quoted_line.map_or_else(String::new, |line| format!(", `{line}`"));
    Some(format!("{position}{quoted_line}: {reason}"))
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn errors_have_one_line_per_cause_then_hints() {
        let error = anyhow!("unknown tensor `a`\n   0: backtrace::frame\n   1: main")
            .context("panel/config.toml: expected 4 members, got 3\nhint: acem3 panel inspect");
        assert_eq!(
            render_error(&error),
            "error: panel/config.toml: expected 4 members, got 3\n  because: unknown tensor `a`\n\
             hint: acem3 panel inspect\n"
        );
    }

    #[test]
    fn toml_errors_keep_their_reason() {
        let broken = toml::from_str::<toml::Table>("seed = \nb = 1\n").unwrap_err();
        let reason = broken.message().lines().last().unwrap().to_owned();
        let text = render_error(&anyhow::Error::new(broken).context("train.toml: not a recipe"));
        let (place, _) = text.split_once(&reason).expect("the reason is missing");
        assert!(
            place.starts_with("error: train.toml: not a recipe\n  because: at line 1"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn hint_is_added_once() {
        let plain = with_hint(anyhow!("torn").context("x.bin"), "fetch it again");
        let expected = "error: x.bin\n  because: torn\nhint: fetch it again\n";
        assert_eq!(render_error(&plain), expected);
        assert_eq!(render_error(&with_hint(plain, "another")), expected);
    }

    #[test]
    fn credentials_in_urls_are_hidden() {
        let error =
            anyhow!("no such panel\nhint: https://k3y@host").context("--panel https://u:k3y@h/a");
        let text = render_error(&error);
        assert!(text.contains("https://…@h/a") && !text.contains("k3y"), "{text}");
    }

    #[test]
    fn repeated_causes_are_skipped() {
        let error = anyhow!("no space").context("cannot write x: no space");
        assert_eq!(render_error(&error), "error: cannot write x: no space\n");
    }

    #[test]
    fn only_marked_errors_are_run_failures() {
        assert_eq!(exit_for(&anyhow!("bad flag")), Exit::Usage);
        let marked = anyhow!("cuda").context(RunFailure("the judge failed".to_owned()));
        assert_eq!(exit_for(&marked.context("at case 3")), Exit::RunFailed);
    }

    #[test]
    fn full_disk_is_a_run_failure() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(exit_for(&anyhow!(full).context("cannot write x")), Exit::RunFailed);
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(exit_for(&anyhow!(denied).context("cannot write x")), Exit::Usage);
    }

    #[test]
    fn closed_stdout_is_success() {
        assert_eq!(finish(Err(ClosedStdout.into())), ExitCode::SUCCESS);
        let elsewhere = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(exit_for(&anyhow!(elsewhere)), Exit::Usage);
    }
}
