//! Perturbed references. A judge that sees references should react to a mismatched or missing one, and not
//! to a full stop.

use serde::{Deserialize, Serialize};

/// The reference that a judge receives, if it sees references.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferencePerturbation {
    /// The case's own reference, or none if the case has none.
    #[default]
    Own,
    /// No reference: the prompt has no section for it.
    Hidden,
    /// The reference of another case.
    #[serde(rename = "of")]
    OtherCase {
        /// Id of the other case.
        case: String,
        /// Its reference.
        text: String,
    },
    /// The case's own reference in this form.
    Reworded(String),
}

impl ReferencePerturbation {
    /// Returns the reference that the judge receives in place of `own`.
    pub(crate) fn apply(&self, own: Option<&str>) -> Option<String> {
        match self {
            Self::Own => own.map(str::to_owned),
            Self::Hidden => None,
            Self::OtherCase { text, .. } | Self::Reworded(text) => Some(text.clone()),
        }
    }

    /// Returns true for the case's own reference, unchanged.
    pub fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// Removes the full stop at the end of a text, or adds one if there is none.
pub(super) fn toggle_full_stop(text: &str) -> String {
    let text = text.trim_end();
    match text.strip_suffix('.') {
        Some(shorter) if !shorter.trim().is_empty() => shorter.to_owned(),
        _ => format!("{text}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_stop_is_removed_or_added() {
        assert_eq!(toggle_full_stop("Left lung. "), "Left lung");
        assert_eq!(toggle_full_stop("yes"), "yes.");
        assert_eq!(toggle_full_stop("."), "..");
    }

    #[test]
    fn perturbation_replaces_the_reference() {
        let apply = |perturbation: ReferencePerturbation| perturbation.apply(Some("yes"));
        assert_eq!(apply(ReferencePerturbation::Own).as_deref(), Some("yes"));
        assert_eq!(apply(ReferencePerturbation::Hidden), None);
        let other = ReferencePerturbation::OtherCase { case: "2".into(), text: "no".into() };
        assert_eq!(serde_json::to_string(&other).unwrap(), r#"{"of":{"case":"2","text":"no"}}"#);
        assert_eq!(apply(other).as_deref(), Some("no"));
    }
}
