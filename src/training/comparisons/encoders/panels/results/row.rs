//! Results of one encoder.

use acem3_experts::Aspect;
use serde::Serialize;

use super::encoder_input::{EncoderInput, SeedRun};
use super::pair_values::{PairValues, mean_of_pairs};
use crate::checkpoints::hub::HubSource;
use crate::statistics::MeanDifference;
use crate::training::comparisons::encoders::panels::context_fit::ContextFit;
use crate::training::comparisons::encoders::panels::cost::EncoderCost;
use crate::training::comparisons::encoders::panels::held_out::HeldOutPairs;
use crate::training::comparisons::encoders::panels::pair_outcome::{
    PairAccuracy, PairOutcome, ShownImage,
};
use crate::training::comparisons::encoders::probe::NamedProportion;
use crate::training::measurement::Proportion;

/// Results of one encoder.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedRow {
    /// Name of the encoder.
    pub encoder: String,
    /// Hub repository and commit; absent if the encoder was not downloaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub: Option<HubSource>,
    /// Fit of the image tokens into the context of the base.
    pub fit: ContextFit,
    /// Held-out pairs.
    pub pairs: usize,
    /// Pairs with a verdict.
    pub scored: usize,
    /// Reason of the first unscored pair.
    pub unscored_first: Option<String>,
    /// Statistics on the pairs with a verdict: the order accuracy first.
    #[serde(rename = "figures")]
    pub statistics: Vec<NamedProportion>,
    /// Order accuracy of the same panel with blank images.
    pub blank_image: Option<Proportion>,
    /// Order accuracy by question type.
    pub by_question_type: Vec<NamedProportion>,
    /// Order accuracy by modality.
    pub by_modality: Vec<NamedProportion>,
    /// Order accuracy with each seed.
    pub by_seed: Vec<SeedAccuracy>,
    /// Difference of the order accuracy from that of the first encoder; `None` for the first.
    pub difference: Option<MeanDifference>,
    /// Images encoded per second.
    pub images_per_second: Option<f64>,
    /// Seconds to judge a pair.
    pub seconds_per_pair: Option<f64>,
    /// Parameters of the encoder; `None` if the encoder was not trained.
    pub parameters: Option<u64>,
    /// Peak resident memory of the host in bytes; `None` if unknown.
    pub peak_memory: Option<u64>,
    /// Costs; `None` if the encoder was not trained.
    pub cost: Option<EncoderCost>,
    /// Order accuracy of each pair.
    #[serde(skip)]
    pub(super) order: PairValues,
    /// Order accuracy of each pair with a blank image.
    #[serde(skip)]
    pub(super) blank: PairValues,
}

/// Order accuracy with one seed of training.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SeedAccuracy {
    /// The seed.
    pub seed: u64,
    /// Mean and interval; `None` if no pair has a verdict.
    pub order_accuracy: Option<Proportion>,
}

impl JudgedRow {
    /// Summarises the outcomes of an encoder. With several seeds, the value of a pair is the mean
    /// over the seeds that give a verdict.
    pub(super) fn new(input: EncoderInput, held_out: &HeldOutPairs, clusters: &[String]) -> Self {
        let EncoderInput { name, hub, fit, runs } = input;
        let n = held_out.pairs.len();
        let outcomes: Vec<&PairOutcome> = runs.iter().flat_map(|run| &run.outcomes).collect();
        let values = |image: ShownImage, value: &dyn Fn(&PairAccuracy) -> Option<f64>| {
            pair_values(n, outcomes.iter().copied(), image, value)
        };
        let order = values(ShownImage::Own, &|a| Some(a.order));
        let blank = values(ShownImage::Blank, &|a| Some(a.order));
        let named = |name: String, values: &PairValues, includes: &dyn Fn(usize) -> bool| {
            NamedProportion { name, proportion: mean_of_pairs(clusters, values, includes) }
        };
        let mut statistics = vec![
            named("order accuracy".to_owned(), &order, &|_| true),
            named(
                "chosen final scores in order".to_owned(),
                &values(ShownImage::Own, &|a| Some(a.chosen)),
                &|_| true,
            ),
        ];
        for (i, aspect) in Aspect::ALL.iter().enumerate() {
            let values = values(ShownImage::Own, &|a| a.aspects.get(i).copied().flatten());
            statistics.push(named(
                format!("  order accuracy, {}", aspect.name()),
                &values,
                &|_| true,
            ));
        }
        let types = held_out.groups(|facts| facts.question_types.clone()).into_iter();
        let by_question_type = types.map(|name| {
            named(name.clone(), &order, &|i| held_out.facts[i].question_types.contains(&name))
        });
        let modalities = held_out.groups(|facts| vec![facts.modality.clone()]).into_iter();
        let by_modality = modalities
            .map(|name| named(name.clone(), &order, &|i| held_out.facts[i].modality == name));
        let by_seed = runs.iter().map(|SeedRun { seed, outcomes, .. }| {
            let values = pair_values(n, outcomes.iter(), ShownImage::Own, &|a| Some(a.order));
            let order_accuracy = mean_of_pairs(clusters, &values, |_| true);
            SeedAccuracy { seed: *seed, order_accuracy }
        });
        let seconds = outcomes.iter().map(|outcome| outcome.seconds);
        let seconds_per_pair =
            (!outcomes.is_empty()).then(|| seconds.sum::<f64>() / outcomes.len() as f64);
        let cost = mean_cost(runs.iter().map(|run| &run.cost));
        let unscored = outcomes.iter().find_map(|outcome| outcome.unscored.clone());
        let unfit = || {
            let ContextFit { shortest, context, .. } = fit;
            format!("truncated: {shortest} tokens or more, the base's context has {context}")
        };
        Self {
            encoder: name,
            hub,
            fit,
            pairs: n,
            scored: order.iter().flatten().count(),
            unscored_first: if runs.is_empty() { Some(unfit()) } else { unscored },
            statistics,
            blank_image: mean_of_pairs(clusters, &blank, |_| true),
            by_question_type: by_question_type.collect(),
            by_modality: by_modality.collect(),
            by_seed: by_seed.collect(),
            difference: None,
            images_per_second: cost
                .as_ref()
                .map(|cost| 1000.0 / cost.milliseconds_per_image.max(1e-6)),
            seconds_per_pair,
            parameters: cost.as_ref().map(|cost| cost.encoder_parameters),
            peak_memory: cost.as_ref().and_then(|cost| cost.peak_memory),
            cost,
            order,
            blank,
        }
    }

    /// Returns the order accuracy.
    pub(super) fn order_accuracy(&self) -> Option<Proportion> {
        self.statistics.first().and_then(|statistic| statistic.proportion)
    }

    /// Returns the proportion of pairs with a verdict.
    pub fn coverage(&self) -> f64 {
        self.scored as f64 / self.pairs.max(1) as f64
    }
}

/// Returns the mean value of each pair over seeds; `None` if no seed gives a verdict.
fn pair_values<'a>(
    pairs: usize,
    outcomes: impl Iterator<Item = &'a PairOutcome>,
    image: ShownImage,
    value: &dyn Fn(&PairAccuracy) -> Option<f64>,
) -> PairValues {
    let mut sums = vec![(0.0, 0_u32); pairs];
    for outcome in outcomes.filter(|outcome| outcome.image == image) {
        let value = outcome.accuracy.as_ref().and_then(value);
        if let (Some(sum), Some(value)) = (sums.get_mut(outcome.pair), value) {
            *sum = (sum.0 + value, sum.1 + 1);
        }
    }
    sums.into_iter().map(|(sum, n)| (n > 0).then(|| sum / f64::from(n))).collect()
}

/// Returns the costs over all seeds: mean times and the largest memory.
fn mean_cost<'a>(costs: impl Iterator<Item = &'a EncoderCost>) -> Option<EncoderCost> {
    let costs: Vec<&EncoderCost> = costs.collect();
    let mut mean = (*costs.first()?).clone();
    let n = costs.len() as f64;
    mean.milliseconds_per_image =
        costs.iter().map(|cost| cost.milliseconds_per_image).sum::<f64>() / n;
    let seconds: Option<f64> = costs.iter().map(|cost| cost.training_seconds).sum();
    mean.training_seconds = seconds.map(|seconds| seconds / n);
    mean.peak_memory = costs.iter().filter_map(|cost| cost.peak_memory).max();
    Some(mean)
}
