//! `acem3 merge`: joins the records of all shards of a source.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::judge::exit::{check_unscored, print_summary};
use super::junit::{check_junit, write_junit};
use crate::cli::args::MergeArgs;
use crate::data::cases::UnscoredReason;
use crate::judging::merge::{MergedRun, ShardSet, merge};
use crate::judging::run::journal::RECORDS;
use crate::judging::run::summary::Summary;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::format_count;

/// Runs the command.
pub(super) fn run(args: &MergeArgs, verbosity: Verbosity) -> Result<Exit> {
    let inputs: Vec<PathBuf> = args.shards.iter().map(|folder| folder.join(RECORDS)).collect();
    let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    let junit = check_junit(args.junit.as_ref(), &inputs)?;
    let set = ShardSet::open(&args.shards, args.partial)?;
    let MergedRun { manifest, tally, form } = merge(&set, &args.out)?;
    manifest.warning.iter().for_each(|text| print_lines(&format!("warning: {text}")));
    set.describe_missing().iter().for_each(|line| print_lines(&format!("--partial: {line}")));
    if !verbosity.quiet {
        print_lines(&format!(
            "{}: {} of {}",
            args.out.join(RECORDS).display(),
            format_count(tally.counts.records, "record"),
            format_count(args.shards.len() as u64, "shard")
        ));
    }
    let counts = &tally.counts;
    if let Some(n) = counts.unscored.get(&UnscoredReason::Transport) {
        print_lines(&format!(
            "{} unscored because the judge could not be reached; run the commands of the shards again, \
             and merge into a new folder",
            format_count(*n, "record")
        ));
    }
    let path = args.out.join(RECORDS);
    let summary = Summary::from_tally(&tally, manifest.judge.clone(), form, &path);
    print_summary(&args.out, args.format, &summary)?;
    let result = check_unscored(args.max_unscored, counts);
    let properties = vec![("source", manifest.source.path.clone()), ("judge", manifest.judge)];
    write_junit(junit.as_ref(), "acem3 merge", properties, std::slice::from_ref(&result))?;
    if !result.failed {
        return Ok(Exit::Done);
    }
    print_lines(&format!(
        "{}\nhint: `acem3 judge` with --verbose and the flags of a shard shows its reasons; accept this \
         with --max-unscored {:.0}",
        result.summary,
        result.value.unwrap_or(100.0).ceil()
    ));
    Ok(Exit::Unscored)
}
