//! Judges compared: on what they differ with each other, and which agrees better with labels.

use anyhow::Result;
use serde::Serialize;

use super::judged::{Inputs, Judged};
use crate::analysis::agreement::{Against, Agreement, Plan, agreement, compare, join};
use crate::analysis::verdicts::{Verdict, Verdicts};
use crate::data::labels::{Entry, Target, Vote, What};

/// Two judges.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The first judge's orders beside the second's, as if that one were a rater; absent where they share no
    /// pair.
    pub orders: Option<Agreement>,
    /// Both beside the labels; absent without any.
    pub against: Option<Against>,
}

/// Compares two judges.
///
/// # Errors
///
/// If statistics cannot be computed for want of memory of what was asked; not for want of shared pairs.
pub(super) fn compared(first: &Judged, second: &Judged, inputs: &Inputs) -> Result<Compared> {
    let target = inputs.target;
    let entries = votes(&second.verdicts, target);
    let shared = join(&first.verdicts, &entries, &second.verdicts.path).ok();
    let plan = Plan {
        bootstrap: inputs.bootstrap,
        on: vec![target],
        by: Vec::new(),
    };
    let orders = shared
        .map(|units| agreement(&first.verdicts, &units, Some(second.name.clone()), &plan))
        .transpose()?;
    let of = first.units.as_ref().and_then(|u| u.targets.get(&target));
    let verdicts = (&first.verdicts, &second.verdicts);
    let against =
        of.and_then(|of| compare((verdicts.0, of), verdicts.1, target, inputs.bootstrap).ok());
    Ok(Compared { orders, against })
}

/// A judge's orders in the form of a rater's preferences.
fn votes(verdicts: &Verdicts, target: Target) -> Vec<Entry> {
    let entry = |verdict: &Verdict| {
        Some(Entry {
            line: verdict.line,
            case: verdict.case.clone(),
            rater: verdicts.name.clone(),
            target,
            what: What::Preference {
                models: Some(verdict.pair.clone()),
                vote: Vote::Order(verdict.order(target)?),
            },
        })
    };
    verdicts.pairs.iter().filter_map(entry).collect()
}
