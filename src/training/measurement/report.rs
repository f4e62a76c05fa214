//! The figures of a measure, as a table and as JSON.

use serde::Serialize;

use super::interval::Proportion;
use crate::support::tables::{Table, TableSection, TableStyle, render};
use crate::support::text::plural;

/// All figures of one panel.
#[derive(Clone, Debug, Serialize)]
pub struct MeasurementReport {
    /// The panel.
    pub judge: String,
    /// One entry for each set and view.
    pub figures: Vec<SetResults>,
}

/// The figures of one set under one view. A figure that has no meaning for a set is absent.
#[derive(Clone, Debug, Serialize)]
pub struct SetResults {
    /// The set.
    pub set: String,
    /// What the judge saw: `own`, `blank` or `exchanged` images.
    pub image: String,
    /// Pairs.
    pub n: usize,
    /// Pairs without a verdict.
    pub unscored: usize,
    /// Why the first of them has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unscored_first: Option<String>,
    /// The combined final order (>, =, <) is right.
    pub order: Option<Proportion>,
    /// The final order of the first presentation order alone is right.
    pub single_order: Option<Proportion>,
    /// The order of the medical knowledge aspect is right.
    pub knowledge: Option<Proportion>,
    /// The better response has the higher expected final score.
    pub preferred: Option<Proportion>,
    /// The same, closed questions only.
    pub preferred_closed: Option<Proportion>,
    /// The same, open questions only.
    pub preferred_open: Option<Proportion>,
    /// The better response has the higher expected factual accuracy.
    pub preferred_by_accuracy: Option<Proportion>,
    /// The final order of the presentation that shows the better response first is right, and of that which shows it
    /// second; their difference is the position bias.
    pub better_shown: [Option<Proportion>; 2],
    /// The two presentation orders disagree.
    pub flips: Option<Proportion>,
    /// The longer response is preferred where the shorter one is better.
    pub longer: Option<Proportion>,
}

impl MeasurementReport {
    /// Whether not one pair has a verdict.
    pub fn is_empty(&self) -> bool {
        self.figures
            .iter()
            .all(|figures| figures.unscored == figures.n)
    }

    /// Returns one table per set and image condition.
    pub fn text(&self, style: TableStyle) -> String {
        let intro = format!("{}\nin brackets: 95 % CI, clustered by image", self.judge);
        let tables: Vec<TableSection> = self.figures.iter().map(SetResults::table).collect();
        render(&intro, &tables, style)
    }
}

impl SetResults {
    fn table(&self) -> TableSection {
        let rows = [
            ("order accuracy", self.order),
            ("order accuracy, one presentation order", self.single_order),
            ("order accuracy, medical knowledge", self.knowledge),
            ("better response preferred", self.preferred),
            ("  closed questions", self.preferred_closed),
            ("  open questions", self.preferred_open),
            ("  by factual accuracy alone", self.preferred_by_accuracy),
            (
                "order accuracy, better response first",
                self.better_shown[0],
            ),
            (
                "order accuracy, better response second",
                self.better_shown[1],
            ),
            ("flip rate", self.flips),
            ("longer but worse response preferred", self.longer),
        ];
        let mut table = Table::new(["statistic", "value", "n", "images"]);
        for (name, proportion) in rows {
            if let Some(proportion) = proportion {
                table.row(proportion.cells(name));
            }
        }
        let title = format!(
            "{}, {} image ({}, {} unscored)",
            self.set,
            self.image,
            plural(self.n as u64, "pair"),
            self.unscored
        );
        let reason = self.unscored_first.as_deref();
        let first = reason.map(|reason| reason.lines().next().unwrap_or_default());
        let notes = first.map(|reason| format!("first unscored pair: {reason}"));
        TableSection::new(title, table).with_notes(notes.into_iter().collect())
    }
}
