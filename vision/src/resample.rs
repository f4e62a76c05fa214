//! Resampling filters.

use serde::{Deserialize, Serialize};

/// Resampling filter. Serialised as Pillow's number, as in `preprocessor_config.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Resample {
    /// Triangle filter, number 2.
    Bilinear,
    /// Cubic filter with `a = −0.5`, number 3.
    Bicubic,
}

impl TryFrom<u8> for Resample {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            2 => Ok(Self::Bilinear),
            3 => Ok(Self::Bicubic),
            _ => Err(format!("`resample` is {number}, expected 2 (bilinear) or 3 (bicubic)")),
        }
    }
}

impl From<Resample> for u8 {
    fn from(resample: Resample) -> Self {
        match resample {
            Resample::Bilinear => 2,
            Resample::Bicubic => 3,
        }
    }
}

impl Resample {
    /// Returns half the width of the filter at scale 1.
    pub(crate) fn support(self) -> f64 {
        match self {
            Self::Bilinear => 1.,
            Self::Bicubic => 2.,
        }
    }

    /// Evaluates the filter at distance `x` from its centre.
    pub(crate) fn weight(self, x: f64) -> f64 {
        const A: f64 = -0.5;
        let x = x.abs();
        match self {
            Self::Bilinear if x < 1. => 1. - x,
            Self::Bicubic if x < 1. => ((A + 2.) * x - (A + 3.)) * x * x + 1.,
            Self::Bicubic if x < 2. => (((x - 5.) * x + 8.) * x - 4.) * A,
            _ => 0.,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_serialised_as_pillow_numbers() {
        assert_eq!(serde_json::from_str::<Resample>("3").unwrap(), Resample::Bicubic);
        assert_eq!(serde_json::to_string(&Resample::Bilinear).unwrap(), "2");
        let error = serde_json::from_str::<Resample>("1").unwrap_err().to_string();
        assert!(error.contains("expected 2 (bilinear) or 3 (bicubic)"), "{error}");
    }
}
