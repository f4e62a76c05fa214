//! Comparison with an earlier run: what changed, pair by pair.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::analysis::report::run_comparison::{
    ChangeTitle, EQUAL, ModelChange, RecordChange, RunComparison,
};
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::judging::judge::recorded_verdict::PairOrder;

/// What changed since an earlier run, and the mean scores of the models.
pub type BaselineComparison = RunComparison<PairChange>;

/// A pair with another outcome than in the earlier run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairChange {
    /// Id of the case.
    pub case: String,
    /// The two models.
    pub pair: [String; 2],
    /// What changed.
    pub kind: ChangeKind,
    /// Outcome in the earlier run; `None` if the pair was unscored.
    pub before: Option<PairScores>,
    /// Outcome in this run; `None` if the pair is unscored.
    pub after: Option<PairScores>,
}

/// Kind of a change, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Another response is preferred, or a tie became a preference or the reverse.
    Preference,
    /// The pair has no verdict any more.
    Lost,
    /// The pair has a verdict now.
    Gained,
    /// The scores differ, the preference does not.
    Scores,
}

/// Outcome of a pair on the score target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairScores {
    /// The preferred response.
    pub order: PairOrder,
    /// The scores, in the order of the pair.
    pub scores: [f64; 2],
}

impl ChangeTitle for ChangeKind {
    const ALL: &'static [Self] = &[Self::Preference, Self::Lost, Self::Gained, Self::Scores];

    fn title(self) -> &'static str {
        match self {
            Self::Preference => "another preference",
            Self::Lost => "no verdict any more",
            Self::Gained => "a verdict now",
            Self::Scores => "other scores, same preference",
        }
    }
}

impl RecordChange for PairChange {
    type Kind = ChangeKind;

    fn kind(&self) -> ChangeKind {
        self.kind
    }
}

impl BaselineComparison {
    /// Compares a run with an earlier one. Pairs are matched by case and models.
    pub fn new(new: &Verdicts, earlier: &Verdicts, target: ScoreTarget) -> Self {
        let mut known: HashMap<ComparedPair<'_>, &PairVerdict> =
            earlier.pairs.iter().map(|pair| (ComparedPair::new(pair), pair)).collect();
        let mut comparison = Self::with_earlier(&earlier.name, &earlier.judge, &earlier.path);
        let mut sums: BTreeMap<&str, (usize, [f64; 2])> = BTreeMap::new();
        for pair in &new.pairs {
            let Some(before) = known.remove(&ComparedPair::new(pair)) else {
                comparison.only_new += 1;
                continue;
            };
            comparison.common += 1;
            let is_swapped = before.pair != pair.pair;
            let before = pair_scores(before, target, is_swapped);
            let after = pair_scores(pair, target, false);
            if let (Some(before), Some(after)) = (&before, &after) {
                for (side, model) in pair.pair.iter().enumerate() {
                    let (n, sum) = sums.entry(model).or_default();
                    *n += 1;
                    sum[0] += before.scores[side];
                    sum[1] += after.scores[side];
                }
            }
            comparison.changes.extend(change_kind(before, after).map(|kind| PairChange {
                case: pair.case.clone(),
                pair: pair.pair.clone(),
                kind,
                before,
                after,
            }));
        }
        comparison.only_earlier = known.len();
        let model = |(model, (n, [before, after])): (&str, (usize, [f64; 2]))| ModelChange {
            model: model.to_owned(),
            n,
            before: before / n as f64,
            after: after / n as f64,
        };
        comparison.models = sums.into_iter().map(model).collect();
        comparison
    }
}

/// Case and models of a pair, in alphabetical order.
#[derive(PartialEq, Eq, Hash)]
struct ComparedPair<'a>(&'a str, [&'a str; 2]);

impl<'a> ComparedPair<'a> {
    fn new(pair: &'a PairVerdict) -> Self {
        let mut models = pair.pair.each_ref().map(String::as_str);
        models.sort_unstable();
        Self(&pair.case, models)
    }
}

fn pair_scores(pair: &PairVerdict, target: ScoreTarget, swap: bool) -> Option<PairScores> {
    let mut scores = *pair.scores.as_ref()?.get(&target)?;
    let mut order = pair.order(target)?;
    if swap {
        scores.reverse();
        order = order.reverse();
    }
    Some(PairScores { order: order.into(), scores })
}

fn change_kind(before: Option<PairScores>, after: Option<PairScores>) -> Option<ChangeKind> {
    match (before, after) {
        (None, None) => None,
        (Some(_), None) => Some(ChangeKind::Lost),
        (None, Some(_)) => Some(ChangeKind::Gained),
        (Some(before), Some(after)) if before.order != after.order => Some(ChangeKind::Preference),
        (Some(before), Some(after)) => {
            let mut pairs = before.scores.iter().zip(&after.scores);
            pairs.any(|(a, b)| (a - b).abs() > EQUAL).then_some(ChangeKind::Scores)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::judging::run::run_state::RunState;

    /// Case, models and final scores of a pair.
    type TestPair = (&'static str, [&'static str; 2], Option<[f64; 2]>);

    fn verdicts(pairs: &[TestPair]) -> Verdicts {
        let pair = |(case, pair, scores): &TestPair| PairVerdict {
            case: (*case).to_owned(),
            pair: pair.map(str::to_owned),
            has_image: true,
            cluster: String::new(),
            scores: scores.map(|scores| [(ScoreTarget::Final, scores)].into()),
            orders: Vec::new(),
            words: [0; 2],
            has_identical_responses: false,
            meta: serde_json::Map::new(),
            line: 1,
            key: None,
        };
        Verdicts {
            path: Path::new("records.jsonl").to_owned(),
            judge: String::new(),
            name: String::new(),
            score_range: [0, 5],
            pairs: pairs.iter().map(pair).collect(),
            labels: Vec::new(),
            without_pair: 0,
            unlisted_pairs: BTreeMap::new(),
            run: RunState::default(),
        }
    }

    #[test]
    fn every_kind_of_change_is_found_also_for_swapped_pairs() {
        let earlier = verdicts(&[
            ("same", ["a", "b"], Some([4.0, 2.0])),
            ("swapped", ["b", "a"], Some([2.0, 4.0])),
            ("turned", ["b", "a"], Some([2.0, 4.0])),
            ("lost", ["a", "b"], Some([1.0, 2.0])),
            ("gained", ["a", "b"], None),
            ("unscored", ["a", "b"], None),
            ("scores", ["a", "b"], Some([3.0, 2.0])),
            ("removed", ["a", "b"], Some([3.0, 2.0])),
        ]);
        let new = verdicts(&[
            ("same", ["a", "b"], Some([4.0, 2.0])),
            ("swapped", ["a", "b"], Some([4.0, 2.0])),
            ("turned", ["a", "b"], Some([2.0, 4.0])),
            ("lost", ["a", "b"], None),
            ("gained", ["a", "b"], Some([3.0, 3.0])),
            ("unscored", ["a", "b"], None),
            ("scores", ["a", "b"], Some([5.0, 2.0])),
            ("added", ["a", "c"], Some([3.0, 2.0])),
        ]);
        let found = BaselineComparison::new(&new, &earlier, ScoreTarget::Final);
        assert_eq!((found.common, found.only_new, found.only_earlier), (7, 1, 1));
        let kinds: Vec<_> = found.changes.iter().map(|c| (c.case.as_str(), c.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("turned", ChangeKind::Preference),
                ("lost", ChangeKind::Lost),
                ("gained", ChangeKind::Gained),
                ("scores", ChangeKind::Scores),
            ]
        );
        assert_eq!(found.changes[0].before.unwrap().order, PairOrder::FirstBetter);
        let a = &found.models[0];
        assert_eq!((a.model.as_str(), a.n, a.before, a.after), ("a", 4, 3.75, 3.75));
    }
}
