//! Test sets of a measurement: pairs whose better response is known.

use std::cmp::Ordering;
use std::collections::HashMap;

use acem3_conclusion::compare_scores;
use acem3_experts::{Aspect, Criterion};
use acem3_vision::DecodedImage;
use anyhow::{Context, Result};

use crate::data::images::derived::image_from_pixels;
use crate::data::phantoms::{Phantom, generate_phantom};
use crate::training::measurement::test_pair::{TestImage, TestPair};

/// Known order of a pair.
pub(crate) struct KnownOrder {
    /// Order of the first response relative to the second; `None` if unknown.
    pub(crate) order: Option<Ordering>,
    /// Order in each aspect, in the order of [`Aspect::ALL`]; `None` if unknown.
    pub(crate) aspects: [Option<Ordering>; 3],
    /// Order in known aspects of other rubrics.
    pub(crate) other_aspects: Vec<(Aspect, Ordering)>,
    /// Order in the criteria that are known.
    pub(crate) criteria: Vec<(Criterion, Ordering)>,
    /// Key and known final score of both responses; `None` if unknown. A response has the same key in
    /// all its pairs.
    pub(crate) labels: Option<[(String, f64); 2]>,
    /// True for a closed question; `None` if unknown.
    pub(crate) is_closed: Option<bool>,
    /// Whether the rule that prefers the more frequent answer is right: 0, ½ or 1; `None` if there are
    /// no answers to count.
    pub(crate) majority: Option<f64>,
}

impl KnownOrder {
    /// Returns the order in this aspect; `None` if unknown.
    pub(crate) fn aspect(&self, aspect: Aspect) -> Option<Ordering> {
        let own = Aspect::ALL.into_iter().zip(self.aspects);
        let own = own.filter_map(|(candidate, order)| Some((candidate, order?)));
        let mut orders = own.chain(self.other_aspects.iter().copied());
        orders.find(|(candidate, _)| *candidate == aspect).map(|(_, order)| order)
    }

    /// Returns the order in this criterion; `None` if unknown.
    pub(crate) fn criterion(&self, criterion: Criterion) -> Option<Ordering> {
        let mut orders = self.criteria.iter();
        orders.find(|(candidate, _)| *candidate == criterion).map(|(_, order)| *order)
    }

    /// Returns the order of a pair whose better response is known, and with it that in medical
    /// knowledge.
    pub(super) fn of_answers(order: Ordering, is_closed: bool, majority: f64) -> Self {
        Self {
            order: Some(order),
            aspects: [None, Some(order), None],
            other_aspects: Vec::new(),
            criteria: Vec::new(),
            labels: None,
            is_closed: Some(is_closed),
            majority: Some(majority),
        }
    }
}

/// A named list of pairs with known orders.
pub(crate) struct TestSet {
    /// Name in tables.
    pub(crate) name: &'static str,
    /// The pairs to judge.
    pub(crate) pairs: Vec<TestPair>,
    /// Known order of each pair.
    pub(crate) known_orders: Vec<KnownOrder>,
    /// False to measure with the pairs' own images only.
    pub(crate) tests_other_images: bool,
}

/// A pair with its known order.
pub(crate) struct KnownPair {
    /// The pair to judge.
    pub(crate) pair: TestPair,
    /// Its known order.
    pub(crate) known: KnownOrder,
}

impl KnownPair {
    /// Creates the pair of a phantom, whose correct verdict is known for every aspect. `i`: number of the
    /// phantom, which is its bootstrap cluster.
    pub(crate) fn of_phantom(phantom: Phantom, i: u64) -> Result<Self> {
        let (w, h) = (phantom.image.width() as usize, phantom.image.height() as usize);
        let decoded = DecodedImage::from_rgb(w, h, phantom.image.into_raw());
        let decoded = decoded.context("the phantom image has no pixels")?;
        let [a, b] = phantom.responses;
        let known = KnownOrder {
            order: Some(a.conclusion.score.cmp(&b.conclusion.score)),
            aspects: Aspect::ALL
                .map(|aspect| Some(compare_scores([&a, &b].map(|r| r.aspect_mean(aspect))))),
            other_aspects: Vec::new(),
            criteria: Criterion::ALL
                .map(|criterion| (criterion, a.score(criterion).cmp(&b.score(criterion))))
                .to_vec(),
            labels: Some([(0, &a), (1, &b)].map(|(side, response)| {
                (format!("{i} {side}"), f64::from(response.conclusion.score))
            })),
            is_closed: None,
            majority: None,
        };
        let pair = TestPair {
            cluster: i.to_string(),
            image: TestImage::Decoded(image_from_pixels("phantom", decoded)),
            question: phantom.question.text,
            responses: [a.text, b.text],
        };
        Ok(Self { pair, known })
    }
}

/// Generates phantoms, whose correct verdict is known for every aspect.
pub(crate) fn phantoms(n: u64, seed: u64) -> Result<TestSet> {
    let (mut pairs, mut known_orders) = (Vec::new(), Vec::new());
    for i in 0..n {
        let KnownPair { pair, known } = KnownPair::of_phantom(generate_phantom(seed, i), i)?;
        pairs.push(pair);
        known_orders.push(known);
    }
    Ok(TestSet { name: "phantoms", pairs, known_orders, tests_other_images: true })
}

/// Orders items round-robin: the first of each group, then the second of each, and so on.
pub(crate) fn round_robin<T>(items: Vec<T>, group: impl Fn(&T) -> String) -> Vec<T> {
    let mut group_sizes: HashMap<String, usize> = HashMap::new();
    let with_round = items.into_iter().map(|item| {
        let size = group_sizes.entry(group(&item)).or_default();
        *size += 1;
        (*size, item)
    });
    let mut with_round: Vec<(usize, T)> = with_round.collect();
    with_round.sort_by_key(|(round, _)| *round);
    with_round.into_iter().map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_ordered_round_robin() {
        let ordered =
            round_robin(vec!["a1", "a2", "a3", "b1", "c1", "c2"], |text| text[..1].to_owned());
        assert_eq!(ordered, ["a1", "b1", "c1", "a2", "c2", "a3"]);
    }
}
