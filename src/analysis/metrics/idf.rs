//! Token weights by inverse document frequency in the references.

use std::collections::{HashMap, HashSet};

/// Token weights in `BERTScore`.
#[derive(Clone, Debug)]
pub(super) enum TokenWeights {
    /// Uniform weights; special tokens have weight 0.
    Equal([u32; 2]),
    /// Inverse document frequency in the references (`get_idf_dict` in bert-score's `utils.py`).
    Rare {
        /// Number of references.
        texts: f64,
        /// Number of references that contain each token.
        with: HashMap<u32, f64>,
    },
}

impl TokenWeights {
    /// Computes IDF weights from references.
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

    /// Returns the weight of a token.
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
