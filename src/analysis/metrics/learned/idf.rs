//! Token weights by inverse document frequency in the references.

use std::collections::{HashMap, HashSet};

/// Token weights in `BERTScore`.
#[derive(Clone, Debug)]
pub(crate) enum TokenWeights {
    /// Uniform weights; special tokens have weight 0.
    Uniform([u32; 2]),
    /// Inverse document frequency in the references (`get_idf_dict` in bert-score's `utils.py`).
    InverseFrequency {
        /// Number of references.
        references: f64,
        /// Number of references that contain each token.
        containing: HashMap<u32, f64>,
    },
}

impl TokenWeights {
    /// Computes IDF weights from references.
    pub(crate) fn from_references<'a>(references: impl Iterator<Item = &'a [u32]>) -> Self {
        let mut count = 0.0;
        let mut containing: HashMap<u32, f64> = HashMap::new();
        for reference in references {
            count += 1.0;
            for token in reference.iter().collect::<HashSet<_>>() {
                *containing.entry(*token).or_default() += 1.0;
            }
        }
        Self::InverseFrequency { references: count, containing }
    }

    /// Returns the weight of a token.
    pub(crate) fn weight(&self, token: u32) -> f64 {
        match self {
            Self::Uniform(special) => f64::from(u8::from(!special.contains(&token))),
            Self::InverseFrequency { references, containing } => {
                let containing = containing.get(&token).copied().unwrap_or(0.0);
                ((references + 1.0) / (containing + 1.0)).ln()
            }
        }
    }
}
