//! Bounds of `acem3 agree`: their JUnit file and the exit code.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::verdict_input::records_file;
use crate::analysis::audit::ThresholdResult;
use crate::cli::args::AgreeArgs;
use crate::cli::commands::junit::{check_junit, write_junit};
use crate::support::files::out_file::OutFile;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::print_lines;

/// Checks the file of `--junit`.
pub(super) fn check_junit_file(args: &AgreeArgs) -> Result<Option<OutFile>> {
    let records = records_file(&args.records);
    let against = args.against.as_deref().map(records_file);
    let inputs = [Some(&records), against.as_ref(), args.labels.path.as_ref()];
    let inputs: Vec<&Path> = inputs.into_iter().flatten().map(PathBuf::as_path).collect();
    check_junit(args.junit.as_ref(), &inputs)
}

/// Writes the JUnit file, prints the bounds that are not met, and returns the exit code.
pub(super) fn finish_bounds(
    junit: Option<&OutFile>,
    properties: Vec<(&'static str, String)>,
    bounds: &[ThresholdResult],
) -> Result<Exit> {
    write_junit(junit, "acem3 agree", properties, bounds)?;
    let mut failed = bounds.iter().filter(|bound| bound.failed).peekable();
    let exit = if failed.peek().is_some() { Exit::Failed } else { Exit::Done };
    failed.for_each(|bound| print_lines(&bound.summary));
    Ok(exit)
}
