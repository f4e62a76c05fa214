//! `--junit FILE`: the results of thresholds for continuous integration.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::analysis::audit::ThresholdResult;
use crate::support::files::junit::{JUNIT_FORM, JunitCase, JunitOutcome, JunitSuite};
use crate::support::files::out_file::OutFile;

/// Checks the file of `--junit`, which must not be an input.
pub(super) fn check_junit(path: Option<&PathBuf>, inputs: &[&Path]) -> Result<Option<OutFile>> {
    path.map(|path| OutFile::check_flag("--junit", path, JUNIT_FORM, inputs)).transpose()
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
