//! Finding what each label is about.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Result, anyhow};

use super::units::{LabelledUnits, PairRatings, PairUnit, ResponseUnit, TargetUnits, TripleUnit};
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::{LabelEntry, LabelValue, ScoreTarget, Vote};

/// Scores by case, model and target; votes by verdict and target. Each with its rater and line.
#[derive(Default)]
struct LabelIndex<'a> {
    scores: HashMap<(&'a str, &'a str, ScoreTarget), RaterEntries<f64>>,
    votes: HashMap<(usize, ScoreTarget), RaterEntries<std::cmp::Ordering>>,
}

/// What each rater says, and in which line.
type RaterEntries<T> = BTreeMap<u32, (T, u64)>;

/// Joins labels to verdicts, by the id of the case and the names of the models.
///
/// # Errors
///
/// If no label is about these verdicts, a rater rated one thing twice, or a preference cannot be told.
pub fn join(verdicts: &Verdicts, entries: &[LabelEntry], source: &Path) -> Result<LabelledUnits> {
    let index = VerdictIndex::new(&verdicts.pairs);
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
    let mut found = LabelIndex::default();
    for entry in entries {
        let rater = raters
            .get(entry.rater.as_str())
            .copied()
            .unwrap_or_default();
        let place = |fault: String| anyhow!("{} line {}: {fault}", source.display(), entry.line);
        let joined = found
            .add(entry, rater, (&index, &verdicts.pairs))
            .map_err(place)?;
        if joined {
            units.joined += 1;
        } else {
            units.unmatched += 1;
            units
                .first_unmatched
                .get_or_insert_with(|| unmatched(entry));
        }
    }
    if units.joined == 0 {
        let example = verdicts.pairs.first().map_or(String::new(), |v| {
            format!("case {} of {} and {}", v.case, v.pair[0], v.pair[1])
        });
        return Err(anyhow!(
            "{}: none of the {} labels is about these records (label: {}; record: {example})\n\
             hint: ids of cases and names of models must be those of the records",
            source.display(),
            units.unmatched,
            units.first_unmatched.unwrap_or_default(),
        ));
    }
    units.preferences = found.scores.is_empty();
    found.units(verdicts, &mut units);
    Ok(units)
}

fn unmatched(entry: &LabelEntry) -> String {
    let of = match &entry.what {
        LabelValue::Score { model, .. } => format!(", model {model}"),
        LabelValue::Preference {
            models: Some([a, b]),
            ..
        } => format!(", models {a} and {b}"),
        LabelValue::Preference { models: None, .. } => String::new(),
    };
    format!("line {}: case {}{of}", entry.line, entry.case)
}

/// The verdicts of each case.
struct VerdictIndex<'a> {
    cases: HashMap<&'a str, Vec<usize>>,
}

impl<'a> VerdictIndex<'a> {
    fn new(verdicts: &'a [PairVerdict]) -> Self {
        let mut cases: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, verdict) in verdicts.iter().enumerate() {
            cases.entry(&verdict.case).or_default().push(i);
        }
        // The readers of data sets put a prefix before a set's own numbers.
        let mut short: HashMap<&str, Vec<usize>> = HashMap::new();
        for (case, places) in &cases {
            if let Some((_, number)) = case.rsplit_once('-')
                && number.chars().all(|c| c.is_ascii_digit())
                && !cases.contains_key(number)
            {
                short.entry(number).or_default().extend(places);
            }
        }
        short.retain(|_, places| {
            let mut of = places.iter().filter_map(|i| verdicts.get(*i));
            let first = of.next();
            of.all(|verdict| Some(&verdict.case) == first.map(|v| &v.case))
        });
        cases.extend(short);
        Self { cases }
    }

    fn of(&self, case: &str) -> &[usize] {
        self.cases.get(case).map_or(&[], Vec::as_slice)
    }
}

impl<'a> LabelIndex<'a> {
    /// Adds an entry; whether it is about one of the verdicts.
    fn add(
        &mut self,
        entry: &'a LabelEntry,
        rater: u32,
        (index, verdicts): (&VerdictIndex<'_>, &'a [PairVerdict]),
    ) -> Result<bool, String> {
        let places = index.of(&entry.case);
        let pairs = || places.iter().filter_map(|i| Some((*i, verdicts.get(*i)?)));
        match &entry.what {
            LabelValue::Score { model, value } => {
                let Some((_, verdict)) = pairs().find(|(_, v)| v.pair.contains(model)) else {
                    return Ok(false);
                };
                let key = (verdict.case.as_str(), model.as_str(), entry.target);
                let before = self
                    .scores
                    .entry(key)
                    .or_default()
                    .insert(rater, (*value, entry.line));
                // A response of several pairs carries its label in each of their records.
                match before {
                    Some((other, line)) if line != entry.line || (other - value).abs() > 0.0 => {
                        Err(twice(entry, line, &format!("model {model}")))
                    }
                    _ => Ok(true),
                }
            }
            LabelValue::Preference { models, vote } => {
                let about = |v: &PairVerdict| match models {
                    Some(models) => models.iter().all(|m| v.pair.contains(m)),
                    None => true,
                };
                let mut about = pairs().filter(|(_, v)| about(v));
                let (Some((place, verdict)), None) = (about.next(), about.next()) else {
                    return if models.is_none() && places.len() > 1 {
                        Err(format!(
                            "a preference without models, but case {} has {} pairs\n\
                             hint: name the two in the columns model_a and model_b",
                            entry.case,
                            places.len()
                        ))
                    } else {
                        Ok(false)
                    };
                };
                let order = order(vote, models.as_ref(), &verdict.pair)?;
                let votes = self.votes.entry((place, entry.target)).or_default();
                match votes.insert(rater, (order, entry.line)) {
                    Some((_, line)) => Err(twice(entry, line, "this pair")),
                    None => Ok(true),
                }
            }
        }
    }

    /// All that is labelled, as units.
    fn units(&self, verdicts: &Verdicts, units: &mut LabelledUnits) {
        let mut responses: HashMap<(&str, &str), Vec<(usize, usize)>> = HashMap::new();
        for (i, verdict) in verdicts.pairs.iter().enumerate() {
            for (side, model) in verdict.pair.iter().enumerate() {
                responses
                    .entry((&verdict.case, model))
                    .or_default()
                    .push((i, side));
            }
        }
        for target in ScoreTarget::all() {
            let mut of = TargetUnits::default();
            for (i, verdict) in verdicts.pairs.iter().enumerate() {
                if let Some(rated) = self.rated(i, verdict, target) {
                    of.pairs.push(PairUnit {
                        verdict: i,
                        judge: verdict.order(target),
                        rated,
                    });
                }
                for (side, model) in verdict.pair.iter().enumerate() {
                    let key = (verdict.case.as_str(), model.as_str());
                    let places = responses.get(&key).map_or(&[][..], Vec::as_slice);
                    // A response is one unit, told at the first pair it is in.
                    if places.first() == Some(&(i, side)) {
                        let ratings = self.ratings(key, target);
                        if !ratings.is_empty() {
                            of.responses.push(ResponseUnit {
                                verdict: i,
                                side,
                                judge: mean_score(&verdicts.pairs, places, target),
                                ratings,
                            });
                        }
                    }
                }
            }
            of.triples = triples(&verdicts.pairs, &of.pairs);
            if !of.pairs.is_empty() || !of.responses.is_empty() {
                units.targets.insert(target, of);
            }
        }
    }

    fn ratings(&self, (case, model): (&str, &str), target: ScoreTarget) -> Vec<(u32, f64)> {
        let found = self.scores.get(&(case, model, target));
        found.map_or_else(Vec::new, |f| f.iter().map(|(r, (v, _))| (*r, *v)).collect())
    }

    /// What people say of a pair: preferences where there are any, else the scores of both.
    fn rated(&self, i: usize, verdict: &PairVerdict, target: ScoreTarget) -> Option<PairRatings> {
        if let Some(votes) = self.votes.get(&(i, target)) {
            return Some(PairRatings::Votes(
                votes.iter().map(|(r, (o, _))| (*r, *o)).collect(),
            ));
        }
        let of = |model: &String| self.ratings((&verdict.case, model), target);
        let scores = verdict.pair.each_ref().map(of);
        (!scores.iter().any(Vec::is_empty)).then_some(PairRatings::Scores(scores))
    }
}

fn twice(entry: &LabelEntry, line: u64, what: &str) -> String {
    format!(
        "case {}, {what}, `{}`: rated in line {line} too, by `{}`\n\
         hint: one rating per rater; several raters need a column `rater`",
        entry.case,
        entry.target.key(),
        entry.rater
    )
}

/// A vote as an order of the verdict's own pair.
fn order(
    vote: &Vote,
    models: Option<&[String; 2]>,
    pair: &[String; 2],
) -> Result<std::cmp::Ordering, String> {
    let named = models.unwrap_or(pair);
    let order = vote.order(named.each_ref().map(String::as_str))?;
    Ok(if named[0] == pair[0] {
        order
    } else {
        order.reverse()
    })
}

/// The mean of a response's scores over the pairs it is in.
fn mean_score(
    verdicts: &[PairVerdict],
    places: &[(usize, usize)],
    target: ScoreTarget,
) -> Option<f64> {
    let score = |(i, side): &(usize, usize)| {
        let scores = verdicts.get(*i)?.scores.as_ref()?.get(&target)?;
        scores.get(*side).copied()
    };
    let scores: Vec<f64> = places.iter().filter_map(score).collect();
    let n = scores.len() as f64;
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / n)
}

/// Every three models of a case whose three pairs are labelled.
fn triples(verdicts: &[PairVerdict], pairs: &[PairUnit]) -> Vec<TripleUnit> {
    let mut cases: BTreeMap<&str, Vec<(&[String; 2], &PairUnit)>> = BTreeMap::new();
    for unit in pairs {
        if let Some(verdict) = verdicts.get(unit.verdict) {
            cases
                .entry(&verdict.case)
                .or_default()
                .push((&verdict.pair, unit));
        }
    }
    let mut found = Vec::new();
    for pairs in cases.values().filter(|pairs| pairs.len() > 2) {
        let mut models: Vec<&String> = pairs.iter().flat_map(|(pair, _)| *pair).collect();
        models.sort();
        models.dedup();
        let of = |a: &String, b: &String| {
            let (pair, unit) = pairs.iter().find(|(p, _)| p.contains(a) && p.contains(b))?;
            let turn = |o: std::cmp::Ordering| if pair[0] == *a { o } else { o.reverse() };
            Some((
                unit.verdict,
                unit.judge.map(turn),
                turn(unit.rated.order(None)?),
            ))
        };
        for (i, a) in models.iter().enumerate() {
            for (j, b) in models.iter().enumerate().skip(i + 1) {
                for c in models.iter().skip(j + 1) {
                    let three = [of(a, b), of(a, c), of(b, c)];
                    if let [Some(x), Some(y), Some(z)] = three {
                        let judge = [x.1, y.1, z.1];
                        found.push(TripleUnit {
                            verdict: x.0,
                            judge: match judge {
                                [Some(x), Some(y), Some(z)] => Some([x, y, z]),
                                _ => None,
                            },
                            label: [x.2, y.2, z.2],
                        });
                    }
                }
            }
        }
    }
    found
}
