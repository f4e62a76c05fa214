//! End of a run: summary, exit code, or an error if there are no verdicts.

use std::path::Path;

use acem3_experts::prompt::Form;
use anyhow::{Context, bail};
use serde::Serialize;

use crate::analysis::audit::ThresholdResult;
use crate::analysis::correctness::{AccuracyReport, GradedRun};
use crate::cli::args::{JudgeArgs, OutputFormat};
use crate::cli::commands::output::{NO_CASES, write_stdout};
use crate::data::cases::UnscoredReason;
use crate::data::cases::case::MARKED_LOCAL_ONLY;
use crate::judging::judge::server_report::NO_IMAGES_HINT;
use crate::judging::run::pairs::{BASELINE_HINT, NO_REFERENCE};
use crate::judging::run::summary::Summary;
use crate::judging::run::summary::counts::RunCounts;
use crate::judging::run::summary::tally::Tally;
use crate::judging::run::summary::unscored_causes::UnscoredCause;
use crate::statistics::Bootstrap;
use crate::support::tables::TableStyle;
use crate::support::terminal::exit::{Exit, split_hints};
use crate::support::terminal::progress::Progress;
use crate::support::text::format_count;

/// Returns an error if no case could be read.
pub(super) fn check_not_empty(args: &JudgeArgs, tally: &Tally) -> anyhow::Result<()> {
    let counts = &tally.counts;
    let is_input_problem =
        |reason: &UnscoredReason| matches!(reason, UnscoredReason::Parse | UnscoredReason::Image);
    if counts.judged > 0 || !counts.unscored.keys().all(is_input_problem) {
        return Ok(());
    }
    let path = args.source.path.display();
    if counts.records == 0 {
        bail!("{path}: {NO_CASES}");
    }
    let (records, first) = match tally.causes.most_common() {
        Some(cause) => (cause.records, cause.first_message.as_str()),
        None => (0, ""),
    };
    let (reason, hint) = first.split_once("\nhint: ").unwrap_or((first, ""));
    // The check of the input knows neither form nor judge, so it finds nothing wrong.
    let check_hint = if [BASELINE_HINT, NO_IMAGES_HINT].contains(&hint) || reason == NO_REFERENCE {
        String::new()
    } else {
        format!(
            "hint: run `acem3 data check {}` to list all problems",
            args.source.to_shell_words()
        )
    };
    let reason = if records == counts.judged_or_unscored() {
        anyhow::Error::msg(reason.to_owned())
    } else {
        anyhow::Error::msg(format!("for {records} of them: {reason}"))
    };
    Err(reason.context(format!(
        "{path}: none of {} could be judged\n{}{check_hint}",
        format_count(counts.judged_or_unscored(), "record"),
        if hint.is_empty() { String::new() } else { format!("hint: {hint}\n") }
    )))
}

/// The summary as JSON, with the accuracy of the models in the form `correctness`.
#[derive(Serialize)]
struct SummaryOutput<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<&'a AccuracyReport>,
}

/// Prints the summary of a run with its records in folder `out`.
pub(in crate::cli::commands) fn print_summary(
    out: &Path,
    format: OutputFormat,
    summary: &Summary,
) -> anyhow::Result<()> {
    let accuracy = match summary.form {
        // A shard may have no response.
        Form::Correctness if summary.counts.judged > 0 => {
            let run = GradedRun::read(out)?;
            Some(AccuracyReport::new(&[run], Bootstrap::default())?)
        }
        Form::Correctness | Form::Pair | Form::Single | Form::List => None,
    };
    let accuracy = accuracy.as_ref();
    let text = match format {
        OutputFormat::Text => {
            let table = accuracy.map(AccuracyReport::model_table);
            summary.to_text(TableStyle::terminal(), table.as_ref())
        }
        OutputFormat::Json => {
            let output = SummaryOutput { summary, accuracy };
            serde_json::to_string_pretty(&output).context("cannot write the summary")? + "\n"
        }
    };
    write_stdout(&text)
}

/// Compares the counts with `--max-unscored`, in percent.
pub(in crate::cli::commands) fn check_unscored(limit: f64, counts: &RunCounts) -> ThresholdResult {
    let (unscored, unreadable) = (counts.unscored_percent(), counts.unreadable_percent());
    let largest = unscored.max(unreadable);
    let is_empty = counts.judged_or_unscored() + counts.unreadable == 0;
    let all_unscored = counts.judged == 0 && limit < 100.0 && !is_empty;
    let summary = if all_unscored {
        "all records are unscored".to_owned()
    } else if unscored > limit {
        format!("{unscored:.1} % of the records are unscored, more than --max-unscored {limit}")
    } else if unreadable > limit {
        format!("{unreadable:.1} % of the cases cannot be read, more than --max-unscored {limit}")
    } else {
        format!(
            "{unscored:.1} % of the records are unscored and {unreadable:.1} % of the cases cannot \
             be read, at most --max-unscored {limit}"
        )
    };
    ThresholdResult {
        flag: "--max-unscored".to_owned(),
        limit,
        value: Some(largest),
        failed: all_unscored || largest > limit,
        summary,
    }
}

/// Returns the exit code, and prints the most common cause if too many records are unscored.
pub(super) fn exit_status(
    result: &ThresholdResult,
    Tally { counts, causes, .. }: &Tally,
    progress: &Progress,
) -> Exit {
    if !result.failed {
        return Exit::Done;
    }
    let cause = causes.most_common().map_or_else(String::new, describe_cause);
    let is_judged_again = |reason: &UnscoredReason| {
        matches!(reason, UnscoredReason::Transport | UnscoredReason::Format)
    };
    // The same judge never gets these cases.
    let is_local_only = cause.contains(MARKED_LOCAL_ONLY);
    let again = if counts.unscored.keys().any(is_judged_again) && !is_local_only {
        "\nhint: run the same command again when the server works: it judges records with the reasons transport and \
         format again"
    } else {
        ""
    };
    let kept = if counts.unscored.contains_key(&UnscoredReason::Refused) {
        "\nhint: records with the reason refused are kept; to request them again, judge into another --out"
    } else {
        ""
    };
    let all_reasons =
        if progress.is_verbose() { "" } else { "run again with --verbose to see all reasons, or " };
    progress.warn(&format!(
        "{}{cause}{again}{kept}\nhint: {all_reasons}accept this with --max-unscored {:.0}",
        result.summary,
        result.value.unwrap_or(100.0).ceil()
    ));
    Exit::Unscored
}

/// Describes a cause with its hints, each on a line of its own.
fn describe_cause(cause: &UnscoredCause) -> String {
    let (reason, hints) = split_hints(&cause.first_message);
    let count = format_count(cause.records, "record");
    let first = match cause.records {
        1 => format!("\n  for example: {reason}"),
        _ => format!("\n  most often ({count}): {reason}"),
    };
    std::iter::once(first.as_str()).chain(hints).collect::<Vec<_>>().join("\n")
}
