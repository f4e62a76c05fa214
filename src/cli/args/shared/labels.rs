//! Human labels.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

/// Arguments of a label file.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Labels")]
pub struct LabelArgs {
    /// Read labels from FILE (CSV, JSONL or a JSON export of Label Studio) [default: the labels in the records or cases]
    #[arg(id = "labels", long = "labels", value_name = "FILE", env = "ACEM3_LABELS")]
    pub path: Option<PathBuf>,
    /// Read the ratings of one rater from each of these columns of the label file
    #[arg(long, value_name = "COL,COL", value_delimiter = ',', env = "ACEM3_RATER_COLUMNS")]
    pub rater_columns: Vec<String>,
    /// Convert the scores of the label file from the range MIN to MAX to the range 0 to 5
    #[arg(long, value_name = "MIN,MAX", env = "ACEM3_SCALE")]
    pub scale: Option<LabelScale>,
}

/// Minimum and maximum of a scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelScale(pub [f64; 2]);

impl FromStr for LabelScale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || "expected two numbers in ascending order, for example 1,10".to_owned();
        let (low, high) = text.split_once(',').ok_or_else(error)?;
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| error());
        let (low, high) = (number(low)?, number(high)?);
        if low < high && (high - low).is_finite() { Ok(Self([low, high])) } else { Err(error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_scales_are_rejected() {
        assert_eq!("1, 10".parse(), Ok(LabelScale([1.0, 10.0])));
        for invalid in ["5", "5,1", "a,b", "1,inf", "nan,2"] {
            assert!(invalid.parse::<LabelScale>().is_err(), "{invalid}");
        }
    }
}
