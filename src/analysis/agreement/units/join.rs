//! Joins labels to verdicts.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Result, anyhow};

use super::triples::find_triples;
use super::verdict_index::VerdictIndex;
use crate::analysis::agreement::units::labelled_units::{
    LabelledUnits, PairRatings, PairUnit, ResponseUnit, TargetUnits,
};
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::{LabelEntry, LabelValue, ScoreTarget, Vote};

/// Index of the joined labels: scores by case, model and target; preferences by verdict and target.
struct LabelIndex<'a> {
    verdicts: &'a [PairVerdict],
    index: VerdictIndex<'a>,
    scores: HashMap<(&'a str, &'a str, ScoreTarget), RaterEntries<f64>>,
    votes: HashMap<(usize, ScoreTarget), RaterEntries<Ordering>>,
}

/// The rating of each rater, with its line.
type RaterEntries<T> = BTreeMap<u32, (T, u64)>;

/// Position of a response: index of the verdict, index of the response in its pair.
type ResponsePosition = (usize, usize);

/// Joins labels to verdicts by case id and model names.
///
/// # Errors
///
/// If no label matches these verdicts, if a rater rated the same item twice, or if a preference is
/// ambiguous.
pub fn join_labels(
    verdicts: &Verdicts,
    entries: &[LabelEntry],
    source: &Path,
) -> Result<LabelledUnits> {
    let mut raters: BTreeMap<&str, u32> = BTreeMap::new();
    for entry in entries {
        raters.entry(&entry.rater).or_default();
    }
    for (number, rater) in (0..).zip(raters.values_mut()) {
        *rater = number;
    }
    let mut units = LabelledUnits {
        raters: raters.keys().map(|name| (*name).to_owned()).collect(),
        ..LabelledUnits::default()
    };
    let mut joined = LabelIndex::new(&verdicts.pairs);
    for entry in entries {
        let rater = raters.get(entry.rater.as_str()).copied().unwrap_or_default();
        let is_joined = joined
            .add(entry, rater)
            .map_err(|problem| anyhow!("{} line {}: {problem}", source.display(), entry.line))?;
        if is_joined {
            units.joined += 1;
        } else {
            units.unmatched += 1;
            units.first_unmatched.get_or_insert_with(|| describe_entry(entry));
        }
    }
    if units.joined == 0 {
        let example = verdicts.pairs.first().map_or(String::new(), |v| {
            format!("case {} of {} and {}", v.case, v.pair[0], v.pair[1])
        });
        return Err(anyhow!(
            "{}: none of the {} labels matches these records (label: {}; record: {example})\n\
             hint: use the case ids and model names of the records",
            source.display(),
            units.unmatched,
            units.first_unmatched.unwrap_or_default(),
        ));
    }
    units.has_only_preferences = joined.scores.is_empty();
    units.targets = joined.build_targets();
    Ok(units)
}

/// Names the line, case and models of a label.
fn describe_entry(entry: &LabelEntry) -> String {
    let models = match &entry.value {
        LabelValue::Score { model, .. } => format!(", model {model}"),
        LabelValue::Preference { models: Some([a, b]), .. } => format!(", models {a} and {b}"),
        LabelValue::Preference { models: None, .. } => String::new(),
    };
    format!("line {}: case {}{models}", entry.line, entry.case)
}

impl<'a> LabelIndex<'a> {
    fn new(verdicts: &'a [PairVerdict]) -> Self {
        Self {
            verdicts,
            index: VerdictIndex::new(verdicts),
            scores: HashMap::new(),
            votes: HashMap::new(),
        }
    }

    /// Adds a label; returns false if it matches none of the verdicts.
    fn add(&mut self, entry: &'a LabelEntry, rater: u32) -> Result<bool, String> {
        let verdicts = self.verdicts;
        let indices = self.index.find_case(&entry.case);
        let mut pairs = indices.iter().filter_map(|i| Some((*i, verdicts.get(*i)?)));
        match &entry.value {
            LabelValue::Score { model, value } => {
                let Some((_, verdict)) = pairs.find(|(_, v)| v.pair.contains(model)) else {
                    return Ok(false);
                };
                let key = (verdict.case.as_str(), model.as_str(), entry.target);
                let previous =
                    self.scores.entry(key).or_default().insert(rater, (*value, entry.line));
                // The records of all pairs of a response repeat its label.
                match previous {
                    Some((other, line)) if line != entry.line || (other - value).abs() > 0.0 => {
                        Err(duplicate_rating_error(entry, line, &format!("model {model}")))
                    }
                    _ => Ok(true),
                }
            }
            LabelValue::Preference { models, vote } => {
                let matches = |v: &PairVerdict| match models {
                    Some(models) => models.iter().all(|m| v.pair.contains(m)),
                    None => true,
                };
                let mut matching = pairs.filter(|(_, v)| matches(v));
                let (Some((index, verdict)), None) = (matching.next(), matching.next()) else {
                    return if models.is_none() && indices.len() > 1 {
                        Err(format!(
                            "a preference without models, but case {} has {} pairs\n\
                             hint: name both models in the columns model_a and model_b",
                            entry.case,
                            indices.len()
                        ))
                    } else {
                        Ok(false)
                    };
                };
                let order = vote_order(vote, models.as_ref(), &verdict.pair)?;
                let votes = self.votes.entry((index, entry.target)).or_default();
                match votes.insert(rater, (order, entry.line)) {
                    Some((_, line)) => Err(duplicate_rating_error(entry, line, "this pair")),
                    None => Ok(true),
                }
            }
        }
    }

    /// Builds the labelled units of each score target.
    fn build_targets(&self) -> BTreeMap<ScoreTarget, TargetUnits> {
        let mut responses: HashMap<(&str, &str), Vec<ResponsePosition>> = HashMap::new();
        for (i, verdict) in self.verdicts.iter().enumerate() {
            for (side, model) in verdict.pair.iter().enumerate() {
                responses.entry((&verdict.case, model)).or_default().push((i, side));
            }
        }
        let mut targets = BTreeMap::new();
        for target in ScoreTarget::all() {
            let mut units = TargetUnits::default();
            for (i, verdict) in self.verdicts.iter().enumerate() {
                if let Some(rated) = self.pair_ratings(i, verdict, target) {
                    units.pairs.push(PairUnit {
                        verdict: i,
                        judge: verdict.order(target),
                        ratings: rated,
                    });
                }
                for (side, model) in verdict.pair.iter().enumerate() {
                    let key = (verdict.case.as_str(), model.as_str());
                    let positions = responses.get(&key).map_or(&[][..], Vec::as_slice);
                    // A response becomes one unit, at the first of its pairs.
                    if positions.first() == Some(&(i, side)) {
                        let ratings = self.response_scores(&verdict.case, model, target);
                        if !ratings.is_empty() {
                            units.responses.push(ResponseUnit {
                                verdict: i,
                                side,
                                judge: mean_score(self.verdicts, positions, target),
                                ratings,
                            });
                        }
                    }
                }
            }
            units.triples = find_triples(self.verdicts, &units.pairs);
            if !units.pairs.is_empty() || !units.responses.is_empty() {
                targets.insert(target, units);
            }
        }
        targets
    }

    /// Returns the scores of a response, given its case and model.
    fn response_scores(&self, case: &str, model: &str, target: ScoreTarget) -> Vec<(u32, f64)> {
        let scores = self.scores.get(&(case, model, target));
        scores.map_or_else(Vec::new, |scores| {
            scores.iter().map(|(rater, (value, _))| (*rater, *value)).collect()
        })
    }

    /// Returns the ratings of a pair: its preferences if there are any, else the scores of both
    /// responses.
    fn pair_ratings(
        &self,
        i: usize,
        verdict: &PairVerdict,
        target: ScoreTarget,
    ) -> Option<PairRatings> {
        if let Some(votes) = self.votes.get(&(i, target)) {
            return Some(PairRatings::Votes(
                votes.iter().map(|(rater, (order, _))| (*rater, *order)).collect(),
            ));
        }
        let scores = |model: &String| self.response_scores(&verdict.case, model, target);
        let scores = verdict.pair.each_ref().map(scores);
        (!scores.iter().any(Vec::is_empty)).then_some(PairRatings::Scores(scores))
    }
}

fn duplicate_rating_error(entry: &LabelEntry, line: u64, subject: &str) -> String {
    format!(
        "case {}, {subject}, `{}`: already rated in line {line} by `{}`\n\
         hint: remove one of the two rows; if they are of two raters, the column `rater` names them",
        entry.case,
        entry.target.key(),
        entry.rater
    )
}

/// Converts a vote to an order of the pair of the verdict.
fn vote_order(
    vote: &Vote,
    models: Option<&[String; 2]>,
    pair: &[String; 2],
) -> Result<Ordering, String> {
    let voted_pair = models.unwrap_or(pair);
    let order = vote.order(voted_pair.each_ref().map(String::as_str))?;
    Ok(if voted_pair[0] == pair[0] { order } else { order.reverse() })
}

/// Computes the mean of the judge's scores of a response over its pairs.
fn mean_score(
    verdicts: &[PairVerdict],
    positions: &[ResponsePosition],
    target: ScoreTarget,
) -> Option<f64> {
    let score = |(i, side): &ResponsePosition| {
        let scores = verdicts.get(*i)?.scores.as_ref()?.get(&target)?;
        scores.get(*side).copied()
    };
    let scores: Vec<f64> = positions.iter().filter_map(score).collect();
    let n = scores.len() as f64;
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / n)
}
