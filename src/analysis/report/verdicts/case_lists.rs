//! Lists of pairs to review: flips, disagreement with labels, disagreement between judges, and
//! unscored pairs.

use crate::analysis::report::page::browser::{BrowserEntry, CaseBrowser};
use crate::analysis::report::section::SectionBlock;
use crate::analysis::report::verdicts::record_summary::OutcomeSummary;
use crate::judging::judge::recorded_verdict::pair_values;
use crate::support::tables::{Table, TableSection};
use crate::support::text::format_count;

/// Maximum number of pairs in a list; the case browser shows all.
const MAX_LISTED: usize = 20;

/// Lists the first entries for which `describe` returns a text, with this text. `None` if there is
/// no such entry.
pub(crate) fn list_entries(
    browser: &CaseBrowser,
    title: &str,
    column: &str,
    describe: impl Fn(&BrowserEntry) -> Option<String>,
) -> Option<SectionBlock> {
    let mut table = Table::new(["case", "models", column]).with_text_columns(3);
    let (mut entries, mut count) = (Vec::new(), 0);
    let are_alone = browser.entries.iter().all(|entry| entry.models.len() == 1);
    let unit = if are_alone { "response" } else { "pair" };
    for (index, entry) in browser.entries.iter().enumerate() {
        let Some(text) = describe(entry) else {
            continue;
        };
        count += 1;
        if entries.len() < MAX_LISTED {
            let line_name = || format!("line {}", entry.line);
            let case = entry.case.clone().unwrap_or_else(line_name);
            table.push_row([case, entry.models.join(" / "), text]);
            entries.push(index);
        }
    }
    let mut notes = Vec::new();
    if count > MAX_LISTED {
        notes.push(format!("first {MAX_LISTED} of {count}; the case browser shows all"));
    }
    let title = format!("{title}: {}", format_count(count as u64, unit));
    let section = TableSection::new(title, table).with_notes(notes);
    (count > 0).then_some(SectionBlock::Cases(section, entries))
}

/// Returns the lists of one judge.
pub(crate) fn judge_lists(browser: &CaseBrowser, judge: usize) -> Vec<SectionBlock> {
    let flips = list_entries(browser, "flips", "combined verdict", |entry| {
        match entry.verdicts.get(judge)?.as_ref()? {
            OutcomeSummary::Judged { flip: Some(true), order: Some(order), scores, .. } => {
                let [a, b] = pair_values(scores);
                Some(format!("{} ({a} to {b})", entry.preferred_model(*order)))
            }
            _ => None,
        }
    });
    let labels = list_entries(browser, "disagreement with the labels", "judge, labels", |entry| {
        let (order, label) = (entry.order(judge)?, entry.label?);
        (order != label)
            .then(|| format!("{}, {}", entry.preferred_model(order), entry.preferred_model(label)))
    });
    let unscored = unscored_list(browser, judge);
    [flips, labels, unscored].into_iter().flatten().collect()
}

/// Lists what a judge has no verdict on, with the reasons; `None` if it is nothing.
pub(crate) fn unscored_list(browser: &CaseBrowser, judge: usize) -> Option<SectionBlock> {
    list_entries(browser, "unscored", "reason", |entry| {
        match entry.verdicts.get(judge)?.as_ref()? {
            OutcomeSummary::Unscored { reason, message } => {
                Some(format!("{}: {message}", reason.name()))
            }
            OutcomeSummary::Judged { .. } => None,
        }
    })
}

/// Lists the pairs on which two judges disagree; `None` without such a pair.
pub(crate) fn disagreement_list(
    browser: &CaseBrowser,
    [first, second]: [usize; 2],
    names: &str,
) -> Option<SectionBlock> {
    let title = format!("disagreement between {names}");
    list_entries(browser, &title, "first, second", |entry| {
        let (a, b) = (entry.order(first)?, entry.order(second)?);
        (a != b).then(|| format!("{}, {}", entry.preferred_model(a), entry.preferred_model(b)))
    })
}
