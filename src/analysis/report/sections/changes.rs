//! Section on the changes since an earlier run.

use super::super::section::{ReportSection, SectionBlock};
use super::run_changes::{ChangeList, overview_of_changes};
use crate::analysis::report::baseline::{BaselineComparison, PairChange, PairScores};
use crate::analysis::report::page::browser::CaseBrowser;
use crate::analysis::report::run_comparison::ChangeTitle as _;
use crate::support::tables::{Table, TableSection};
use crate::support::terminal::number::format_signed_two_decimals;
use crate::support::text::format_count;

/// Maximum number of pairs in the list; the case browser and the JSON output have all.
const MAX_LISTED: usize = 100;

/// Shows what changed since an earlier run, case by case.
pub(super) fn changes_section(
    comparison: &BaselineComparison,
    browser: &CaseBrowser,
) -> ReportSection {
    let mut section = overview_of_changes(comparison, "pair");
    let mut models = Table::new(["model", "mean before", "mean now", "difference", "pairs"]);
    for model in &comparison.models {
        models.push_row([
            model.model.clone(),
            format!("{:.2}", model.before),
            format!("{:.2}", model.after),
            format_signed_two_decimals(model.after - model.before),
            model.n.to_string(),
        ]);
    }
    let notes = vec!["over the pairs with a verdict in both runs".to_owned()];
    section.tables([TableSection::new("mean scores", models).with_notes(notes)]);
    section.blocks.extend(changed_pairs(comparison, browser));
    section
}

/// Lists the changed pairs, the most important changes first.
fn changed_pairs(comparison: &BaselineComparison, browser: &CaseBrowser) -> Option<SectionBlock> {
    let mut changes: Vec<(usize, &PairChange)> = comparison
        .changes
        .iter()
        .filter_map(|change| Some((browser.find(&change.case, &change.pair)?, change)))
        .collect();
    changes.sort_by_key(|(_, change)| change.kind);
    let row = |(entry, change): &(usize, &PairChange)| {
        let outcome = |scores: Option<PairScores>| describe(browser, *entry, scores);
        let cells = [
            change.case.clone(),
            change.pair.join(" / "),
            change.kind.title().to_owned(),
            outcome(change.before),
            outcome(change.after),
        ];
        (*entry, cells)
    };
    let list = ChangeList {
        title: format!("changed pairs: {}", format_count(changes.len() as u64, "pair")),
        header: ["case", "models", "change", "before", "now"],
        total: changes.len(),
        max_listed: MAX_LISTED,
        rows: changes.iter().take(MAX_LISTED).map(row).collect(),
    };
    list.into_block()
}

fn describe(browser: &CaseBrowser, entry: usize, outcome: Option<PairScores>) -> String {
    match (outcome, browser.entries.get(entry)) {
        (Some(PairScores { order, scores: [a, b] }), Some(entry)) => {
            format!("{} ({a} to {b})", entry.preferred_model(order))
        }
        _ => "unscored".to_owned(),
    }
}
