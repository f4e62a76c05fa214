//! What a run that went through its input amounts to: a summary and an exit code, or a failure.

use anyhow::{Context, bail};

use crate::cli::args::{JudgeArgs, OutputFormat};
use crate::data::cases::UnscoredReason;
use crate::judging::run::manifest::RunCounts;
use crate::judging::run::pairs::CHECK_BASELINE;
use crate::judging::run::summary::Summary;
use crate::judging::run::tally::Tally;
use crate::support::tables::TableStyle;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::Progress;
use crate::support::text::plural;

/// A run in which nothing could be read has failed, however quietly.
pub(super) fn check_any(args: &JudgeArgs, tally: &Tally) -> anyhow::Result<()> {
    let counts = &tally.counts;
    let input =
        |reason: &UnscoredReason| matches!(reason, UnscoredReason::Parse | UnscoredReason::Image);
    if counts.judged > 0 || !counts.unscored.keys().all(input) {
        return Ok(());
    }
    let path = args.source.path.display();
    if counts.records == 0 {
        bail!("{path}: there is no case in it\nhint: `acem3 judge --help` shows what is read");
    }
    let (records, first) = match tally.causes.most_common() {
        Some(cause) => (cause.records, cause.first.as_str()),
        None => (0, ""),
    };
    let (reason, hint) = first.split_once("\nhint: ").unwrap_or((first, ""));
    let check = if hint == CHECK_BASELINE {
        String::new()
    } else {
        format!(
            "hint: `acem3 data check {}` says what is wrong with each",
            args.source.typed()
        )
    };
    let reason = if records == counts.scorable() {
        anyhow::Error::msg(reason.to_owned())
    } else {
        anyhow::Error::msg(format!("of {records} of them: {reason}"))
    };
    Err(reason.context(format!(
        "{path}: none of {} could be judged\n{}{check}",
        plural(counts.scorable(), "record"),
        if hint.is_empty() {
            String::new()
        } else {
            format!("hint: {hint}\n")
        }
    )))
}

pub(super) fn print(args: &JudgeArgs, summary: &Summary) -> anyhow::Result<()> {
    let text = match args.format {
        OutputFormat::Text => summary.text(TableStyle::terminal()),
        OutputFormat::Json => {
            serde_json::to_string_pretty(summary).context("cannot write the summary")? + "\n"
        }
    };
    crate::cli::commands::print(&text)
}

/// The exit code, and a word where it is not the best.
pub(super) fn exit(args: &JudgeArgs, counts: &RunCounts, progress: &Progress) -> Exit {
    let percent = counts.unscored_percent();
    match args.max_unscored {
        None if counts.judged == 0 => {
            progress.warn(
                "there is not one verdict\n\
                 hint: run again with --verbose to see why; --max-unscored 100 takes it for done",
            );
            Exit::Unscored
        }
        Some(most) if percent > most => {
            progress.warn(&format!(
                "{percent:.1} % of the records have no verdict, more than --max-unscored {most}\n\
                 hint: run again with --verbose to see why"
            ));
            Exit::Unscored
        }
        _ => Exit::Done,
    }
}
