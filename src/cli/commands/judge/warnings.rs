//! Warnings about flags and answers.

use crate::cli::args::JudgeArgs;
use crate::cli::commands::ignored_flags::{flags_ignored_by_form, ignored_flags};
use crate::data::cases::{self, CaseSource, SourceKind};
use crate::judging::judge::server_usage::{ServerUsage, format_cost};
use crate::support::terminal::progress::Progress;
use crate::support::text::format_count;

/// Notes what the requests of a run cost by `--price`.
pub(super) fn note_cost(progress: &Progress, args: &JudgeArgs, usage: Option<ServerUsage>) {
    let prices = args.judge.served.requests.price;
    let Some((usage, prices)) = usage.zip(prices).filter(|(usage, _)| usage.requests > 0) else {
        return;
    };
    progress.note(&match usage.uncounted {
        0 => format!(
            "cost of the run: {} for {}, by --price",
            format_cost(usage.cost(prices)),
            format_count(usage.requests, "request")
        ),
        uncounted => format!(
            "the server stated no tokens for {}, so that the cost of the run is unknown",
            format_count(uncounted, "request")
        ),
    });
}

/// Warns before the first case: cases without an image, misspelt fields, flags without effect, and answers beyond the rows
/// of the data set.
pub(super) fn warn_before_run(
    progress: &Progress,
    source: &mut CaseSource,
    args: &JudgeArgs,
    assumes_image: bool,
) {
    source.take_field_notes().iter().for_each(|note| progress.note(note));
    let ignored = ignored_flags(&args.source, source.kind);
    for warning in ignored.into_iter().chain(flags_ignored_by_form(args)) {
        progress.note(&warning);
    }
    warn_answers_beyond_rows(progress, source, args);
    warn_without_images(progress, source, args);
    if assumes_image && source.has_text_only_ahead() {
        progress.note(
            "some cases have no image, but the prompts of this panel speak of one, as in its training\n\
             hint: judge such cases with a published model, whose prompts leave out the image",
        );
    }
}

/// Warns if no case has an image. Reads all cases if the first ones have none.
fn warn_without_images(progress: &Progress, source: &CaseSource, args: &JudgeArgs) {
    let has_images =
        matches!(source.kind, SourceKind::VqaRad | SourceKind::Slake | SourceKind::Parquet);
    if has_images || source.has_image_ahead() {
        return;
    }
    let Ok(cases) = cases::open(&args.source.path, &args.source.to_options(0)) else {
        return;
    };
    let limit = args.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let mut count = 0;
    for case in cases.flatten().take(limit) {
        if case.image.is_some() {
            return;
        }
        count += 1;
    }
    if count > 0 {
        progress.note(&format!(
            "no case has an image ({}): the judge sees the texts alone",
            format_count(count, "case")
        ));
    }
}

/// Warns after the last case.
pub(super) fn warn_after_run(progress: &Progress, source: &mut CaseSource, args: &JudgeArgs) {
    source.take_field_notes().iter().for_each(|note| progress.note(note));
    // With a limit, unused answers may belong to later cases.
    if args.limit.is_none() {
        warn_unused_answers(progress, source);
    }
}

/// Warns about answers beyond the rows of the data set: all answers may belong to another split.
fn warn_answers_beyond_rows(progress: &Progress, source: &CaseSource, args: &JudgeArgs) {
    let beyond = source.answers_beyond_last_row();
    if beyond > 0 {
        progress.note(&format!(
            "{} beyond the {} rows of {}: the answers may belong to another split\n\
             hint: `question_id` must be the row, counted from 0, in the judged split; see --split",
            format_count(beyond, "answer"),
            source.total.unwrap_or_default(),
            args.source.path.display()
        ));
    }
}

/// Warns about answers without a case, a sign of ids that do not match.
fn warn_unused_answers(progress: &Progress, source: &CaseSource) {
    let unused = source.unmatched_answers().saturating_sub(source.answers_beyond_last_row());
    if unused > 0 {
        let languages = match source.kind {
            SourceKind::Slake if source.unselected_answers() > 0 => {
                "; --lang skips questions in other languages"
            }
            _ => "",
        };
        let first = source.first_unmatched_answer().map(|first| format!("; first: {first}"));
        let first = first.unwrap_or_default();
        progress.note(&format!(
            "{} without a case{first}\n\
             hint: `question_id` in the answers file must be the id of a case{languages}",
            format_count(unused, "answer")
        ));
    }
}
