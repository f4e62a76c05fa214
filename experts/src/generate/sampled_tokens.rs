//! How the samples of a text continue: each with the token at its quantile.

/// Tokens that are less probable than this part of the most probable one have no sample.
const MIN_RATIO: f64 = 0.1;

/// A token that some samples of a text continue with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampledToken {
    pub(super) token: u32,
    /// Number of samples.
    pub(super) samples: usize,
    /// Probability of the token among those with samples.
    pub(super) weight: f64,
}

/// Assigns a token to each sample of a text. The tokens are sorted by probability, and sample *j* of *n*
/// gets the token at the quantile *(j + ½) / n*. So equal inputs give equal samples, and a token of
/// probability *p* gets about *p n* samples.
///
/// `logits`: tokens with their logits, without duplicates.
pub(super) fn distribute_samples(
    logits: impl Iterator<Item = (u32, f32)> + Clone,
    samples: usize,
) -> Vec<SampledToken> {
    let Some(best) = logits.clone().map(|(_, logit)| logit).reduce(f32::max) else {
        return Vec::new();
    };
    let with_probability = logits.map(|(token, logit)| (token, f64::from(logit - best).exp()));
    let mut candidates: Vec<(u32, f64)> =
        with_probability.filter(|(_, probability)| *probability >= MIN_RATIO).collect();
    candidates.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let total: f64 = candidates.iter().map(|(_, probability)| probability).sum();
    let mut sampled: Vec<SampledToken> = Vec::new();
    let (mut end, mut given) = (0.0, 0);
    for (token, probability) in candidates {
        end += probability / total;
        let until = samples_below(end, samples);
        if until > given {
            sampled.push(SampledToken { token, samples: until - given, weight: probability });
            given = until;
        }
    }
    let total: f64 = sampled.iter().map(|sampled| sampled.weight).sum();
    for sampled in &mut sampled {
        sampled.weight /= total;
    }
    // The sum of the probabilities may be slightly below one.
    if let Some(last) = sampled.last_mut() {
        last.samples += samples - given;
    }
    sampled
}

/// Returns the number of samples whose quantile is below a cumulative probability.
fn samples_below(probability: f64, samples: usize) -> usize {
    let quantile = |sample: usize| (sample as f64 + 0.5) / samples as f64;
    (0..samples).take_while(|sample| quantile(*sample) < probability).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribute(probabilities: &[f32], samples: usize) -> Vec<(u32, usize)> {
        let logits = probabilities.iter().map(|p| p.ln());
        let sampled = distribute_samples((0..).zip(logits), samples);
        let total: f64 = sampled.iter().map(|sampled| sampled.weight).sum();
        assert!((total - 1.0).abs() < 1e-12, "{sampled:?}");
        sampled.into_iter().map(|sampled| (sampled.token, sampled.samples)).collect()
    }

    #[test]
    fn tokens_have_samples_in_proportion_to_their_probability() {
        assert_eq!(distribute(&[0.3, 0.6, 0.1], 1), [(1, 1)]);
        assert_eq!(distribute(&[0.3, 0.6, 0.1], 2), [(1, 1), (0, 1)]);
        assert_eq!(distribute(&[0.2, 0.8], 2), [(1, 2)]);
        assert_eq!(distribute(&[0.3, 0.6, 0.1], 10), [(1, 6), (0, 3), (2, 1)]);
        // Equally probable tokens are in the order of their ids.
        assert_eq!(distribute(&[0.25; 4], 4), [(0, 1), (1, 1), (2, 1), (3, 1)]);
        // An improbable token has no sample, however many there are.
        assert_eq!(distribute(&[0.96, 0.04], 100), [(0, 100)]);
        assert_eq!(distribute_samples(std::iter::empty(), 3), []);
    }

    #[test]
    fn weights_are_those_of_the_tokens_with_samples() {
        let logits = [0.5_f32, 0.35, 0.15].map(f32::ln);
        let sampled = distribute_samples((0..).zip(logits), 2);
        let weights: Vec<f64> = sampled.iter().map(|sampled| sampled.weight).collect();
        assert!((weights[0] - 0.5 / 0.85).abs() < 1e-6, "{weights:?}");
        assert_eq!(weights.len(), 2);
    }
}
