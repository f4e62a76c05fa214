//! Triples of responses whose three pairs are labelled.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::analysis::agreement::units::labelled_units::{PairUnit, TripleUnit};
use crate::analysis::verdicts::PairVerdict;

/// The order of two models of a case.
struct PairOrders {
    verdict: usize,
    judge: Option<Ordering>,
    label: Ordering,
}

/// The labelled pairs of a case, each with its models.
type CasePairs<'a> = Vec<(&'a [String; 2], &'a PairUnit)>;

/// Finds every three models of a case whose three pairs are labelled.
pub(crate) fn find_triples(verdicts: &[PairVerdict], pairs: &[PairUnit]) -> Vec<TripleUnit> {
    let mut cases: BTreeMap<&str, CasePairs<'_>> = BTreeMap::new();
    for unit in pairs {
        if let Some(verdict) = verdicts.get(unit.verdict) {
            let case = cases.entry(&verdict.case).or_default();
            case.push((&verdict.pair, unit));
        }
    }
    let mut triples = Vec::new();
    for pairs in cases.values().filter(|pairs| pairs.len() > 2) {
        let mut models: Vec<&String> = pairs.iter().flat_map(|(pair, _)| *pair).collect();
        models.sort();
        models.dedup();
        for (i, a) in models.iter().enumerate() {
            for (j, b) in models.iter().enumerate().skip(i + 1) {
                let thirds = models.iter().skip(j + 1);
                triples.extend(thirds.filter_map(|c| build_triple(pairs, [a, b, c])));
            }
        }
    }
    triples
}

/// Builds the triple of three models, if all three pairs are labelled.
fn build_triple(pairs: &CasePairs<'_>, [a, b, c]: [&String; 3]) -> Option<TripleUnit> {
    let [first, second, third] =
        [pair_orders(pairs, [a, b])?, pair_orders(pairs, [a, c])?, pair_orders(pairs, [b, c])?];
    let judge = match [first.judge, second.judge, third.judge] {
        [Some(x), Some(y), Some(z)] => Some([x, y, z]),
        _ => None,
    };
    Some(TripleUnit {
        verdict: first.verdict,
        judge,
        label: [first.label, second.label, third.label],
    })
}

/// Returns the orders of the pair of these models: `Greater` if the first model is better.
fn pair_orders(pairs: &CasePairs<'_>, [a, b]: [&String; 2]) -> Option<PairOrders> {
    let (models, unit) =
        pairs.iter().find(|(models, _)| models.contains(a) && models.contains(b))?;
    let orient = |order: Ordering| {
        if models[0] == *a { order } else { order.reverse() }
    };
    Some(PairOrders {
        verdict: unit.verdict,
        judge: unit.judge.map(orient),
        label: orient(unit.ratings.order(None)?),
    })
}
