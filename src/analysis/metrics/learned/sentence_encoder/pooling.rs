//! Poolings: from the states of all tokens of a text to its embedding.

use anyhow::{Result, bail};

/// How one pooling combines the states of the tokens. There is no padding, so all tokens count,
/// including the start and end tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolingMode {
    /// The state of the first token.
    Cls,
    /// The maximum of each component.
    Max,
    /// The mean of each component.
    Mean,
}

impl PoolingMode {
    /// Parses the name of sentence-transformers.
    pub(super) fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "cls" => Self::Cls,
            "max" => Self::Max,
            "mean" => Self::Mean,
            _ => bail!(
                "pooling `{name}`, expected cls, max or mean\n\
                 hint: use a sentence encoder with one of these poolings"
            ),
        })
    }

    /// Returns the pooling in words.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Cls => "first token",
            Self::Max => "maximum over tokens",
            Self::Mean => "mean of tokens",
        }
    }

    /// Combines the states of the tokens of a text.
    ///
    /// # Shapes
    /// t rows of c → c.
    pub(super) fn pool(self, states: &[Vec<f32>]) -> Vec<f64> {
        let width = states.first().map_or(0, Vec::len);
        let column =
            |i: usize| states.iter().filter_map(move |row| row.get(i).map(|x| f64::from(*x)));
        let columns = 0..width;
        match self {
            Self::Cls => columns.map(|i| column(i).next().unwrap_or(0.0)).collect(),
            Self::Max => columns.map(|i| column(i).fold(f64::NEG_INFINITY, f64::max)).collect(),
            Self::Mean => columns.map(|i| column(i).sum::<f64>() / states.len() as f64).collect(),
        }
    }
}

/// Scales a vector to length one. A zero vector stays zero.
pub(super) fn normalize(vector: &mut [f64]) {
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    if length > 0.0 {
        for x in vector {
            *x /= length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poolings_equal_hand_computation() {
        let states = [vec![1.0, -4.0], vec![3.0, -2.0], vec![2.0, 0.0]];
        let pool = |mode: PoolingMode| mode.pool(&states);
        assert_eq!(pool(PoolingMode::Cls), [1.0, -4.0]);
        assert_eq!(pool(PoolingMode::Max), [3.0, 0.0]);
        assert_eq!(pool(PoolingMode::Mean), [2.0, -2.0]);
        let mut vector = [3.0, 4.0];
        normalize(&mut vector);
        let expected = [0.6, 0.8];
        assert!(vector.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{vector:?}");
        normalize(&mut [0.0; 2]);
    }
}
