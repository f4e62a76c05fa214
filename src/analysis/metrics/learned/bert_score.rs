//! `BERTScore` (Zhang et al. 2020): greedy matching of contextual token embeddings
//! (reference: `utils.py` and `scorer.py` of bert-score 0.3.13).

use std::collections::HashMap;

use anyhow::Result;
use candle::{D, Device, IndexOp, Tensor};

use super::batches::equal_size_batches;
use super::idf::TokenWeights;
use super::model::{Bert, EncodedText};
use crate::analysis::metrics::lexical::overlap::PrecisionRecall;

/// Number of pairs whose hidden states are in memory together.
const PAIRS_PER_WINDOW: usize = 256;
/// Length of an empty text: the two special tokens.
const EMPTY_LENGTH: usize = 2;

/// `BERTScore` of a pair, or the reason why it is undefined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BertScore {
    /// Precision, recall and F1.
    Found(PrecisionRecall),
    /// The reference has no token.
    NoWords,
    /// All tokens of the answer or of the reference have weight 0.
    NoWeight,
}

/// Scores pairs of answer and reference in batches of `batch_size` texts and reports the number of
/// completed pairs. Tokens have IDF weights from the texts `idf_texts`, or uniform weights if it is
/// empty. Also returns the number of truncated texts.
pub(crate) fn score_pairs(
    bert: &Bert,
    pairs: &[[&str; 2]],
    idf_texts: &[&str],
    batch_size: usize,
    progress: &mut dyn FnMut(usize),
) -> Result<(Vec<BertScore>, u64)> {
    let mut encoded_texts: HashMap<&str, EncodedText> = HashMap::new();
    for text in pairs.iter().flatten().chain(idf_texts) {
        if !encoded_texts.contains_key(text) {
            encoded_texts.insert(text, bert.tokenizer.encode_trimmed(text)?);
        }
    }
    let truncated = encoded_texts.values().filter(|encoded| encoded.is_truncated).count() as u64;
    let ids =
        |text: &str| encoded_texts.get(text).map_or(&[][..], |encoded| encoded.ids.as_slice());
    let weights = if idf_texts.is_empty() {
        TokenWeights::Uniform(bert.tokenizer.boundary_tokens)
    } else {
        TokenWeights::from_references(idf_texts.iter().map(|text| ids(text)))
    };
    let mut scores = Vec::with_capacity(pairs.len());
    for window in pairs.chunks(PAIRS_PER_WINDOW) {
        let states = hidden_states(bert, window, &ids, batch_size)?;
        for [answer, reference] in window {
            let sides = [*answer, *reference].map(|text| (ids(text), states.get(text)));
            scores.push(match_tokens(sides, &weights)?);
        }
        progress(scores.len());
    }
    Ok((scores, truncated))
}

/// Computes the hidden states of all texts of some pairs, normalised to length one, on the CPU.
fn hidden_states<'a, 'b: 'a>(
    bert: &Bert,
    pairs: &[[&'a str; 2]],
    ids: &impl Fn(&str) -> &'b [u32],
    batch_size: usize,
) -> Result<HashMap<&'a str, Tensor>> {
    let mut texts: Vec<&str> = pairs.iter().flatten().copied().collect();
    texts.sort_unstable();
    texts.dedup();
    let mut states = HashMap::new();
    // On the CPU, the rounding of Candle's matrix product depends on the number of rows. Compute
    // one text at a time, so that scores do not depend on the batch size.
    let batch_size = if bert.device.is_cpu() { 1 } else { batch_size };
    for indices in equal_size_batches(&texts, |text| ids(text).len(), |_| batch_size) {
        let text_at = |i: &usize| texts.get(*i).copied().unwrap_or_default();
        let sequences: Vec<&[u32]> = indices.iter().map(|i| ids(text_at(i))).collect();
        let batch_states = bert.hidden_states(&sequences)?.to_device(&Device::Cpu)?;
        let normalized =
            batch_states.broadcast_div(&batch_states.sqr()?.sum_keepdim(D::Minus1)?.sqrt()?)?;
        for (row, index) in indices.iter().enumerate() {
            states.insert(text_at(index), normalized.i(row)?);
        }
    }
    Ok(states)
}

/// Matches the tokens of answer and reference greedily and computes their scores.
fn match_tokens(
    [answer, reference]: [(&[u32], Option<&Tensor>); 2],
    weights: &TokenWeights,
) -> Result<BertScore> {
    if reference.0.len() <= EMPTY_LENGTH {
        return Ok(BertScore::NoWords);
    }
    let (Some(answer_states), Some(reference_states)) = (answer.1, reference.1) else {
        return Ok(BertScore::NoWords);
    };
    if answer.0.len() <= EMPTY_LENGTH {
        return Ok(BertScore::Found(PrecisionRecall::default()));
    }
    let similarity = answer_states.matmul(&reference_states.t()?)?; // (answer's tokens, reference's tokens)
    let mean = |tokens: &[u32], best: Vec<f32>| {
        let weights: Vec<f64> = tokens.iter().map(|token| weights.weight(*token)).collect();
        let sum: f64 = weights.iter().sum();
        let weighted = weights.iter().zip(best).map(|(w, best)| w * f64::from(best));
        (sum > 0.0).then(|| weighted.sum::<f64>() / sum)
    };
    let precision = mean(answer.0, similarity.max(1)?.to_vec1()?);
    let recall = mean(reference.0, similarity.max(0)?.to_vec1()?);
    Ok(match (precision, recall) {
        (Some(precision), Some(recall)) => {
            BertScore::Found(PrecisionRecall::from_precision_recall(precision, recall))
        }
        _ => BertScore::NoWeight,
    })
}
