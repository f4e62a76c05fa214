//! How much a token weighs: the rarer in the references, the more.

use std::collections::{HashMap, HashSet};

/// The weights of tokens in `BERTScore`.
#[derive(Clone, Debug)]
pub(super) enum TokenWeights {
    /// Every token the same, but for the marks around a text, which weigh nothing.
    Equal([u32; 2]),
    /// By how many references have the token (`get_idf_dict` in bert-score's `utils.py`).
    Rare {
        /// How many references there are.
        texts: f64,
        /// How many of them have the token.
        with: HashMap<u32, f64>,
    },
}

impl TokenWeights {
    /// Weights by rarity among these references.
    pub(super) fn rare<'a>(references: impl Iterator<Item = &'a [u32]>) -> Self {
        let mut texts = 0.0;
        let mut with: HashMap<u32, f64> = HashMap::new();
        for reference in references {
            texts += 1.0;
            for token in reference.iter().collect::<HashSet<_>>() {
                *with.entry(*token).or_default() += 1.0;
            }
        }
        Self::Rare { texts, with }
    }

    /// The weight of a token.
    pub(super) fn of(&self, token: u32) -> f64 {
        match self {
            Self::Equal(marks) => f64::from(u8::from(!marks.contains(&token))),
            Self::Rare { texts, with } => {
                let with = with.get(&token).copied().unwrap_or(0.0);
                ((texts + 1.0) / (with + 1.0)).ln()
            }
        }
    }
}
