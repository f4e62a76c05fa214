//! `--junit FILE`: the results of thresholds for continuous integration.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::analysis::audit::ThresholdResult;
use crate::support::files::junit::{JUNIT_FORM, JunitCase, JunitOutcome, JunitSuite};
use crate::support::files::out_file::OutFile;
use crate::support::network::url_secrets::hide_url_secrets;
use crate::support::terminal::exit::Exit;
use crate::support::text::cut::cut_message;

/// Checks the file of `--junit`, which must not be an input.
pub(super) fn check_junit(path: Option<&PathBuf>, inputs: &[&Path]) -> Result<Option<OutFile>> {
    path.map(|path| OutFile::check_flag("--junit", path, JUNIT_FORM, inputs)).transpose()
}

/// Runs a command that writes the file of `--junit`. If it ends without results, the file says why, so
/// that no file of an earlier run is taken for that of this one.
///
/// # Errors
///
/// The command fails, or the file cannot be written.
pub(super) fn with_junit(
    out: Option<&OutFile>,
    name: &'static str,
    source: String,
    command: impl FnOnce(Option<&OutFile>) -> Result<Exit>,
) -> Result<Exit> {
    let ended = command(out);
    let message = match &ended {
        Err(error) => format!("{error:#}"),
        Ok(Exit::Interrupted) => "interrupted; the same command resumes".to_owned(),
        Ok(_) => return ended,
    };
    let written = out.map_or(Ok(()), |out| {
        let case = JunitCase {
            name: "the command ends with results".to_owned(),
            outcome: JunitOutcome::NotMeasured,
            message: cut_message(&hide_url_secrets(&message)).into_owned(),
        };
        let properties = vec![("source", source)];
        out.write(JunitSuite { name, properties, cases: vec![case] }.to_xml().as_bytes())
    });
    // The error of the command matters more than that of the file.
    ended.and_then(|exit| written.map(|()| exit))
}

/// Writes the results of the thresholds of a command.
pub(super) fn write_junit(
    out: Option<&OutFile>,
    name: &'static str,
    properties: Vec<(&'static str, String)>,
    results: &[ThresholdResult],
) -> Result<()> {
    let Some(out) = out else {
        return Ok(());
    };
    let cases = results.iter().map(|result| JunitCase {
        name: format!("{} {}", result.flag, result.limit),
        outcome: match (result.failed, result.value) {
            (false, _) => JunitOutcome::Passed,
            (true, Some(_)) => JunitOutcome::Failed,
            (true, None) => JunitOutcome::NotMeasured,
        },
        message: result.summary.clone(),
    });
    let suite = JunitSuite { name, properties, cases: cases.collect() };
    out.write(suite.to_xml().as_bytes())
}
