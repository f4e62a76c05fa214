//! Judge of suggestions: another judge, a file of verdicts, or a model behind an endpoint.

mod review_answer;
pub(crate) mod reviewer_endpoint;
pub(crate) mod suggested_pair;

use std::cmp::Ordering;

use anyhow::{Context, Result};

use self::reviewer_endpoint::ReviewerEndpoint;
use self::suggested_pair::SuggestedPair;
use super::chat::request_journal::RequestJournal;
use super::discussion_round::SuggestionReview;
use super::label_check::describe_order;
use super::verdict_source::VerdictSource;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::training::introspection::judged::misjudged_pair::MisjudgedPair;

/// Judge of suggestions.
pub enum Reviewer {
    /// Verdicts of a judge or of records. They accept a suggestion if they have the same order.
    Verdicts(VerdictSource),
    /// A model behind an endpoint. It reads the suggestion and says why it rejects it.
    Endpoint(Box<ReviewerEndpoint>),
}

impl Reviewer {
    /// Returns a name that identifies the reviewer.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Verdicts(source) => source.name(),
            Self::Endpoint(endpoint) => endpoint.name(),
        }
    }

    /// Checks that an endpoint accepts the key and the model.
    ///
    /// # Errors
    /// If the endpoint is unreachable or rejects a request.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Verdicts(_) => Ok(()),
            Self::Endpoint(endpoint) => endpoint.check().context("--reviewer"),
        }
    }

    /// Returns true if another suggestion can change the reviewer's mind. A suggestion has the order
    /// of the labels, so verdicts that reject one reject all.
    pub(crate) fn can_discuss(&self) -> bool {
        matches!(self, Self::Endpoint(_))
    }

    /// Reviews suggestions.
    ///
    /// # Errors
    /// If the reviewer fails as a whole.
    pub(crate) fn review(
        &mut self,
        pairs: &[SuggestedPair],
        journal: &mut RequestJournal,
    ) -> Result<Vec<SuggestionReview>> {
        match self {
            Self::Verdicts(source) => {
                let misjudged: Vec<&MisjudgedPair> =
                    pairs.iter().map(|pair| pair.misjudged).collect();
                let verdicts = source.verdicts(&misjudged).context("the reviewer failed")?;
                let reviews = pairs.iter().zip(verdicts);
                Ok(reviews.map(|(pair, verdict)| compare(pair.suggestion, verdict)).collect())
            }
            Self::Endpoint(endpoint) => {
                pairs.iter().map(|pair| endpoint.review(pair, journal)).collect()
            }
        }
    }
}

/// Accepts a suggestion if the reviewer's own verdict has the same order.
fn compare(suggestion: &RecordedVerdict, own: Result<RecordedVerdict, String>) -> SuggestionReview {
    let order = |verdict: &RecordedVerdict| verdict.order.map_or(Ordering::Equal, Ordering::from);
    match own {
        Ok(own) => SuggestionReview {
            accepts: Some(order(&own) == order(suggestion)),
            reason: format!("its own verdict: {}", describe_order(order(&own))),
        },
        Err(reason) => SuggestionReview::missing(reason),
    }
}
