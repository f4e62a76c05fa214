//! Warns if the judge is known to judge such cases badly.

use crate::checkpoints::panel::limits::CaseKind;
use crate::cli::args::SourceArgs;
use crate::data::cases;
use crate::data::phantoms::case_folder::are_phantoms;
use crate::judging::judge::Judge;

/// Returns the warning of a judge about the cases of a source; `None` if it has none. Reads the ids
/// of the cases.
///
/// # Errors
///
/// The source cannot be opened.
pub(super) fn panel_warning(
    judge: &dyn Judge,
    source: &SourceArgs,
    limit: Option<u64>,
) -> anyhow::Result<Option<String>> {
    let Some(limits) = judge.limits() else {
        return Ok(None);
    };
    let kind = case_kind(source, limit)?;
    Ok(limits.warning_for(kind).map(str::to_owned))
}

/// Returns the kind of the cases of a source; `None` if it is not known.
fn case_kind(source: &SourceArgs, limit: Option<u64>) -> anyhow::Result<Option<CaseKind>> {
    let folder = cases::base_folder(&source.path);
    if !are_phantoms(&folder, []) {
        return Ok(None);
    }
    let cases = cases::open(&source.path, &source.to_options(0))?;
    // Phantoms contain their responses. Those of answers files are of other origin.
    if cases.files.len() != 1 {
        return Ok(None);
    }
    let limit = limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let ids: Vec<String> = cases.flatten().take(limit).map(|case| case.id).collect();
    let is_phantom = are_phantoms(&folder, ids.iter().map(String::as_str));
    Ok(is_phantom.then_some(CaseKind::Phantoms))
}
