//! Source of better evaluations: another judge, a file of verdicts, or a model behind an endpoint.

pub(crate) mod advice_log;
pub(crate) mod chat_client;
pub(crate) mod endpoint;
pub(crate) mod requests;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use acem3_experts::prompt::Form;
use anyhow::{Context, Result};

use super::misjudged_pair::MisjudgedPair;
use super::review::PairId;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::judging::judge::{Judge, JudgeJob, Unscored};
use crate::judging::run::record::record_reader::open_records;
use crate::judging::run::run_state::RunState;
use crate::support::digest::Digest;
use crate::training::introspection::adviser::endpoint::Endpoint;

/// Source of suggested verdicts.
pub enum Adviser {
    /// Another judge. It does not see the labels.
    Judge(Box<dyn Judge>),
    /// Existing verdicts, by case and models.
    Recorded {
        /// Names of the judges in the records and a hash of all verdicts.
        source: String,
        /// The verdicts of all pairs in the records.
        verdicts: HashMap<PairId, RecordedVerdict>,
    },
    /// A model behind an endpoint. If its first evaluation contradicts the labels, the next request
    /// includes them.
    Endpoint(Box<Endpoint>),
}

impl Adviser {
    /// Reads the verdicts of a records file or of the folder of a run. Also returns the state of the
    /// run.
    ///
    /// # Errors
    /// If the records cannot be read or contain no verdict.
    pub fn from_records(path: &Path) -> Result<(Self, RunState)> {
        let (mut verdicts, mut judges) = (HashMap::new(), BTreeSet::new());
        let mut hashed_bytes = Vec::new();
        let mut records = open_records(path)?;
        for record in records.by_ref() {
            let record = record?;
            if let (Some(verdict), Some(case), Some(pair)) =
                (record.verdict(), &record.subject.case, &record.subject.pair)
            {
                let line = serde_json::to_vec(&(case, pair, verdict));
                hashed_bytes.extend(line.context("cannot serialise a verdict to hash it")?);
                verdicts.insert((case.clone(), pair.clone()), verdict.clone());
                judges.insert(record.subject.judge.clone());
            }
        }
        anyhow::ensure!(
            !verdicts.is_empty(),
            "{}: no verdict in the records\nhint: pass records written by `acem3 judge --out`",
            path.display()
        );
        let judges = judges.into_iter().collect::<Vec<_>>().join(", ");
        // The hash distinguishes these records from other records of the same judges.
        let source = format!("{judges}, all of them {}", Digest::sha256(&hashed_bytes));
        Ok((Self::Recorded { source, verdicts }, records.state()))
    }

    /// Returns a name that identifies the adviser.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Judge(judge) => judge.name(),
            Self::Recorded { source, .. } => format!("verdicts of {source}"),
            Self::Endpoint(endpoint) => endpoint.name(),
        }
    }

    /// Checks that an endpoint accepts the key and the model.
    ///
    /// # Errors
    /// If the endpoint is unreachable or rejects a request.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Self::Judge(_) | Self::Recorded { .. } => Ok(()),
            Self::Endpoint(endpoint) => endpoint.check().context("--adviser"),
        }
    }

    /// Returns the number of pairs per request batch. It is one for an endpoint, so that each paid
    /// answer is logged before the next request.
    pub(super) fn batch_size(&self, max: usize) -> usize {
        match self {
            Self::Judge(_) | Self::Recorded { .. } => max,
            Self::Endpoint(_) => 1,
        }
    }

    /// Returns the maximum number of requests per pair.
    pub(super) fn attempts(&self, max: u32) -> u32 {
        match self {
            // Judges and records return the same verdict again.
            Self::Judge(_) | Self::Recorded { .. } => 1,
            Self::Endpoint(_) => max,
        }
    }

    /// Returns a suggested verdict, or the reason for none, for each misjudged pair. `attempt`
    /// counts from 0.
    ///
    /// # Errors
    /// If the adviser fails as a whole. A failure on one pair is the inner `Err`.
    pub(super) fn request(
        &mut self,
        pairs: &[&MisjudgedPair],
        attempt: u32,
    ) -> Result<Vec<Result<RecordedVerdict, String>>> {
        match self {
            Self::Judge(judge) => {
                let jobs: Vec<JudgeJob> = pairs.iter().map(|pair| pair.job.clone()).collect();
                let verdicts = judge.judge(&jobs).context("the adviser failed")?;
                let suggestion = |verdict: Result<_, Unscored>| match verdict {
                    Ok(verdict) => RecordedVerdict::from_verdict(&verdict, Form::Pair).map(Ok),
                    Err(unscored) => Ok(Err(unscored.message)),
                };
                verdicts.into_iter().map(suggestion).collect()
            }
            Self::Recorded { verdicts, .. } => {
                let find = |pair: &&MisjudgedPair| {
                    let verdict = verdicts.get(&pair.id()).cloned();
                    Ok(verdict.ok_or_else(|| {
                        "the adviser's records have no verdict on this pair".to_owned()
                    }))
                };
                pairs.iter().map(find).collect()
            }
            Self::Endpoint(endpoint) => {
                pairs.iter().map(|pair| endpoint.evaluate(pair, attempt)).collect()
            }
        }
    }
}
