//! Source of better evaluations: another judge, a file of verdicts, or a model behind an endpoint.

pub(crate) mod adviser_endpoint;
pub(crate) mod discussed_pair;

use anyhow::{Context, Result};

use self::adviser_endpoint::AdviserEndpoint;
use self::discussed_pair::DiscussedPair;
use super::chat::request_journal::RequestJournal;
use super::verdict_source::VerdictSource;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::training::introspection::judged::misjudged_pair::MisjudgedPair;

/// Source of suggested verdicts.
pub enum Adviser {
    /// Verdicts of a judge or of records. It does not see the labels, and suggests once.
    Verdicts(VerdictSource),
    /// A model behind an endpoint. After a suggestion that contradicts the labels, the next request
    /// includes them.
    Endpoint(Box<AdviserEndpoint>),
}

impl Adviser {
    /// Returns a name that identifies the adviser.
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
            Self::Endpoint(endpoint) => endpoint.check().context("--adviser"),
        }
    }

    /// Returns true if the adviser can look something up.
    pub(crate) fn may_ask(&self) -> bool {
        !matches!(self, Self::Verdicts(VerdictSource::Recorded { .. }))
    }

    /// Returns the number of pairs per request batch. It is one for an endpoint, so that the log has
    /// the suggestions for a pair before the next request.
    pub(crate) fn batch_size(&self, max: usize) -> usize {
        match self {
            Self::Verdicts(_) => max,
            Self::Endpoint(_) => 1,
        }
    }

    /// Returns the maximum number of suggestions per pair.
    pub(crate) fn attempts(&self, max: u32) -> u32 {
        match self {
            // Judges and records return the same verdict again.
            Self::Verdicts(_) => 1,
            Self::Endpoint(_) => max,
        }
    }

    /// Returns a suggested verdict, or the reason for none, for each discussed pair.
    ///
    /// # Errors
    /// If the adviser fails as a whole. A failure on one pair is the inner `Err`.
    pub(crate) fn suggest(
        &mut self,
        pairs: &[DiscussedPair],
        journal: &mut RequestJournal,
    ) -> Result<Vec<Result<RecordedVerdict, String>>> {
        match self {
            Self::Verdicts(source) => {
                let pairs: Vec<&MisjudgedPair> = pairs.iter().map(|pair| pair.misjudged).collect();
                source.verdicts(&pairs).context("the adviser failed")
            }
            Self::Endpoint(endpoint) => {
                pairs.iter().map(|pair| endpoint.evaluate(pair, journal)).collect()
            }
        }
    }
}
