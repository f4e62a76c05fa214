//! The figures of a measure, as a table and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::interval::Proportion;
use crate::support::text::{plural, printable};

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

    /// The figures to read, in percent.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{}\nin brackets: intervals of 95 %, clustered by image\n",
            self.judge
        );
        for figures in &self.figures {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "\n{}, {} image ({}, {} unscored)",
                figures.set,
                figures.image,
                plural(figures.n as u64, "pair"),
                figures.unscored
            );
            if let Some(reason) = &figures.unscored_first {
                let reason = reason.lines().next().unwrap_or_default();
                let _ = writeln!(text, "  the first unscored: {}", printable(reason));
            }
            let rows = [
                ("final order right", figures.order),
                ("final order right, one presentation", figures.single_order),
                ("medical knowledge order right", figures.knowledge),
                ("better response preferred", figures.preferred),
                ("  closed questions", figures.preferred_closed),
                ("  open questions", figures.preferred_open),
                ("  by factual accuracy alone", figures.preferred_by_accuracy),
                ("right, better one shown first", figures.better_shown[0]),
                ("right, better one shown second", figures.better_shown[1]),
                ("verdict flips with the order", figures.flips),
                ("longer response preferred wrongly", figures.longer),
            ];
            for (name, share) in rows {
                if let Some(s) = share {
                    let [low, high] = s.interval.map(|v| v * 100.0);
                    let value = s.value * 100.0;
                    let _ = writeln!(
                        text,
                        "  {name:<38} {value:>5.1} %  ({low:.1} to {high:.1}, n = {}, {})",
                        s.n,
                        plural(s.images as u64, "image")
                    );
                }
            }
        }
        text
    }
}
