//! Probabilities of the scores, from the alternatives of the tokens of a reply.

use std::ops::Range;

use acem3_experts::Score;
use acem3_experts::prompt::ScoreWords;

use super::read_rating::ReadRating;
use super::reply::ReplyToken;

/// Logarithm of the probability of tokens that a constraint excludes, or below. vLLM returns −9999.
const EXCLUDED: f32 = -1000.0;
/// Sum of the probabilities of all scores after a mask, below which the server left some out.
const MIN_MASKED_MASS: f64 = 0.98;
/// Largest sum of probabilities that rounding explains.
const MAX_MASS: f64 = 1.02;

/// Whether the probabilities of a server are those before or after it excluded tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::judging::served) enum LogprobKind {
    /// Before: those of the model over all tokens.
    Raw,
    /// After: those of the allowed tokens sum to 1.
    Masked,
    /// The server returns none.
    None,
}

impl LogprobKind {
    /// Returns the name in files.
    pub(in crate::judging::served) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Masked => "masked",
            Self::None => "none",
        }
    }
}

/// The tokens of a text, with the place of each.
pub(in crate::judging::served) struct TokenPlaces<'a> {
    tokens: Vec<(Range<usize>, &'a ReplyToken)>,
}

impl<'a> TokenPlaces<'a> {
    /// Places tokens one after the other.
    pub(in crate::judging::served) fn new(tokens: &'a [ReplyToken]) -> Self {
        let mut start = 0;
        let placed = tokens.iter().map(|token| {
            let place = start..start + token.text.len();
            start = place.end;
            (place, token)
        });
        Self { tokens: placed.collect() }
    }

    /// Returns the token with the start of the word of a rating, and its place.
    fn token_of(&self, rating: &ReadRating) -> Option<&(Range<usize>, &'a ReplyToken)> {
        self.tokens.iter().find(|(place, _)| place.contains(&rating.place.start))
    }

    /// Returns the start of the token with the word of a rating, in bytes of the text.
    pub(in crate::judging::served) fn token_start(&self, rating: &ReadRating) -> Option<usize> {
        self.token_of(rating).map(|(place, _)| place.start)
    }

    /// Returns the score of a rating with its probabilities. Without those, the score that was chosen
    /// has probability 1 and the result is partial.
    pub(in crate::judging::served) fn score(
        &self,
        rating: &ReadRating,
        kind: LogprobKind,
    ) -> Score {
        let chosen_only = Score { is_partial: true, ..chosen(rating) };
        if kind == LogprobKind::None {
            return chosen_only;
        }
        let Some((place, token)) = self.token_of(rating) else {
            return chosen_only;
        };
        let before = token.text.get(..rating.place.start - place.start).unwrap_or_default();
        let words: Vec<Option<f64>> = (rating.words.words().into_iter())
            .map(|word| Some(word_probability(word?, before, token)))
            .collect();
        let smallest = token.alternatives.iter().map(|(_, logprob)| *logprob);
        let smallest = smallest.filter(|logprob| *logprob > EXCLUDED).fold(0.0, f32::min);
        let mass: f64 = words.iter().flatten().sum();
        if mass <= 0.0 || mass > MAX_MASS || !mass.is_finite() {
            return chosen_only;
        }
        let is_missing = |word: &Option<f64>| word.is_some_and(|probability| probability <= 0.0);
        // After the mask, a word without a value has no probability if the others sum to 1. Else the word
        // is less probable than all that were returned.
        let is_complete = kind == LogprobKind::Masked && mass >= MIN_MASKED_MASS;
        let is_partial = !is_complete && words.iter().any(is_missing);
        let bound = if is_partial { f64::from(smallest).exp() } else { 0.0 };
        let bounded = words.iter().map(|word| match word {
            None => 0.0,
            Some(probability) if *probability <= 0.0 => bound,
            Some(probability) => *probability,
        });
        let bounded: Vec<f64> = bounded.collect();
        let total: f64 = bounded.iter().sum();
        Score {
            value: rating.score,
            probabilities: bounded.into_iter().map(|p| (p / total) as f32).collect(),
            label_mass: (kind == LogprobKind::Raw).then_some(mass.min(1.0) as f32),
            is_partial,
        }
    }
}

/// Returns the probability of all words of the scores together, each after the text `before`, if a token
/// was not constrained.
pub(in crate::judging::served) fn label_mass(
    token: &ReplyToken,
    before: &[u8],
    words: ScoreWords,
) -> f32 {
    let words = words.words().into_iter().flatten();
    let mass: f64 = words.map(|word| word_probability(word, before, token)).sum();
    mass.min(1.0) as f32
}

/// Returns the score of a rating with probability 1.
fn chosen(rating: &ReadRating) -> Score {
    let mut probabilities = vec![0.0; rating.words.words().len()];
    if let Some(probability) = probabilities.get_mut(usize::from(rating.score)) {
        *probability = 1.0;
    }
    Score { value: rating.score, probabilities, label_mass: None, is_partial: false }
}

/// Returns the probability of all alternatives that write a word after the text `before`. A token may
/// have the start of the word only, or text after it.
fn word_probability(word: &str, before: &[u8], token: &ReplyToken) -> f64 {
    let writes_word = |text: &[u8]| {
        text.strip_prefix(before).is_some_and(|rest| {
            !rest.is_empty()
                && (word.as_bytes().starts_with(rest) || rest.starts_with(word.as_bytes()))
        })
    };
    let matching = token.alternatives.iter().filter(|(text, _)| writes_word(text));
    matching.filter(|(_, p)| *p > EXCLUDED).map(|(_, p)| f64::from(*p).exp()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str, alternatives: &[(&str, f64)]) -> ReplyToken {
        let to_logprob = |(text, p): &(&str, f64)| (text.as_bytes().to_vec(), p.ln() as f32);
        ReplyToken {
            text: text.as_bytes().to_vec(),
            alternatives: alternatives.iter().map(to_logprob).collect(),
        }
    }

    fn rating(words: ScoreWords, score: u8, place: Range<usize>) -> ReadRating {
        ReadRating { analysis: String::new(), is_cut: false, words, score, place }
    }

    #[test]
    fn raw_probabilities_have_a_label_mass() {
        let scores =
            [(" 4", 0.3), (" 5", 0.2), (" 3", 0.05), (" 2", 0.03), (" 1", 0.01), (" 0", 0.01)];
        let all = [&scores[..], &[(" good", 0.4)]].concat();
        let tokens = [token("Score:", &[]), token(" 4", &all)];
        let score = TokenPlaces::new(&tokens)
            .score(&rating(ScoreWords::DEFAULT, 4, 7..8), LogprobKind::Raw);
        assert!((score.label_mass.unwrap() - 0.6).abs() < 1e-5);
        assert!((score.probabilities[4] - 0.5).abs() < 1e-5 && !score.is_partial);
        // Without ` 0` and ` 1`, their bound is the smallest probability returned.
        let tokens = [token("Score:", &[]), token(" 4", &all[..4])];
        let score = TokenPlaces::new(&tokens)
            .score(&rating(ScoreWords::DEFAULT, 4, 7..8), LogprobKind::Raw);
        assert!(score.is_partial && (score.label_mass.unwrap() - 0.58).abs() < 1e-5);
        assert!((score.probabilities[0] - 0.03 / 0.64).abs() < 1e-5, "{score:?}");
    }

    #[test]
    fn masked_probabilities_are_complete() {
        let tokens = [token("Score: ", &[]), token("4", &[("4", 0.75), ("5", 0.25)])];
        let score = TokenPlaces::new(&tokens)
            .score(&rating(ScoreWords::DEFAULT, 4, 7..8), LogprobKind::Masked);
        assert_eq!((score.label_mass, score.is_partial), (None, false));
        assert!((score.expected() - 4.25).abs() < 1e-5);
        // The server left some out: they count as the smallest that it returned.
        let tokens = [token("Score: ", &[]), token("4", &[("4", 0.5), ("5", 0.1)])];
        let score = TokenPlaces::new(&tokens)
            .score(&rating(ScoreWords::DEFAULT, 4, 7..8), LogprobKind::Masked);
        assert!(score.is_partial && (score.probabilities[0] - 0.1).abs() < 1e-5, "{score:?}");
        // No probabilities: their sum is above 1.
        let tokens = [token("Score: ", &[]), token("4", &[("4", 3.0), ("5", 3.0)])];
        let score = TokenPlaces::new(&tokens)
            .score(&rating(ScoreWords::DEFAULT, 4, 7..8), LogprobKind::Masked);
        assert!(score.is_partial);
        assert!((score.probabilities[4] - 1.0).abs() < 1e-5, "{score:?}");
    }

    #[test]
    fn label_mass_is_that_of_the_scores() {
        let token = token(" The", &[(" The", 0.5), (" 4", 0.2), (" 5", 0.1), ("4", 0.1)]);
        let mass = label_mass(&token, b" ", ScoreWords::DEFAULT);
        assert!((mass - 0.3).abs() < 1e-6, "{mass}");
    }

    #[test]
    fn words_of_several_tokens_are_known_by_their_start() {
        let tokens = [token(" y", &[(" y", 0.6), (" no", 0.2)]), token("es", &[("es", 1.0)])];
        let places = TokenPlaces::new(&tokens);
        let score = places.score(&rating(ScoreWords::NoYes, 1, 1..4), LogprobKind::Raw);
        assert!((score.probabilities[1] - 0.75).abs() < 1e-5, "{score:?}");
        let unknown = places.score(&rating(ScoreWords::NoYes, 1, 1..4), LogprobKind::None);
        assert!(unknown.is_partial);
        assert_eq!(unknown.probabilities, [0.0, 1.0]);
    }
}
