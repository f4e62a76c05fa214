//! What is said of an input that looks unlike what was meant.

use crate::cli::args::JudgeArgs;
use crate::cli::commands::unheeded;
use crate::data::cases::{CaseSource, SourceKind};
use crate::support::terminal::progress::Progress;
use crate::support::text::plural;

/// Before the first case: flags without use, and answers that belong elsewhere.
pub(super) fn before(progress: &Progress, source: &CaseSource, args: &JudgeArgs) {
    for note in unheeded(&args.source, source.kind) {
        progress.note(&note);
    }
    tell_beyond(progress, source, args);
}

/// Behind the last case.
pub(super) fn after(progress: &Progress, source: &CaseSource, args: &JudgeArgs) {
    // Behind a limit, answers may still have their cases.
    if args.limit.is_none() {
        tell_unused(progress, source);
    }
}

/// Answers to more rows than there are belong elsewhere, and then so may the others.
fn tell_beyond(progress: &Progress, source: &CaseSource, args: &JudgeArgs) {
    let beyond = source.answers_beyond();
    if beyond > 0 {
        progress.note(&format!(
            "{} beyond the {} rows of {}, and may belong to another split\n\
             hint: `question_id` is the row, from 0, in the split that is judged; see --split",
            plural(beyond, "answer"),
            source.total.unwrap_or_default(),
            args.source.path.display()
        ));
    }
}

/// Answers that found no case are a sign of ids that do not match.
fn tell_unused(progress: &Progress, source: &CaseSource) {
    let unused = source
        .unused_answers()
        .saturating_sub(source.answers_beyond());
    if unused > 0 {
        let languages = match source.kind {
            SourceKind::Slake if source.unselected_answers() > 0 => {
                "; questions in other languages are left out by --lang"
            }
            _ => "",
        };
        progress.note(&format!(
            "{} of no case\n\
             hint: `question_id` in the answers file must be the id of a case{languages}",
            plural(unused, "answer")
        ));
    }
}
