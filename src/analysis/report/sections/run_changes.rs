//! Parts of the section on the changes since an earlier run, for pairs and for responses.

use crate::analysis::report::run_comparison::{ChangeTitle, RecordChange, RunComparison};
use crate::analysis::report::section::{ReportSection, SectionBlock};
use crate::support::tables::{Table, TableSection};
use crate::support::text::format_count;

/// Starts the section with the earlier run and the number of changes of each kind. `unit`: what is
/// compared, in the singular.
pub(in crate::analysis::report) fn overview_of_changes<C: RecordChange>(
    comparison: &RunComparison<C>,
    unit: &str,
) -> ReportSection {
    let mut section = ReportSection::new("changes", "Changes");
    let changed = comparison.changes.len();
    let count = |n: usize| format_count(n as u64, unit);
    section.paragraph(format!(
        "Compared with the run {} of {}: {changed} of {} in both runs changed. {} only in this run, {} only in the \
         earlier one.",
        comparison.records,
        comparison.name,
        count(comparison.common),
        count(comparison.only_new),
        count(comparison.only_earlier),
    ));
    let mut counts = Table::new(["change".to_owned(), format!("{unit}s")]);
    for kind in C::Kind::ALL {
        counts.push_row([kind.title().to_owned(), comparison.count(*kind).to_string()]);
    }
    counts.push_row(["none".to_owned(), (comparison.common - changed).to_string()]);
    section.tables([TableSection::new("changes", counts)]);
    section
}

/// A list of changes with links to the case browser.
pub(in crate::analysis::report) struct ChangeList {
    /// The title.
    pub(in crate::analysis::report) title: String,
    /// The names of the columns.
    pub(in crate::analysis::report) header: [&'static str; 5],
    /// Number of all changes.
    pub(in crate::analysis::report) total: usize,
    /// Maximum number of listed changes; the case browser and the JSON output have all.
    pub(in crate::analysis::report) max_listed: usize,
    /// The entry in the case browser and the cells of each listed change.
    pub(in crate::analysis::report) rows: Vec<(usize, [String; 5])>,
}

impl ChangeList {
    /// Returns the list; `None` if it is empty.
    pub(in crate::analysis::report) fn into_block(self) -> Option<SectionBlock> {
        let mut table = Table::new(self.header).with_text_columns(self.header.len());
        let mut entries = Vec::new();
        for (entry, row) in self.rows {
            table.push_row(row);
            entries.push(entry);
        }
        let mut notes = Vec::new();
        if self.total > self.max_listed {
            notes.push(format!(
                "first {} of {}; the filter “Change” of the case browser and the JSON report have all",
                self.max_listed, self.total
            ));
        }
        let section = TableSection::new(self.title, table).with_notes(notes);
        (!entries.is_empty()).then_some(SectionBlock::Cases(section, entries))
    }
}
