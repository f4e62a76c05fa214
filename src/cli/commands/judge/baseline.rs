//! Check of `--baseline` before the run changes anything.

use std::collections::BTreeSet;

use anyhow::bail;

use crate::cli::args::JudgeArgs;
use crate::data::cases;
use crate::support::text::near_name::find_near_name;

/// Maximum number of models that the error lists.
const MAX_LISTED: usize = 10;

/// Checks that a case has a response of the baseline. Reads up to the first such case.
///
/// Without this check, a misspelt name would set aside the verdicts of a finished run.
///
/// # Errors
///
/// The cases can be read, and none has a response of the baseline.
pub(super) fn check_baseline(args: &JudgeArgs) -> anyhow::Result<()> {
    let is_pair = args.form.form.form().is_pair();
    let Some(baseline) = args.baseline.as_ref().filter(|_| is_pair) else {
        return Ok(());
    };
    let cases = cases::open(&args.source.path, &args.source_options())?.flatten();
    let limit = args.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let mut models: BTreeSet<String> = BTreeSet::new();
    for case in cases.take(limit) {
        if case.responses.iter().any(|response| response.model == *baseline) {
            return Ok(());
        }
        models.extend(case.responses.into_iter().map(|response| response.model));
    }
    // Cases that cannot be read are reported by the run.
    if models.is_empty() {
        return Ok(());
    }
    let near = find_near_name(baseline, models.iter().map(String::as_str));
    let near = near.map_or_else(String::new, |name| format!("did you mean {name}? "));
    let listed: Vec<&str> = models.iter().take(MAX_LISTED).map(String::as_str).collect();
    let more = if models.len() > MAX_LISTED { ", ..." } else { "" };
    bail!(
        "--baseline {baseline}: no case has a response of this model\n\
         hint: {near}the models are {}{more}",
        listed.join(", ")
    )
}
