//! `BARTScore` (Yuan et al. 2021): log-likelihood of a text given another under BART (reference: `bart_score.py`
//! of neulab/`BARTScore`).

use std::collections::HashMap;

use anyhow::Result;

use super::batches::batches;
use super::model::{Bart, Encoded};

/// Maximum number of logits in memory at once.
const LOGITS: usize = 1 << 26;

/// Computes the mean log-likelihood of each target given its source, for pairs of source and target. Also
/// returns the number of truncated texts.
pub(super) fn likelihoods(
    bart: &Bart,
    pairs: &[[&str; 2]],
    batch: usize,
    progress: &mut dyn FnMut(usize),
) -> Result<(Vec<f64>, u64)> {
    let mut known: HashMap<&str, Encoded> = HashMap::new();
    for text in pairs.iter().flatten() {
        if !known.contains_key(text) {
            known.insert(text, bart.tokens.encode(text)?);
        }
    }
    let cut = known.values().filter(|encoded| encoded.cut).count() as u64;
    let ids = |text: &str| {
        known
            .get(text)
            .map_or(&[][..], |encoded| encoded.ids.as_slice())
    };
    let mut found = vec![0.0; pairs.len()];
    let mut done = 0;
    let size = |pair: &[&str; 2]| pair.map(|text| ids(text).len());
    let most = |[_, target]: &[usize; 2]| batch.min(LOGITS / (target * bart.vocabulary()).max(1));
    for places in batches(pairs, size, most) {
        let side = |side: usize| -> Vec<&[u32]> {
            let texts = places.iter().filter_map(|i| pairs.get(*i)?.get(side));
            texts.map(|text| ids(text)).collect()
        };
        for (place, value) in places.iter().zip(bart.likelihoods(&side(0), &side(1))?) {
            if let Some(slot) = found.get_mut(*place) {
                *slot = value;
            }
        }
        done += places.len();
        progress(done);
    }
    Ok((found, cut))
}
