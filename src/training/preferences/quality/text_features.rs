//! Features of an evaluation for logistic regression: text statistics and hashed words.

use std::collections::BTreeSet;

use acem3_experts::prompt::PromptPiece;

use crate::support::digest::fnv1a;
use crate::training::preferences::files::evaluations_file::EvaluationExample;

/// Number of features for hashed words. Words that share a feature may differ in sign, which
/// reduces the bias of collisions.
const WORD_FEATURES: usize = 128;

/// Returns the features of an evaluation: a constant, text statistics and hashed words.
pub(super) fn extract_features(evaluation: &EvaluationExample) -> Vec<f64> {
    let words = split_words(&evaluation.text);
    let in_prompt: BTreeSet<String> = evaluation.prompt.iter().flat_map(prompt_words).collect();
    let distinct: BTreeSet<&String> = words.iter().collect();
    let n = words.len().max(1) as f64;
    let proportion = |matches: &dyn Fn(&String) -> bool| {
        words.iter().filter(|word| matches(word)).count() as f64 / n
    };
    let sentences = evaluation.text.matches(['.', '!', '?', '。']).count();
    let letters: usize = words.iter().map(|word| word.chars().count()).sum();
    let mut features = vec![
        1.0,
        (1.0 + words.len() as f64).ln(),
        (1.0 + sentences as f64).ln(),
        letters as f64 / n / 10.0,
        distinct.len() as f64 / n,
        proportion(&|word| in_prompt.contains(word)),
        proportion(&|word| word.chars().all(char::is_numeric)),
    ];
    let mut hashed = vec![0.0; WORD_FEATURES];
    for word in distinct {
        let HashedWord { feature, sign } = hash_word(word);
        hashed[feature] += sign;
    }
    let norm = hashed.iter().map(|v| v * v).sum::<f64>().sqrt().max(1.0);
    features.extend(hashed.into_iter().map(|v| v / norm));
    features
}

/// Splits a text into lower-case words.
fn split_words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let parts = lower.split(|c: char| !c.is_alphanumeric());
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Returns the words of a trusted prompt piece; no words for other pieces.
fn prompt_words(piece: &PromptPiece) -> Vec<String> {
    match piece {
        PromptPiece::Trusted(text) => split_words(text),
        _ => Vec::new(),
    }
}

/// Feature of a hashed word.
struct HashedWord {
    /// Index of the feature.
    feature: usize,
    /// 1 or −1.
    sign: f64,
}

/// Computes the feature of a word from its hash.
fn hash_word(word: &str) -> HashedWord {
    let hash = fnv1a(word);
    let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
    HashedWord { feature: (hash % WORD_FEATURES as u64) as usize, sign }
}
