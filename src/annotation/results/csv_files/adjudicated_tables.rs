//! The decisions of the administrator, in the formats of the raters' results.

use anyhow::Result;

use crate::annotation::journal::AdjudicationEntry;
use crate::annotation::study::ADJUDICATOR;
use crate::data::labels::Vote;
use crate::support::tables::Table;

/// Writes the decided scores.
pub(in crate::annotation::results) fn write_scores(
    decided: &[AdjudicationEntry],
) -> Result<String> {
    let mut table = Table::new(["case", "model", "rater", "criterion", "score"]);
    for entry in last_decisions(decided) {
        if let [model] = entry.models.as_slice() {
            let score = entry.value.to_string();
            table.push_row([entry.case.as_str(), model, ADJUDICATOR, &entry.target, &score]);
        }
    }
    table.to_csv()
}

/// Writes the decided preferences.
pub(in crate::annotation::results) fn write_preferences(
    decided: &[AdjudicationEntry],
) -> Result<String> {
    let mut table = Table::new(["case", "model_a", "model_b", "rater", "preference"]);
    for entry in last_decisions(decided) {
        if let [first, second] = entry.models.as_slice() {
            let preference = Vote::text_of(entry.value.cmp(&0), [first, second]);
            table.push_row([entry.case.as_str(), first, second, ADJUDICATOR, preference]);
        }
    }
    table.to_csv()
}

/// Returns the last decision about each item, in the order of the journal.
fn last_decisions(decided: &[AdjudicationEntry]) -> impl Iterator<Item = &AdjudicationEntry> {
    let is_last = |(i, entry): &(usize, &AdjudicationEntry)| {
        !decided[i + 1..].iter().any(|later| {
            (&later.target, &later.case, &later.models)
                == (&entry.target, &entry.case, &entry.models)
        })
    };
    decided.iter().enumerate().filter(is_last).map(|(_, entry)| entry)
}
