//! Results of a measurement, as a table and as JSON.

use serde::Serialize;

use super::interval::Proportion;
use super::label_results::{LabelResults, ScoreCorrelation};
use super::trivial_rules::TrivialRules;
use crate::support::tables::{Table, TableSection, TableStyle, render_sections};
use crate::support::terminal::number::{format_percent_with_interval, format_with_interval};
use crate::support::text::format_count;

/// Results of one panel.
#[derive(Clone, Debug, Serialize)]
pub struct MeasurementReport {
    /// Name of the panel.
    pub judge: String,
    /// One entry per test set and image condition.
    #[serde(rename = "figures")]
    pub sets: Vec<SetResults>,
    /// True if the user interrupted the measurement.
    #[serde(rename = "partial", skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
}

/// Results of one test set under one image condition. A statistic is `None` if it is undefined for
/// the set.
#[derive(Clone, Debug, Serialize)]
pub struct SetResults {
    /// Name of the test set.
    pub set: String,
    /// Image condition: `own`, `blank` or `exchanged`.
    pub image: String,
    /// Number of pairs.
    pub n: usize,
    /// Number of pairs of the whole set, if the measurement was interrupted before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<usize>,
    /// Number of pairs without a verdict.
    pub unscored: usize,
    /// Reason of the first unscored pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unscored_first: Option<String>,
    /// Order accuracy of the combined verdict: proportion of pairs with the known order (>, = or
    /// <).
    pub order: Option<Proportion>,
    /// Order accuracy of the first presentation order alone.
    pub single_order: Option<Proportion>,
    /// Order accuracy of the medical knowledge aspect.
    pub knowledge: Option<Proportion>,
    /// Proportion of pairs whose better response has the higher expected final score.
    pub preferred: Option<Proportion>,
    /// Same as `preferred`, for closed questions only.
    pub preferred_closed: Option<Proportion>,
    /// Same as `preferred`, for open questions only.
    pub preferred_open: Option<Proportion>,
    /// Same as `preferred`, for pairs whose better response is the longer one.
    pub preferred_longer: Option<Proportion>,
    /// Same as `preferred`, for pairs whose better response is the shorter one.
    pub preferred_shorter: Option<Proportion>,
    /// Proportion of pairs whose better response has the higher expected factual accuracy.
    pub preferred_by_accuracy: Option<Proportion>,
    /// Order accuracy of the presentations with the better response first, and second. Their
    /// difference is the position bias.
    pub better_shown: [Option<Proportion>; 2],
    /// Flip rate: proportion of pairs whose presentation orders disagree.
    pub flips: Option<Proportion>,
    /// Agreement with labels of aspects, criteria and final scores.
    pub labels: LabelResults,
    /// Proportion of pairs whose longer response is preferred, among pairs whose shorter response
    /// is better.
    pub longer: Option<Proportion>,
    /// What rules without a judge prefer; absent with other images than the pairs' own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<TrivialRules>,
}

impl MeasurementReport {
    /// Returns true if no pair has a verdict.
    pub fn is_empty(&self) -> bool {
        self.sets.iter().all(|set| set.unscored == set.n)
    }

    /// Returns the lines above the tables. `judge`: name of the judge.
    pub fn intro(judge: &str, style: TableStyle) -> String {
        let intro = format!("{judge}\nin brackets: 95 % CI, clustered by image");
        render_sections(&intro, &[], style)
    }
}

impl SetResults {
    /// Returns the table of the set.
    pub fn text(&self, style: TableStyle) -> String {
        render_sections("", &[self.table()], style)
    }

    /// Returns the mean of `preferred_longer` and `preferred_shorter`: a preference for long or for short
    /// responses does not change it.
    fn preferred_at_equal_length(&self) -> Option<f64> {
        Some(f64::midpoint(self.preferred_longer?.value, self.preferred_shorter?.value))
    }

    fn table(&self) -> TableSection {
        let mut table = Table::new(["statistic", "value", "n", "images"]);
        push_proportions(
            &mut table,
            [
                ("order accuracy", self.order),
                ("order accuracy, one presentation order", self.single_order),
                ("better response preferred", self.preferred),
                ("  closed questions", self.preferred_closed),
                ("  open questions", self.preferred_open),
                ("  longer response better", self.preferred_longer),
                ("  shorter response better", self.preferred_shorter),
            ],
        );
        if let Some(value) = self.preferred_at_equal_length() {
            let value = format_percent_with_interval(value, None);
            let name = "  mean of the last two (length-controlled)".to_owned();
            table.push_row([name, value, String::new(), String::new()]);
        }
        push_proportions(
            &mut table,
            [
                ("  by factual accuracy alone", self.preferred_by_accuracy),
                ("order accuracy, better response first", self.better_shown[0]),
                ("order accuracy, better response second", self.better_shown[1]),
                ("flip rate", self.flips),
                ("longer but worse response preferred", self.longer),
            ],
        );
        push_proportions(&mut table, self.rules.iter().flat_map(TrivialRules::rows));
        self.push_labels(&mut table);
        // The JSON output has another word for mismatched images.
        let image: &str = if self.image == "exchanged" { "mismatched" } else { &self.image };
        let pairs = match self.planned {
            Some(planned) => format!("{} of {}", self.n, format_count(planned as u64, "pair")),
            None => format_count(self.n as u64, "pair"),
        };
        let title = format!("{}, {image} image ({pairs}, {} unscored)", self.set, self.unscored);
        let reason = self.unscored_first.as_deref();
        let first_line = reason.map(|reason| reason.lines().next().unwrap_or_default());
        let notes = first_line.map(|reason| format!("first unscored pair: {reason}"));
        TableSection::new(title, table).with_notes(notes.into_iter().collect())
    }

    /// Adds the rows of labelled aspects, criteria and final scores.
    fn push_labels(&self, table: &mut Table) {
        let LabelResults { aspects, criteria, criteria_mean, spearman, pearson } = &self.labels;
        for aspect in aspects {
            let name = format!("order accuracy, {}", aspect.name());
            table.push_row(aspect.accuracy.cells(&name));
        }
        for criterion in criteria {
            table.push_row(criterion.accuracy.cells(&format!("  {}", criterion.name())));
        }
        if let Some(mean) = criteria_mean {
            let value = format_percent_with_interval(*mean, None);
            let name = "mean over the criteria".to_owned();
            table.push_row([name, value, String::new(), String::new()]);
        }
        for (name, correlation) in [("Spearman", spearman), ("Pearson", pearson)] {
            if let Some(correlation) = correlation {
                table.push_row(correlation_cells(name, correlation));
            }
        }
    }
}

/// Adds the rows of known proportions.
fn push_proportions(
    table: &mut Table,
    rows: impl IntoIterator<Item = (&'static str, Option<Proportion>)>,
) {
    for (name, proportion) in rows {
        if let Some(proportion) = proportion {
            table.push_row(proportion.cells(name));
        }
    }
}

/// Returns the row of a correlation of final scores with labels.
fn correlation_cells(name: &str, correlation: &ScoreCorrelation) -> [String; 4] {
    let interval = correlation.interval.map(|interval| interval.map(|v| format!("{v:.3}")));
    [
        format!("{name} correlation of final scores, by response"),
        format_with_interval(&format!("{:.3}", correlation.value), interval),
        correlation.n.to_string(),
        correlation.images.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_names_mismatched_images() {
        let results = SetResults {
            set: "phantoms".to_owned(),
            image: "exchanged".to_owned(),
            n: 2,
            planned: None,
            unscored: 0,
            unscored_first: None,
            order: None,
            single_order: None,
            knowledge: None,
            preferred: None,
            preferred_closed: None,
            preferred_open: None,
            preferred_longer: None,
            preferred_shorter: None,
            preferred_by_accuracy: None,
            better_shown: [None, None],
            flips: None,
            longer: None,
            rules: None,
            labels: LabelResults::default(),
        };
        let title = results.table().title;
        assert_eq!(title, "phantoms, mismatched image (2 pairs, 0 unscored)");
        let interrupted = SetResults { planned: Some(500), ..results };
        let title = interrupted.table().title;
        assert_eq!(title, "phantoms, mismatched image (2 of 500 pairs, 0 unscored)");
    }
}
