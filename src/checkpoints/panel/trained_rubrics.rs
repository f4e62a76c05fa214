//! The rubrics that a panel was trained for.

use std::collections::BTreeMap;

use acem3_experts::prompt::Rubric;
use anyhow::{Context, Result, bail};

use super::files::PanelFiles;
use super::spec::PanelSpec;
use crate::support::digest::Digest;

/// File with the rubric of a panel that was trained for another one than that of ACE-M³.
pub(crate) const RUBRIC_FILE: &str = "rubric.toml";

/// Reads the rubric in a panel's folder. `None` for a panel of the rubric of ACE-M³ and for published
/// models.
///
/// # Errors
///
/// The file cannot be read or is no rubric.
pub(crate) fn own_rubric(files: &PanelFiles) -> Result<Option<Rubric>> {
    if !files.contains(RUBRIC_FILE) {
        return Ok(None);
    }
    let bytes = files.read(RUBRIC_FILE)?;
    let text = std::str::from_utf8(&bytes).context("not UTF-8");
    let rubric = text.and_then(|text| Ok(Rubric::parse(text)?));
    rubric.map(Some).with_context(|| files.describe(RUBRIC_FILE))
}

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
         hint: omit --rubric, or judge with one published checkpoint, which takes the part of every \
         member, such as --panel FOLDER of a LLaVA checkpoint"
    )
}
