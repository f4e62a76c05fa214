//! Flags that have no effect on a source, or in a form of judging.

use acem3_experts::prompt::Form;

use crate::cli::args::{JudgeArgs, ReferenceUse, SourceArgs};
use crate::data::cases::{Lang, SourceKind};
use crate::support::terminal::progress::print_lines;

/// Says that flags have no effect, and why.
pub(super) fn note_without_effect(flags: &[&str], reason: &str) {
    let Some((last, others)) = flags.split_last() else {
        return;
    };
    let (flags, verb) = match others {
        [] => ((*last).to_owned(), "has"),
        others => (format!("{} and {last}", others.join(", ")), "have"),
    };
    print_lines(&format!("note: {flags} {verb} no effect: {reason}"));
}

/// Returns a warning for each flag that has no effect in the form of judging.
pub(super) fn flags_ignored_by_form(args: &JudgeArgs) -> Vec<String> {
    let form = args.form.form.form();
    let mut warnings = Vec::new();
    if let Some(baseline) = args.baseline.as_ref().filter(|_| !form.is_pair()) {
        warnings.push(format!(
            "--baseline {baseline} has no effect: only the form pair judges pairs, this is {}",
            form.name()
        ));
    }
    if args.judge.single_order && form.max_responses() == 1 {
        warnings.push(format!(
            "--single-order has no effect: the form {} shows one response, in one order",
            form.name()
        ));
    }
    if form == Form::Correctness && args.form.reference == Some(ReferenceUse::Hide) {
        warnings.push(
            "--reference hide has no effect: the form correctness always shows the reference"
                .to_owned(),
        );
    }
    warnings
}

/// Returns a warning for each flag that has no effect on this type of source.
pub(super) fn ignored_flags(args: &SourceArgs, kind: SourceKind) -> Vec<String> {
    let path = args.path.display();
    let mut warnings = Vec::new();
    let has_splits =
        !matches!(kind, SourceKind::Cases | SourceKind::Questions | SourceKind::Import);
    if let Some(split) = args.split.as_ref().filter(|_| !has_splits || !args.path.is_dir()) {
        warnings.push(format!("--split {split} has no effect: {path} has no splits"));
    }
    if args.lang.is_some_and(|lang| lang != Lang::All) && kind != SourceKind::Slake {
        warnings.push(format!("--lang has no effect: {path} has no language field"));
    }
    if args.images.is_some() && kind != SourceKind::Import {
        warnings.push(format!("--images has no effect: {path} names its images itself"));
    }
    warnings
}
