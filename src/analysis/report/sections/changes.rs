//! Section on the changes since an earlier run.

use super::super::section::{ReportSection, SectionBlock};
use crate::analysis::report::baseline::{BaselineComparison, ChangeKind, PairChange, PairScores};
use crate::analysis::report::page::browser::CaseBrowser;
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
    let mut section = ReportSection::new("changes", "Changes");
    let changed = comparison.changes.len();
    section.paragraph(format!(
        "Compared with the run {} of {}: {changed} of {} in both runs changed. {} only in this run, {} only in the \
         earlier one.",
        comparison.records,
        comparison.name,
        format_count(comparison.common as u64, "pair"),
        format_count(comparison.only_new as u64, "pair"),
        format_count(comparison.only_earlier as u64, "pair"),
    ));
    let mut counts = Table::new(["change", "pairs"]);
    for kind in ChangeKind::ALL {
        counts.push_row([kind.title().to_owned(), comparison.count(kind).to_string()]);
    }
    counts.push_row(["none".to_owned(), (comparison.common - changed).to_string()]);
    section.tables([TableSection::new("changes", counts)]);
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
    let header = ["case", "models", "change", "before", "now"];
    let mut table = Table::new(header).with_text_columns(header.len());
    let mut entries = Vec::new();
    for (entry, change) in changes.iter().take(MAX_LISTED) {
        let outcome = |scores: Option<PairScores>| describe(browser, *entry, scores);
        table.push_row([
            change.case.clone(),
            change.pair.join(" / "),
            change.kind.title().to_owned(),
            outcome(change.before),
            outcome(change.after),
        ]);
        entries.push(*entry);
    }
    let mut notes = Vec::new();
    if changes.len() > MAX_LISTED {
        notes.push(format!(
            "first {MAX_LISTED} of {}; the filter “Change” of the case browser and the JSON report have all",
            changes.len()
        ));
    }
    let title = format!("changed pairs: {}", format_count(changes.len() as u64, "pair"));
    let section = TableSection::new(title, table).with_notes(notes);
    (!entries.is_empty()).then_some(SectionBlock::Cases(section, entries))
}

fn describe(browser: &CaseBrowser, entry: usize, outcome: Option<PairScores>) -> String {
    match (outcome, browser.entries.get(entry)) {
        (Some(PairScores { order, scores: [a, b] }), Some(entry)) => {
            format!("{} ({a} to {b})", entry.preferred_model(order))
        }
        _ => "unscored".to_owned(),
    }
}
