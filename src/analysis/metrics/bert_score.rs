//! `BERTScore` (Zhang et al. 2020): greedy matching of contextual token embeddings
//! (reference: `utils.py` and `scorer.py` of bert-score 0.3.13).

use std::collections::HashMap;

use anyhow::Result;
use candle::{D, Device, IndexOp, Tensor};

use super::batches::batches;
use super::idf::TokenWeights;
use super::model::{Bert, Encoded};
use super::overlap::PrecisionRecall;

/// Number of pairs whose hidden states are in memory at once.
const WINDOW: usize = 256;
/// Length of an empty text: the two special tokens.
const EMPTY: usize = 2;

/// `BERTScore` of a pair, or the reason why it is undefined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BertScore {
    /// Precision, recall and F1.
    Found(PrecisionRecall),
    /// The reference has no token.
    NoWords,
    /// All tokens of the answer or of the reference have weight 0.
    NoWeight,
}

/// Scores pairs of answer and reference in batches of `batch` texts and reports the number of completed pairs.
/// Tokens have IDF weights from the texts `rare`, or equal weights if `rare` is empty. Also returns the number
/// of truncated texts.
pub(super) fn scores(
    bert: &Bert,
    pairs: &[[&str; 2]],
    rare: &[&str],
    batch: usize,
    progress: &mut dyn FnMut(usize),
) -> Result<(Vec<BertScore>, u64)> {
    let mut known: HashMap<&str, Encoded> = HashMap::new();
    for text in pairs.iter().flatten().chain(rare) {
        if !known.contains_key(text) {
            known.insert(text, bert.tokens.trimmed(text)?);
        }
    }
    let cut = known.values().filter(|encoded| encoded.cut).count() as u64;
    let ids = |text: &str| {
        known
            .get(text)
            .map_or(&[][..], |encoded| encoded.ids.as_slice())
    };
    let weights = if rare.is_empty() {
        TokenWeights::Equal(bert.tokens.marks)
    } else {
        TokenWeights::rare(rare.iter().map(|text| ids(text)))
    };
    let mut found = Vec::with_capacity(pairs.len());
    for window in pairs.chunks(WINDOW) {
        let states = states(bert, window, &ids, batch)?;
        for [answer, reference] in window {
            let sides = [*answer, *reference].map(|text| (ids(text), states.get(text)));
            found.push(likeness(sides, &weights)?);
        }
        progress(found.len());
    }
    Ok((found, cut))
}

/// Computes the hidden states of all texts of some pairs, normalised to length one, on the CPU.
fn states<'a, 'b: 'a>(
    bert: &Bert,
    pairs: &[[&'a str; 2]],
    ids: &impl Fn(&str) -> &'b [u32],
    batch: usize,
) -> Result<HashMap<&'a str, Tensor>> {
    let mut texts: Vec<&str> = pairs.iter().flatten().copied().collect();
    texts.sort_unstable();
    texts.dedup();
    let mut states = HashMap::new();
    // On the CPU, the rounding of Candle's matrix product depends on the number of rows. Compute one text at
    // a time, so that scores do not depend on the batch size.
    let batch = if bert.device.is_cpu() { 1 } else { batch };
    for places in batches(&texts, |text| ids(text).len(), |_| batch) {
        let of = |i: &usize| texts.get(*i).copied().unwrap_or_default();
        let sequences: Vec<&[u32]> = places.iter().map(|i| ids(of(i))).collect();
        let all = bert.states(&sequences)?.to_device(&Device::Cpu)?;
        let all = all.broadcast_div(&all.sqr()?.sum_keepdim(D::Minus1)?.sqrt()?)?;
        for (row, place) in places.iter().enumerate() {
            states.insert(of(place), all.i(row)?);
        }
    }
    Ok(states)
}

/// Matches the tokens of answer and reference.
fn likeness(
    [answer, reference]: [(&[u32], Option<&Tensor>); 2],
    weights: &TokenWeights,
) -> Result<BertScore> {
    if reference.0.len() <= EMPTY {
        return Ok(BertScore::NoWords);
    }
    let (Some(said), Some(wanted)) = (answer.1, reference.1) else {
        return Ok(BertScore::NoWords);
    };
    if answer.0.len() <= EMPTY {
        return Ok(BertScore::Found(PrecisionRecall::default()));
    }
    let alike = said.matmul(&wanted.t()?)?; // (answer's tokens, reference's tokens)
    let mean = |tokens: &[u32], best: Vec<f32>| {
        let weights: Vec<f64> = tokens.iter().map(|token| weights.of(*token)).collect();
        let sum: f64 = weights.iter().sum();
        let all = weights
            .iter()
            .zip(best)
            .map(|(w, best)| w * f64::from(best));
        (sum > 0.0).then(|| all.sum::<f64>() / sum)
    };
    let precision = mean(answer.0, alike.max(1)?.to_vec1()?);
    let recall = mean(reference.0, alike.max(0)?.to_vec1()?);
    Ok(match (precision, recall) {
        (Some(precision), Some(recall)) => {
            BertScore::Found(PrecisionRecall::between(precision, recall))
        }
        _ => BertScore::NoWeight,
    })
}
