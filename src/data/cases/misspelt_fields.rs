//! Fields whose names are near those of known fields.

use std::collections::BTreeMap;

use super::case::{Case, LOCAL_ONLY};
use super::image_fields::find_image_field;
use super::source_options::SourceKind;
use crate::support::text::near_name::find_near_name;

/// Maximum number of fields that are remembered.
const MAX_FIELDS: usize = 20;

/// Misspelt fields of the cases so far.
#[derive(Debug, Default)]
pub(super) struct MisspeltFields {
    /// A note for each ignored field; `None` after it was taken.
    notes: BTreeMap<String, Option<String>>,
}

impl MisspeltFields {
    /// Looks for ignored fields of a case that are near a field which the case lacks.
    pub(super) fn add(&mut self, case: &Case, kind: SourceKind) {
        let fields = match kind {
            SourceKind::Cases => &case.extra,
            // Other columns of a table are subgroup fields.
            SourceKind::Questions => &case.meta,
            SourceKind::VqaRad | SourceKind::Slake | SourceKind::Parquet | SourceKind::Import => {
                return;
            }
        };
        let is_missing = [
            ("image", case.image.is_none()),
            ("responses", case.responses.is_empty()),
            ("reference", case.reference.is_none()),
            ("labels", case.labels.is_none()),
            ("meta", case.meta.is_empty()),
        ];
        let missing = is_missing.into_iter().filter_map(|(name, is)| is.then_some(name));
        let missing: Vec<&str> = match kind {
            SourceKind::Questions => missing.filter(|name| *name == "reference").collect(),
            _ => missing.collect(),
        };
        let image = find_image_field(fields.iter()).filter(|_| case.image.is_none());
        for field in fields.keys() {
            if self.notes.contains_key(field) || self.notes.len() >= MAX_FIELDS {
                continue;
            }
            let known = match near_field(field, &missing) {
                _ if image == Some(field) => "image",
                Some(known) => known,
                None => continue,
            };
            let note = format!(
                "line {}: the field `{field}` is ignored, and the case has no `{known}`\n\
                 hint: did you mean `{known}`?",
                case.line
            );
            self.notes.insert(field.clone(), Some(note));
        }
    }

    /// Returns the notes that were not returned before.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        self.notes.values_mut().filter_map(Option::take).collect()
    }
}

/// Checks that a field is not a misspelt `local_only`.
///
/// # Errors
///
/// It may be one. Ignoring it could send the case to another machine.
pub(crate) fn check_local_only_spelling(name: &str) -> Result<(), String> {
    let letters: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    if name == LOCAL_ONLY || find_near_name(&letters, ["localonly"]).is_none() {
        return Ok(());
    }
    Err(format!(
        "the field `{name}` is unknown, and without `{LOCAL_ONLY}` the case may leave this machine\n\
         hint: did you mean `{LOCAL_ONLY}`? Else rename the field"
    ))
}

/// Returns the missing field that an ignored field stands for.
fn near_field<'a>(field: &str, missing: &[&'a str]) -> Option<&'a str> {
    let lower = field.to_lowercase();
    let is_path =
        ["image_", "img_", "image-", "imagepath"].iter().any(|start| lower.starts_with(start));
    let image = missing.iter().copied().find(|name| is_path && *name == "image");
    image.or_else(|| find_near_name(field, missing.iter().copied()))
}
