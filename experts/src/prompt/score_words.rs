//! Words from which a model chooses at the end of a rating.

/// Words from which a model chooses at the end of a rating. The index of a word is its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreWords {
    /// The numbers from the lowest to the highest score.
    Points([u8; 2]),
    /// `no` and `yes`.
    NoYes,
}

impl ScoreWords {
    /// The scores of ACE-M³, 0 to 5.
    pub const DEFAULT: Self = Self::Points([0, 5]);

    /// Returns the words of the scores from 0 on; `None` for scores below the lowest one.
    pub fn words(self) -> Vec<Option<&'static str>> {
        let words = ["0", "1", "2", "3", "4", "5"];
        match self {
            Self::Points([low, high]) => {
                let scores = (0..=high).zip(words);
                scores.map(|(score, word)| (score >= low).then_some(word)).collect()
            }
            Self::NoYes => vec![Some("no"), Some("yes")],
        }
    }

    /// Returns the word of a score; empty if there is none.
    pub(super) fn word(self, score: u8) -> &'static str {
        self.words().get(usize::from(score)).copied().flatten().unwrap_or_default()
    }
}
