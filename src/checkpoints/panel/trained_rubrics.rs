//! The rubrics that a panel was trained for.

use std::collections::BTreeMap;

use acem3_experts::prompt::Rubric;
use anyhow::{Result, bail};

use super::spec::PanelSpec;
use crate::support::digest::Digest;

/// Returns the key of a rubric with the hash of its content, as in `panel.toml`.
pub(crate) fn declare_rubric(rubric: &Rubric) -> (String, String) {
    (rubric.key.clone(), Digest::sha256(rubric.content().as_bytes()).to_string())
}

/// Returns the rubrics that a panel was trained for. Panels that declare none were trained for the
/// built-in rubric of ACE-M³.
///
/// # Errors
///
/// The built-in rubric cannot be parsed.
pub(super) fn trained_rubrics(spec: &PanelSpec) -> Result<BTreeMap<String, String>> {
    if spec.rubrics.is_empty() {
        return Ok(BTreeMap::from([declare_rubric(&Rubric::built_in()?)]));
    }
    Ok(spec.rubrics.clone())
}

/// Checks that a panel was trained for a rubric: for all of its texts, scores and instructions, not
/// for its keys alone.
///
/// # Errors
///
/// It was trained for other rubrics.
pub(super) fn check_trained(rubric: &Rubric, trained: &BTreeMap<String, String>) -> Result<()> {
    let (key, content) = declare_rubric(rubric);
    if trained.values().any(|known| *known == content) {
        return Ok(());
    }
    let known: Vec<&str> = trained.keys().map(String::as_str).collect();
    let known = known.join(", ");
    let difference = if trained.contains_key(&key) {
        "; the texts, scores or instructions of this one differ"
    } else {
        ""
    };
    bail!(
        "--rubric {key}: the panel was trained for the rubric {known}{difference}; another one would \
         give meaningless verdicts\n\
         hint: judge with one published checkpoint, which takes the part of every member, such as \
         --panel FOLDER of a LLaVA checkpoint, or omit --rubric"
    )
}
