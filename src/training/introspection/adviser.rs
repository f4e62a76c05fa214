//! Where better evaluations come from: a second panel, a file of verdicts, or a model behind an endpoint.

use super::misjudged_pair::MisjudgedPair;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use anyhow::{Context, Result};

use super::endpoint::Endpoint;
use super::review::PairId;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::judging::judge::{Judge, PairJob};
use crate::judging::run::record_reader::records;
use crate::support::digest::Digest;

/// Who is asked.
pub enum Adviser {
    /// Another judge, who is not told what people said.
    Judge(Box<dyn Judge>),
    /// Verdicts that were given before, by whomever, by case and models.
    Recorded {
        /// Whose verdicts they are, and which: the hashes in the records, and that of them all.
        by: String,
        /// The verdicts.
        verdicts: HashMap<PairId, RecordedVerdict>,
    },
    /// A model that is told what people said when its first evaluation contradicts them.
    Endpoint(Box<Endpoint>),
}

impl Adviser {
    /// The verdicts of a file of records, or of the folder of a run.
    ///
    /// # Errors
    /// Where it cannot be read, and where it holds no verdict.
    pub fn recorded(path: &Path) -> Result<Self> {
        let (mut verdicts, mut judges) = (HashMap::new(), BTreeSet::new());
        let mut all = Vec::new();
        for record in records(path)? {
            let record = record?;
            if let (Some(judgement), Some(case), Some(pair)) = (
                record.judgement(),
                &record.subject.case,
                &record.subject.pair,
            ) {
                let line = serde_json::to_vec(&(case, pair, judgement));
                all.extend(line.context("cannot hash a verdict")?);
                verdicts.insert((case.clone(), pair.clone()), judgement.clone());
                judges.insert(record.subject.judge.clone());
            }
        }
        anyhow::ensure!(
            !verdicts.is_empty(),
            "{}: there is no verdict in it\nhint: `acem3 judge --out` writes such records",
            path.display()
        );
        let judges = judges.into_iter().collect::<Vec<_>>().join(", ");
        // Of more verdicts of the same judges more can be learned.
        let by = format!("{judges}, all of them {}", Digest::of(&all));
        Ok(Self::Recorded { by, verdicts })
    }

    /// Who it is, told from others.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Judge(judge) => judge.name(),
            Self::Recorded { by, .. } => format!("verdicts of {by}"),
            Self::Endpoint(endpoint) => endpoint.name(),
        }
    }

    /// About how many pairs it is asked before its answers are kept: one where each answer costs something.
    pub(super) fn at_once(&self, most: usize) -> usize {
        match self {
            Self::Judge(_) | Self::Recorded { .. } => most,
            Self::Endpoint(_) => 1,
        }
    }

    /// How often it is worth asking about one pair.
    pub(super) fn attempts(&self, most: u32) -> u32 {
        match self {
            // They say the same again.
            Self::Judge(_) | Self::Recorded { .. } => 1,
            Self::Endpoint(_) => most,
        }
    }

    /// What it makes of pairs that were judged wrong; `attempt` counts from 0.
    ///
    /// # Errors
    /// Where it fails as a whole. What concerns one pair is the reason why there is no suggestion.
    pub(super) fn suggest(
        &mut self,
        doubts: &[&MisjudgedPair],
        attempt: u32,
    ) -> Result<Vec<Result<RecordedVerdict, String>>> {
        match self {
            Self::Judge(judge) => {
                let jobs: Vec<PairJob> = doubts.iter().map(|doubt| doubt.job.clone()).collect();
                let verdicts = judge.judge(&jobs).context("the second judge failed")?;
                let suggestion = |verdict: Result<_, crate::judging::judge::Unscored>| match verdict
                {
                    Ok(verdict) => RecordedVerdict::from_verdict(&verdict).map(Ok),
                    Err(unscored) => Ok(Err(unscored.message)),
                };
                verdicts.into_iter().map(suggestion).collect()
            }
            Self::Recorded { verdicts, .. } => {
                let find = |doubt: &&MisjudgedPair| {
                    let found = verdicts.get(&doubt.key()).cloned();
                    Ok(found.ok_or_else(|| "the suggestions have no verdict on it".to_owned()))
                };
                doubts.iter().map(find).collect()
            }
            Self::Endpoint(endpoint) => doubts
                .iter()
                .map(|doubt| endpoint.evaluate(doubt, attempt))
                .collect(),
        }
    }
}
