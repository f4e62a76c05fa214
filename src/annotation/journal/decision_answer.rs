//! A rater's decision about a pair that knowledge introspection left unresolved.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionAnswer {
    /// Takes the suggestion with this number.
    Accept(usize),
    /// Gives an own evaluation: the scores of the answers and these analyses, one for each response, by
    /// criterion and for the final score.
    Own(BTreeMap<String, [String; 2]>),
}
