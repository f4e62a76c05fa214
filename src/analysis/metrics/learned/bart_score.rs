//! `BARTScore` (Yuan et al. 2021): log-likelihood of a text given another under BART (reference:
//! `bart_score.py` of neulab/`BARTScore`).

use std::collections::HashMap;

use anyhow::Result;

use super::batches::equal_size_batches;
use super::model::{Bart, EncodedText};

/// Maximum number of logits in memory.
const MAX_LOGITS: usize = 1 << 26;

/// Computes the mean log-likelihood of each target given its source, for pairs of source and
/// target. Also returns the number of truncated texts.
pub(crate) fn likelihoods(
    bart: &Bart,
    pairs: &[[&str; 2]],
    batch_size: usize,
    progress: &mut dyn FnMut(usize),
) -> Result<(Vec<f64>, u64)> {
    let mut encoded_texts: HashMap<&str, EncodedText> = HashMap::new();
    for text in pairs.iter().flatten() {
        if !encoded_texts.contains_key(text) {
            encoded_texts.insert(text, bart.tokenizer.encode(text)?);
        }
    }
    let truncated = encoded_texts.values().filter(|encoded| encoded.is_truncated).count() as u64;
    let ids =
        |text: &str| encoded_texts.get(text).map_or(&[][..], |encoded| encoded.ids.as_slice());
    let mut likelihoods = vec![0.0; pairs.len()];
    let mut completed = 0;
    let size = |pair: &[&str; 2]| pair.map(|text| ids(text).len());
    let max_items = |[_, target]: &[usize; 2]| {
        batch_size.min(MAX_LOGITS / (target * bart.vocabulary_size()).max(1))
    };
    for indices in equal_size_batches(pairs, size, max_items) {
        let side = |side: usize| -> Vec<&[u32]> {
            let texts = indices.iter().filter_map(|i| pairs.get(*i)?.get(side));
            texts.map(|text| ids(text)).collect()
        };
        for (index, value) in indices.iter().zip(bart.likelihoods(&side(0), &side(1))?) {
            if let Some(slot) = likelihoods.get_mut(*index) {
                *slot = value;
            }
        }
        completed += indices.len();
        progress(completed);
    }
    Ok((likelihoods, truncated))
}
