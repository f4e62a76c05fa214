//! Does length decide: is the longer answer preferred more than people prefer it, and who would win if
//! all answers were as long as each other.
//!
//! The length-controlled win rate is that of Dubois et al. (2024, `Length-Controlled AlpacaEval`, §3; their
//! code: `alpaca_eval/metrics/glm_winrate.py`), simplified: the outcome of a pair is a logistic model of the
//! difference of the two models' strengths and of tanh((l₁ − l₂) / s), s being the standard deviation of
//! l₁ − l₂. With the second term left out it tells what would be at equal lengths. Theirs has a term for
//! the difficulty of the instruction, an effect of length for each model and a penalty on it; ours has one
//! effect, no penalty, and counts words. A tie is half a win.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use acem3_conclusion::compare;

use super::probe::Probe;
use super::result::{AuditMeasure, Finding, FindingOutcome, MeasureUnit};
use crate::analysis::audit::audit_estimate::{AuditEstimate, ClusteredValues, IntervalPosition};
use crate::analysis::audit::audit_verdicts::AuditVerdicts;
use crate::analysis::verdicts::PairVerdict;
use crate::data::labels::ScoreTarget;
use crate::statistics::{Clusters, Defined, Logistic, LogisticObservation, Undefined};

/// The name of the judge's preference for the longer less the labels', in files.
pub(super) const GAP: &str = "longer_gap";
const LONGER: &str = "longer_preferred";
const EFFECT: &str = "length_effect";

/// A preference that strays no further from people's is none. Share.
const TOLERABLE: f64 = 0.10;

/// Looks for a preference for length.
pub(super) fn find(evidence: &AuditVerdicts<'_>) -> Finding {
    let bootstrap = evidence.bootstrap;
    let unequal: Vec<(&PairVerdict, Option<Ordering>)> = evidence
        .scored()
        .filter(|(verdict, _)| verdict.words[0] != verdict.words[1])
        .collect();
    if unequal.is_empty() {
        let why = "the two answers of every pair are as long as each other";
        return Finding::not_run(Probe::Verbosity, why);
    }
    let judged = |v: &PairVerdict| Some(longer_won(v, v.order(ScoreTarget::Final)?));
    let all = unequal
        .iter()
        .filter_map(|(v, _)| Some((v.cluster.as_str(), judged(v)?)));
    let all = ClusteredValues::new(all).mean(MeasureUnit::Share, bootstrap);
    let labelled: Vec<(&str, f64, f64)> = unequal
        .iter()
        .filter_map(|(v, label)| Some((v.cluster.as_str(), judged(v)?, longer_won(v, (*label)?))))
        .collect();
    let of = |unit, value: fn(&(&str, f64, f64)) -> f64| {
        let values = labelled.iter().map(|entry| (entry.0, value(entry)));
        ClusteredValues::new(values).mean(unit, bootstrap)
    };
    let mut measures = vec![AuditMeasure::new(
        LONGER,
        "longer preferred",
        MeasureUnit::Share,
        all.clone(),
    )];
    let gap = if labelled.is_empty() {
        AuditEstimate::undefined("no label says which response is better")
    } else {
        let on_labelled = of(MeasureUnit::Share, |(_, judge, _)| *judge);
        let people = of(MeasureUnit::Share, |(_, _, label)| *label);
        let gap = of(MeasureUnit::ShareDifference, |(_, judge, label)| {
            judge - label
        });
        measures.push(
            AuditMeasure::new(
                "longer_labelled",
                "  where labelled",
                MeasureUnit::Share,
                on_labelled,
            )
            .against("labels", people, Some(gap.clone())),
        );
        gap
    };
    measures.push(AuditMeasure::new(
        GAP,
        "judge less labels",
        MeasureUnit::ShareDifference,
        gap.clone(),
    ));
    let mut notes = Vec::new();
    measures.extend(controlled(evidence, &mut notes));
    let (outcome, words) = conclude(&all, &gap, labelled.is_empty());
    if labelled.is_empty() {
        notes.push(
            "without labels nobody knows whether the longer answers are the better ones".into(),
        );
    }
    Finding {
        probe: Probe::Verbosity,
        outcome,
        words,
        measures,
        notes,
    }
}

fn conclude(
    all: &AuditEstimate,
    gap: &AuditEstimate,
    unlabelled: bool,
) -> (FindingOutcome, String) {
    let told = all.words(MeasureUnit::Share);
    if unlabelled {
        let words = format!("the longer answer wins {told}; no labels say whether it should");
        return (FindingOutcome::Unclear, words);
    }
    let beyond = gap.words(MeasureUnit::ShareDifference);
    match gap.sign(0.0, TOLERABLE) {
        IntervalPosition::Above => {
            let words = format!(
                "verbosity bias: the longer answer wins more often than by the labels, by {beyond}"
            );
            (FindingOutcome::Biased, words)
        }
        IntervalPosition::Below => {
            let words = format!(
                "bias for brevity: the longer answer wins less often than by the labels, {beyond}"
            );
            (FindingOutcome::Biased, words)
        }
        IntervalPosition::There => {
            let words = format!(
                "no sign of verbosity bias: the longer answer wins {told}; judge less labels {beyond}"
            );
            (FindingOutcome::Sound, words)
        }
        IntervalPosition::Unclear => {
            let words =
                format!("too few pairs to tell a verbosity bias: judge less labels {beyond}");
            (FindingOutcome::Unclear, words)
        }
    }
}

/// How far the longer response won: 1, ½ or 0.
fn longer_won(verdict: &PairVerdict, order: Ordering) -> f64 {
    let [a, b] = verdict.words;
    match order {
        Ordering::Equal => 0.5,
        won => f64::from(u8::from(won == a.cmp(&b))),
    }
}

/// Pairs as a logistic model sees them, equal ones held once.
struct LengthPairs {
    models: Vec<String>,
    /// The distinct ones; the last feature is the length's.
    distinct: Vec<LogisticObservation>,
    /// Which of them each pair is.
    of: Vec<usize>,
    /// What is drawn as a whole.
    clusters: Vec<String>,
}

impl LengthPairs {
    fn of(evidence: &AuditVerdicts<'_>) -> Option<Self> {
        let scored: Vec<(&PairVerdict, Ordering)> = evidence
            .scored()
            .filter_map(|(v, _)| Some((v, v.order(ScoreTarget::Final)?)))
            .collect();
        let longer = |v: &PairVerdict| v.words[0] as f64 - v.words[1] as f64;
        let n = scored.len() as f64;
        let mean = scored.iter().map(|(v, _)| longer(v)).sum::<f64>() / n;
        let squares = scored.iter().map(|(v, _)| (longer(v) - mean).powi(2));
        let deviation = (squares.sum::<f64>() / n).sqrt();
        if deviation.is_nan() || deviation <= 0.0 {
            return None;
        }
        let mut models: BTreeMap<String, usize> = BTreeMap::new();
        for model in scored.iter().flat_map(|(v, _)| &v.pair) {
            models.entry(model.clone()).or_default();
        }
        for (place, number) in models.values_mut().enumerate() {
            *number = place;
        }
        let mut pairs = Self {
            models: models.keys().cloned().collect(),
            distinct: Vec::new(),
            of: Vec::new(),
            clusters: scored.iter().map(|(v, _)| v.cluster.clone()).collect(),
        };
        let mut places: HashMap<([usize; 2], i64, Ordering), usize> = HashMap::new();
        for (verdict, order) in scored {
            let [i, j] = verdict
                .pair
                .each_ref()
                .map(|m| models.get(m).copied().unwrap_or(0));
            let next = places.len();
            let place = *places
                .entry(([i, j], longer(verdict) as i64, order))
                .or_insert(next);
            if place == next {
                let mut features = pairs.strengths(i, j);
                features.push((longer(verdict) / deviation).tanh());
                let outcome = match order {
                    Ordering::Greater => 1.0,
                    Ordering::Equal => 0.5,
                    Ordering::Less => 0.0,
                };
                pairs
                    .distinct
                    .push(LogisticObservation { features, outcome });
            }
            pairs.of.push(place);
        }
        Some(pairs)
    }

    /// The features of two models: +1 for the first, −1 for the second; the strength of the last model
    /// is the zero of the others.
    fn strengths(&self, i: usize, j: usize) -> Vec<f64> {
        let mut features = vec![0.0; self.models.len().saturating_sub(1)];
        for (model, side) in [(i, 1.0), (j, -1.0)] {
            if let Some(feature) = features.get_mut(model) {
                *feature += side;
            }
        }
        features
    }

    fn fit(&self, drawn: &[f64]) -> Defined<Logistic> {
        let mut weights = vec![0.0; self.distinct.len()];
        for (place, weight) in self.of.iter().zip(drawn) {
            weights[*place] += weight;
        }
        Logistic::fit(&self.distinct, &weights)
    }

    /// The effect of length, then each model's mean chance of winning against the others at equal
    /// lengths.
    fn figures(&self, drawn: &[f64]) -> Vec<Defined<f64>> {
        let fit = match self.fit(drawn) {
            Ok(fit) => fit,
            Err(why) => return vec![Err(why); self.models.len() + 1],
        };
        let n = self.models.len();
        let effect = fit.coefficients.last().copied().ok_or(Undefined::NotFinite);
        let rate = |i: usize| {
            let against = (0..n)
                .filter(|j| *j != i)
                .map(|j| fit.at(&self.strengths(i, j)));
            Ok(against.sum::<f64>() / (n as f64 - 1.0))
        };
        std::iter::once(effect).chain((0..n).map(rate)).collect()
    }
}

/// The effect of length, and each model's win rate with and without it.
fn controlled(evidence: &AuditVerdicts<'_>, notes: &mut Vec<String>) -> Vec<AuditMeasure> {
    let Some(pairs) = LengthPairs::of(evidence) else {
        notes.push("win rates at equal length: all differences of length are the same".to_owned());
        return Vec::new();
    };
    if pairs.models.len() < 2 {
        notes.push("win rates at equal length: one model alone".to_owned());
        return Vec::new();
    }
    let once = vec![1.0; pairs.of.len()];
    let values = pairs.figures(&once);
    if let Some(Err(why)) = values.first() {
        notes.push(format!("win rates at equal length are undefined: {why}"));
    }
    let clusters = Clusters::new(&pairs.clusters);
    let draws = match values.first() {
        Some(Ok(_)) => evidence.bootstrap.draw(&clusters, |w| pairs.figures(w)),
        _ => Vec::new(),
    };
    let reading = |place: usize, unit| {
        let value = values
            .get(place)
            .copied()
            .unwrap_or(Err(Undefined::NotFinite));
        let of = draws
            .iter()
            .filter_map(|draw| draw.get(place).copied())
            .collect();
        AuditEstimate::drawn(value, of, &clusters, unit)
    };
    let effect = reading(0, MeasureUnit::LogOdds);
    let mut measures = vec![AuditMeasure::new(
        EFFECT,
        "log-odds of a longer answer",
        MeasureUnit::LogOdds,
        effect,
    )];
    for (place, model) in pairs.models.iter().enumerate() {
        let raw = evidence.scored().filter_map(|(v, _)| {
            let side = v.pair.iter().position(|m| m == model)?;
            let scores = v.scores.as_ref()?.get(&ScoreTarget::Final)?;
            let won = match (compare(*scores), side) {
                (Ordering::Equal, _) => 0.5,
                (Ordering::Greater, 0) | (Ordering::Less, 1) => 1.0,
                _ => 0.0,
            };
            Some((v.cluster.as_str(), won))
        });
        let raw = ClusteredValues::new(raw).mean(MeasureUnit::Share, evidence.bootstrap);
        let title = format!("win rate at equal length: {model}");
        let measure = AuditMeasure::new(
            &format!("length_controlled_win_rate:{model}"),
            &title,
            MeasureUnit::Share,
            reading(place + 1, MeasureUnit::Share),
        );
        measures.push(measure.against("as it is", raw, None));
    }
    measures
}
