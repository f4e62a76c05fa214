//! Which texts of the experts the conclusion model reads together, with several samples.

use acem3_experts::generate::TextAlternative;

/// Texts of the experts that some samples have in common.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SampleCombination {
    /// Probability among the combinations.
    pub(super) weight: f64,
    /// Number of samples.
    pub(super) samples: usize,
    /// Index of the text of each expert.
    pub(super) texts: Vec<usize>,
}

/// Combines the texts of experts, sample by sample. The samples of the experts are shifted against each
/// other, because the first samples of each have its most probable texts.
pub(super) fn combine_samples(
    experts: &[&[TextAlternative]],
    samples: usize,
) -> Vec<SampleCombination> {
    let mut combinations: Vec<SampleCombination> = Vec::new();
    for sample in 0..samples {
        let mut weight = 1.0;
        let texts = experts.iter().enumerate().map(|(expert, alternatives)| {
            let shifted = (sample + expert * samples / experts.len()) % samples;
            let index = alternatives
                .iter()
                .position(|text| shifted < text.first_sample + text.samples)
                .unwrap_or(0);
            if let Some(text) = alternatives.get(index) {
                weight *= text.weight / text.samples.max(1) as f64;
            }
            index
        });
        let texts: Vec<usize> = texts.collect();
        match combinations.iter_mut().find(|combination| combination.texts == texts) {
            Some(combination) => {
                combination.weight += weight;
                combination.samples += 1;
            }
            None => combinations.push(SampleCombination { weight, samples: 1, texts }),
        }
    }
    let total: f64 = combinations.iter().map(|combination| combination.weight).sum();
    for combination in &mut combinations {
        combination.weight /= total;
    }
    combinations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(parts: &[(f64, usize)]) -> Vec<TextAlternative> {
        let mut first_sample = 0;
        let text = |(weight, samples): &(f64, usize)| {
            let text = TextAlternative {
                weight: *weight,
                first_sample,
                samples: *samples,
                ratings: Vec::new(),
                opening: None,
            };
            first_sample += samples;
            text
        };
        parts.iter().map(text).collect()
    }

    #[test]
    fn combinations_have_the_weights_of_their_texts() {
        let (one, two) = (texts(&[(1.0, 4)]), texts(&[(0.7, 3), (0.3, 1)]));
        let combined = combine_samples(&[&one, &two, &one], 4);
        let found: Vec<_> = combined.iter().map(|c| (c.texts.clone(), c.samples)).collect();
        assert_eq!(found, [(vec![0, 0, 0], 3), (vec![0, 1, 0], 1)]);
        let weights = combined.iter().map(|c| c.weight);
        assert!(weights.zip([0.7, 0.3]).all(|(w, e)| (w - e).abs() < 1e-12), "{combined:?}");
        // The most probable texts of two experts do not always meet.
        let combined = combine_samples(&[&two, &two, &one], 4);
        assert_eq!(combined.iter().map(|c| c.samples).sum::<usize>(), 4);
        assert!(combined.iter().any(|c| c.texts == [0, 1, 0]), "{combined:?}");
        assert!(combined.iter().any(|c| c.texts == [1, 0, 0]), "{combined:?}");
        assert_eq!(combine_samples(&[&one], 1).len(), 1);
    }
}
