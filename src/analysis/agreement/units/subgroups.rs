//! Subgroups of verdicts: by case fields and by response length.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::analysis::verdicts::{
    PairVerdict, length_bin, meta_fields_hint, metas_of, subgroup_fields,
};

/// Name of the subgroups by response length.
const BY_LENGTH: &str = "response length";

/// A subgroup of verdicts.
pub(crate) struct Subgroup {
    /// Name of the field.
    pub(crate) by: String,
    /// Value of the field.
    pub(crate) value: String,
    membership: Membership,
}

/// Condition for membership in a subgroup.
enum Membership {
    /// A value of a case field.
    Field { field: String, value: String },
    /// A bin of response lengths: its index and name.
    Length((usize, &'static str)),
}

impl Subgroup {
    /// Returns true if a response of a verdict, or the pair if `side` is `None`, is in the
    /// subgroup.
    pub(crate) fn contains(&self, verdict: &PairVerdict, side: Option<usize>) -> bool {
        match &self.membership {
            Membership::Field { field, value } => verdict.field(field).as_ref() == Some(value),
            Membership::Length(bin) => length_bin_of(verdict, side) == *bin,
        }
    }
}

/// Returns the length bin of a response, or of the longer response of a pair.
fn length_bin_of(verdict: &PairVerdict, side: Option<usize>) -> (usize, &'static str) {
    let [a, b] = verdict.words;
    length_bin(side.map_or(a.max(b), |side| verdict.words[side]))
}

/// Finds all subgroups. `group_by` names fields in addition to the known ones of data sets.
///
/// # Errors
///
/// If no case has one of the named fields.
pub(crate) fn find_subgroups(
    verdicts: &[PairVerdict],
    group_by: &[String],
) -> Result<Vec<Subgroup>> {
    let mut fields = subgroup_fields(&metas_of(verdicts));
    for field in group_by {
        if !verdicts.iter().any(|v| v.field(field).is_some()) {
            bail!(
                "--group-by {field}: no case has this field in `meta`\n{}",
                meta_fields_hint(&metas_of(verdicts))
            );
        }
        if !fields.iter().any(|(_, known)| known == field) {
            fields.push((field.clone(), field.clone()));
        }
    }
    let mut groups = Vec::new();
    for (name, field) in fields {
        let values = verdicts.iter().filter_map(|v| v.field(&field));
        for value in values.collect::<BTreeSet<String>>() {
            let membership = Membership::Field { field: field.clone(), value: value.clone() };
            groups.push(Subgroup { by: name.clone(), value, membership });
        }
    }
    let sides = [None, Some(0), Some(1)];
    let bins = verdicts.iter().flat_map(|v| sides.map(|side| length_bin_of(v, side)));
    for bin in bins.collect::<BTreeSet<_>>() {
        groups.push(Subgroup {
            by: BY_LENGTH.to_owned(),
            value: bin.1.to_owned(),
            membership: Membership::Length(bin),
        });
    }
    Ok(groups)
}
