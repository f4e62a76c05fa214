//! The verdicts of one judge.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::pair_verdict::PairVerdict;
use super::subgroup_fields::{meta_fields_hint, metas_of};
use crate::data::images::image_cluster::ImageCluster;
use crate::data::labels::{LabelEntry, ScoreTarget};
use crate::judging::run::run_state::RunState;

/// Lowest and highest score if the rubric is not known.
const ALL_SCORES: [u8; 2] = [0, 5];

/// The verdicts of one judge.
#[derive(Clone, Debug)]
pub struct Verdicts {
    /// The file of records.
    pub path: PathBuf,
    /// Hash of the judge, as in records.
    pub judge: String,
    /// Name of the judge if the manifest is next to the records, else its hash.
    pub name: String,
    /// Lowest and highest score of the rubric, if the manifest is next to the records, else 0 and 5.
    pub score_range: [u8; 2],
    /// The pairs, with a verdict or unscored.
    pub pairs: Vec<PairVerdict>,
    /// The labels of the records.
    pub labels: Vec<LabelEntry>,
    /// Number of records without a pair: cases that could not be read.
    pub without_pair: usize,
    /// Number of pairs of each model that have no verdict and no record of their own.
    pub unlisted_pairs: BTreeMap<String, u64>,
    /// State of the run: finished or not, and its damaged records, which are not in `pairs`.
    pub run: RunState,
}

impl Verdicts {
    pub(super) fn empty(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            judge: String::new(),
            name: String::new(),
            score_range: ALL_SCORES,
            pairs: Vec::new(),
            labels: Vec::new(),
            without_pair: 0,
            unlisted_pairs: BTreeMap::new(),
            run: RunState::default(),
        }
    }

    /// Joins the verdicts of several runs of one judge. The runs of shards follow one another as in the
    /// merged records, whose lines the verdicts then have.
    ///
    /// # Errors
    ///
    /// There is no run, the judges differ, or two runs have different verdicts on one pair.
    pub fn join(mut runs: Vec<Self>) -> Result<Self> {
        runs.sort_by_key(|run| run.run.first_shard());
        let mut runs = runs.into_iter();
        let Some(mut joined) = runs.next() else {
            bail!("no records\nhint: pass the folder that `acem3 judge --out` wrote");
        };
        let mut states = vec![joined.run.clone()];
        for mut run in runs {
            if run.judge != joined.judge {
                bail!(
                    "{} and {}: verdicts of two judges ({} and {})\nhint: pass the records of one \
                     judge; `acem3 agree --against` compares two",
                    joined.path.display(),
                    run.path.display(),
                    joined.name,
                    run.name
                );
            }
            let lines: u64 = states.iter().map(|state| state.lines).sum();
            run.pairs.iter_mut().for_each(|pair| pair.line += lines);
            joined.pairs.extend(run.pairs);
            joined.labels.extend(run.labels);
            joined.without_pair += run.without_pair;
            for (model, n) in run.unlisted_pairs {
                *joined.unlisted_pairs.entry(model).or_default() += n;
            }
            states.push(run.run);
        }
        if states.len() > 1 {
            joined.check_pairs(&BTreeSet::new())?;
        }
        joined.run = RunState::join_shards(states).into_iter().next().unwrap_or_default();
        Ok(joined)
    }

    /// Checks that there are pairs, that they have one judge, and that each has one verdict.
    pub(super) fn check_pairs(&self, judges: &BTreeSet<String>) -> Result<()> {
        let path = self.path.display();
        if self.pairs.is_empty() {
            let is_empty = std::fs::metadata(&self.path).is_ok_and(|file| file.len() == 0);
            if let Some(found) = self.run.problems.first().filter(|_| !is_empty) {
                bail!("{}; no record has a pair of responses\nhint: {}", found.problem, found.hint);
            }
            let (problem, hint) = if is_empty {
                ("the file is empty", "run the same `acem3 judge` again to write the records")
            } else {
                (
                    "no record has a pair of responses",
                    "expected the records.jsonl that `acem3 judge --out` wrote",
                )
            };
            bail!("{path}: {problem}\nhint: {hint}");
        }
        if judges.len() > 1 {
            let names: Vec<&str> = judges.iter().map(String::as_str).collect();
            bail!(
                "{path}: verdicts of {} judges ({})\nhint: pass the records of one judge; \
                 `acem3 agree --against` compares two",
                names.len(),
                names.join(", ")
            );
        }
        let mut lines: HashMap<(&str, [&str; 2]), u64> = HashMap::new();
        for verdict in &self.pairs {
            let mut pair = verdict.pair.each_ref().map(String::as_str);
            pair.sort_unstable();
            if let Some(before) = lines.insert((&verdict.case, pair), verdict.line) {
                bail!(
                    "{path} lines {before} and {}: two verdicts on case {}, {} and {}\n\
                     hint: remove one of the two lines",
                    verdict.line,
                    verdict.case,
                    pair[0],
                    pair[1]
                );
            }
        }
        Ok(())
    }

    /// Checks that the verdicts have scores on a target.
    ///
    /// # Errors
    ///
    /// There are verdicts, and none has a score on it.
    pub fn check_target(&self, target: ScoreTarget) -> Result<()> {
        let mut scored = self.pairs.iter().filter_map(|pair| pair.scores.as_ref()).peekable();
        let Some(first) = scored.peek() else {
            return Ok(());
        };
        let found: Vec<&str> = first.keys().map(|target| target.key()).collect();
        if scored.any(|scores| scores.contains_key(&target)) {
            return Ok(());
        }
        bail!(
            "--target {}: {} has no scores on it\nhint: the records have {}",
            target.key(),
            self.path.display(),
            found.join(", ")
        )
    }

    /// Rounds all scores to integers, halves up.
    pub fn round_scores(&mut self) {
        let scored = self.pairs.iter_mut();
        for scores in scored.filter_map(|pair| pair.scores.as_mut()) {
            for pair in scores.values_mut() {
                *pair = pair.map(|score| (score + 0.5).floor());
            }
        }
    }

    /// Clusters cases by a field; a case without the field is a cluster by itself.
    ///
    /// # Errors
    ///
    /// If no case has the field.
    pub fn cluster_by(&mut self, field: &str) -> Result<()> {
        if !self.pairs.iter().any(|pair| pair.field(field).is_some()) {
            bail!(
                "--cluster-by {field}: no case of {} has this field in `meta`\n{}",
                self.path.display(),
                meta_fields_hint(&metas_of(&self.pairs))
            );
        }
        for pair in &mut self.pairs {
            let value = pair.field(field);
            pair.cluster = value.unwrap_or_else(|| ImageCluster::Case(&pair.case).to_string());
        }
        Ok(())
    }

    /// Counts the pairs without a score.
    pub fn count_unscored(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.scores.is_none()).count()
    }
}
