//! Verdicts of another judge, or of the records of a run.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use acem3_experts::prompt::Form;
use anyhow::{Context, Result, bail};

use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::judging::judge::{Judge, JudgeJob, Unscored};
use crate::judging::knowledge::JudgeKnowledge;
use crate::judging::run::record::record_reader::open_records;
use crate::judging::run::run_state::RunState;
use crate::support::digest::Digest;
use crate::training::introspection::judged::misjudged_pair::MisjudgedPair;
use crate::training::introspection::judged::review::PairId;

/// Source of verdicts that cannot discuss: it gives the same verdict again.
pub enum VerdictSource {
    /// Another judge. It does not see the labels.
    Judge(Box<dyn Judge>),
    /// Existing verdicts, by case and models.
    Recorded {
        /// Names of the judges in the records and a hash of all verdicts.
        source: String,
        /// The verdicts of all pairs in the records.
        verdicts: HashMap<PairId, RecordedVerdict>,
    },
}

impl VerdictSource {
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

    /// Checks that the analyses of recorded verdicts fit their scores, which training data need.
    ///
    /// # Errors
    /// If the scores of a verdict are means over several samples. The error names the case.
    pub fn check_suggestions(&self) -> Result<()> {
        let Self::Recorded { verdicts, .. } = self else {
            return Ok(());
        };
        let sampled = verdicts.iter().filter(|(_, verdict)| verdict.has_alternatives());
        if let Some((case, _)) = sampled.map(|(pair, _)| pair).min() {
            bail!(
                "case {case}: the scores are means over several samples, so they fit no analysis\n\
                 hint: judge the cases with --samples 1"
            );
        }
        Ok(())
    }

    /// Returns a name that identifies the source.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Judge(judge) => match JudgeKnowledge::identity_in(&judge.provenance()) {
                Some(knowledge) => format!("{} with knowledge {knowledge}", judge.name()),
                None => judge.name(),
            },
            Self::Recorded { source, .. } => format!("verdicts of {source}"),
        }
    }

    /// Returns a verdict, or the reason for none, for each pair.
    ///
    /// # Errors
    /// If the judge fails as a whole. A failure on one pair is the inner `Err`.
    pub(crate) fn verdicts(
        &mut self,
        pairs: &[&MisjudgedPair],
    ) -> Result<Vec<Result<RecordedVerdict, String>>> {
        match self {
            Self::Judge(_) if pairs.is_empty() => Ok(Vec::new()),
            Self::Judge(judge) => {
                let jobs: Vec<JudgeJob> = pairs.iter().map(|pair| pair.job.clone()).collect();
                let verdicts = judge.judge(&jobs)?;
                let to_recorded = |verdict: Result<_, Unscored>| match verdict {
                    Ok(verdict) => RecordedVerdict::from_verdict(&verdict, Form::Pair).map(Ok),
                    Err(unscored) => Ok(Err(unscored.message)),
                };
                verdicts.into_iter().map(to_recorded).collect()
            }
            Self::Recorded { verdicts, .. } => {
                let find = |pair: &&MisjudgedPair| {
                    let verdict = verdicts.get(&pair.id()).cloned();
                    verdict.ok_or_else(|| "the records have no verdict on this pair".to_owned())
                };
                Ok(pairs.iter().map(find).collect())
            }
        }
    }
}
