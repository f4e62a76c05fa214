//! Content of a label file, and how to read it.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::anyhow;

use super::entry::{LabelEntry, LabelValue};
use crate::support::text::format_count;

/// Options for reading a label file.
#[derive(Clone, Debug, Default)]
pub struct LabelOptions {
    /// Columns that contain the ratings of one rater each.
    pub rater_columns: Vec<String>,
    /// Lowest and highest score of the labels' scale, which is mapped to 0–5.
    pub scale: Option<[f64; 2]>,
}

/// Content of a label file.
#[derive(Clone, Debug, Default)]
pub struct LabelFile {
    /// Scores and preferences.
    pub entries: Vec<LabelEntry>,
    /// Columns with unknown names, which are ignored.
    pub unused_columns: BTreeSet<String>,
    /// Controls of Label Studio that do not rate a response, such as bounding boxes, with their types.
    pub unused_controls: BTreeSet<String>,
}

impl LabelFile {
    /// Returns a warning if any score is outside 0–5.
    pub fn out_of_range_note(&self) -> Option<String> {
        let scores = self.entries.iter().filter_map(|entry| match entry.value {
            LabelValue::Score { value, .. } => Some((entry.line, value)),
            LabelValue::Preference { .. } => None,
        });
        let scores: Vec<(u64, f64)> = scores.collect();
        let out_of_range = scores.iter().filter(|(_, score)| !(0.0..=5.0).contains(score));
        let (line, first) = out_of_range.clone().next()?;
        let range =
            scores.iter().fold([f64::INFINITY, -f64::INFINITY], |[low, high], (_, score)| {
                [low.min(*score), high.max(*score)]
            });
        let n = out_of_range.count();
        Some(format!(
            "{n} of {} {} outside the judge's range 0 to 5, first {first} in line {line}; the scores range from {} to \
             {}\nhint: correct mistyped scores; if the labels use another scale, pass --scale MIN,MAX to make errors and \
             kappas comparable (correlations and orders do not depend on the scale)",
            format_count(scores.len() as u64, "score"),
            if n == 1 { "is" } else { "are" },
            range[0],
            range[1]
        ))
    }
}

/// Adds the file and the line to a message.
pub(super) fn line_error(path: &Path, line: u64, error: &str) -> anyhow::Error {
    anyhow!("{} line {line}: {error}", path.display())
}
