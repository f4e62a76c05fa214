//! Rules that prefer a response without a judge and without the image.

use serde::Serialize;

use super::interval::Proportion;

/// Proportions of pairs whose better response a rule prefers. A rule that prefers neither counts as ½.
/// Pairs of equally good responses do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TrivialRules {
    /// The response with more words; of equally many, with more characters.
    pub longer: Option<Proportion>,
    /// The response with fewer.
    pub shorter: Option<Proportion>,
    /// The first response of the case.
    pub first: Option<Proportion>,
    /// The more frequent answer to the question, or to questions of its type, in the training data;
    /// `None` without training data.
    pub majority: Option<Proportion>,
}

impl TrivialRules {
    /// Returns the rules with their names.
    pub fn rows(&self) -> [(&'static str, Option<Proportion>); 4] {
        [
            ("rule: longer response", self.longer),
            ("rule: shorter response", self.shorter),
            ("rule: first response", self.first),
            ("rule: more frequent answer", self.majority),
        ]
    }
}
