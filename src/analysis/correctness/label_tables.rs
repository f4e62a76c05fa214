//! Agreement with labels of correctness as text tables and CSV.

use crate::analysis::correctness::accuracy_tables::format_proportion;
use crate::analysis::correctness::label_agreement::{
    CorrectnessAgreement, GraderAgreement, RECALL_THRESHOLD,
};
use crate::analysis::verdicts::caption::interval_caption;
use crate::statistics::Estimate;
use crate::support::tables::{Table, TableSection};
use crate::support::terminal::number::{NOT_APPLICABLE, format_two_decimals, format_with_interval};
use crate::support::text::format_count;

/// An estimate of a grader: its column, and whether it is a proportion.
type GraderColumn = (&'static str, fn(&GraderAgreement) -> &Estimate, bool);

const COLUMNS: [GraderColumn; 7] = [
    ("agreement", |grader| &grader.agreement, true),
    ("closed", |grader| &grader.closed, true),
    ("open", |grader| &grader.open, true),
    ("kappa", |grader| &grader.kappa, false),
    ("sensitivity", |grader| &grader.sensitivity, true),
    ("specificity", |grader| &grader.specificity, true),
    ("auc", |grader| &grader.auc, false),
];

fn format_estimate(estimate: &Estimate, is_proportion: bool) -> String {
    match estimate.value {
        Ok(_) if is_proportion => format_proportion(estimate),
        Ok(value) => {
            let interval = estimate.interval.ok().map(|bounds| bounds.map(format_two_decimals));
            format_with_interval(&format_two_decimals(value), interval)
        }
        Err(_) => NOT_APPLICABLE.to_owned(),
    }
}

impl CorrectnessAgreement {
    /// Returns the paragraph above the table.
    pub fn intro(&self) -> String {
        let mut lines = vec![format!(
            "{} with a verdict of {} and a label; people call {} of them correct",
            format_count(self.n as u64, "response"),
            self.judge,
            format_proportion(&self.labelled_correct)
        )];
        let left_out = [
            (self.ties, "on which the raters are split"),
            (self.unscored, "without a verdict"),
            (self.unmatched, "whose label matches no record"),
        ];
        for (n, why) in left_out.iter().filter(|(n, _)| *n > 0) {
            lines.push(format!("left out: {} {why}", format_count(*n as u64, "response")));
        }
        if let Some(alpha) = self.alpha {
            lines.push(format!(
                "{}, Krippendorff's alpha among them {}",
                format_count(self.raters as u64, "rater"),
                format_two_decimals(alpha)
            ));
        }
        lines.push(interval_caption(self.resamples, self.seed));
        lines.join("\n")
    }

    /// Returns the table of the graders.
    pub fn tables(&self) -> Vec<TableSection> {
        let mut table =
            Table::new(["grader"].into_iter().chain(COLUMNS.iter().map(|(name, ..)| *name)));
        for grader in &self.graders {
            let cells = COLUMNS.iter().map(|(_, estimate, is_proportion)| {
                format_estimate(estimate(grader), *is_proportion)
            });
            table.push_row([grader.grader.to_owned()].into_iter().chain(cells));
        }
        let notes = vec![
            "agreement: proportion of responses with the grade of the raters; closed, open: the same by \
             type of question; brackets: 95 % CI"
                .to_owned(),
            "sensitivity: proportion of correct responses that the grader calls correct; specificity: \
             proportion of wrong responses that it calls wrong"
                .to_owned(),
            "kappa: Cohen's kappa; auc: area under the ROC curve of the judge's probability or of the \
             metric's value"
                .to_owned(),
            format!(
                "exact match: the response equals the reference; token recall: at least {:.0} % of the \
                 words of the reference are in the response",
                100.0 * RECALL_THRESHOLD
            ),
        ];
        vec![TableSection::new("agreement with labels", table).with_notes(notes)]
    }

    /// Returns one row per grader, with one value per cell.
    pub fn csv_table(&self) -> Table {
        let columns = COLUMNS.iter().flat_map(|(name, ..)| {
            ["", "_low", "_high", "_n"].map(|suffix| format!("{name}{suffix}"))
        });
        let mut table =
            Table::new(["grader".to_owned()].into_iter().chain(columns).collect::<Vec<_>>());
        let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
        for grader in &self.graders {
            let mut row = vec![grader.grader.to_owned()];
            for (_, estimate, _) in COLUMNS {
                let estimate = estimate(grader);
                let bounds = estimate.interval.ok();
                row.push(number(estimate.value.ok()));
                row.extend([0, 1].map(|i| number(bounds.map(|bounds| bounds[i]))));
                row.push(estimate.n.to_string());
            }
            table.push_row(row);
        }
        table
    }
}
