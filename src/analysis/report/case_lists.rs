//! Lists of pairs to review: flips, disagreement with labels, disagreement between judges, and unscored pairs.

use super::browser::{BrowserEntry, CaseBrowser};
use super::section::SectionBlock;
use crate::analysis::report::record_summary::OutcomeSummary;
use crate::judging::judge::recorded_verdict::PairOrder;
use crate::support::tables::{Table, TableSection};
use crate::support::text::plural;

/// Maximum number of pairs in a list; the case browser shows all.
const LISTED: usize = 20;

/// Lists the first entries for which `describe` returns a text, with that text; `None` without such an entry.
fn list(
    browser: &CaseBrowser,
    title: &str,
    head: &str,
    describe: impl Fn(&BrowserEntry) -> Option<String>,
) -> Option<SectionBlock> {
    let mut table = Table::new(["case", "models", head]).with_text_columns(3);
    let (mut entries, mut all) = (Vec::new(), 0);
    for (index, entry) in browser.entries.iter().enumerate() {
        let Some(text) = describe(entry) else {
            continue;
        };
        all += 1;
        if entries.len() < LISTED {
            let line = || format!("line {}", entry.line);
            let case = entry.case.clone().unwrap_or_else(line);
            table.row([case, entry.models.join(" / "), text]);
            entries.push(index);
        }
    }
    let mut notes = Vec::new();
    if all > LISTED {
        notes.push(format!(
            "first {LISTED} of {all}; the case browser shows all"
        ));
    }
    let title = format!("{title}: {}", plural(all as u64, "pair"));
    let section = TableSection::new(title, table).with_notes(notes);
    (all > 0).then_some(SectionBlock::Cases(section, entries))
}

/// Describes which of the two models an order prefers.
pub(super) fn preferred(entry: &BrowserEntry, order: PairOrder) -> String {
    let model = |side: usize| entry.models.get(side).cloned().unwrap_or_default();
    match order {
        PairOrder::FirstBetter => format!("{} better", model(0)),
        PairOrder::Tie => "tie".to_owned(),
        PairOrder::SecondBetter => format!("{} better", model(1)),
    }
}

/// Returns the lists of one judge.
pub(super) fn of_judge(browser: &CaseBrowser, judge: usize) -> Vec<SectionBlock> {
    let flips = list(browser, "flips", "combined verdict", |entry| {
        match entry.verdicts.get(judge)?.as_ref()? {
            OutcomeSummary::Judged {
                flip: Some(true),
                order,
                scores: [a, b],
                ..
            } => Some(format!("{} ({a} to {b})", preferred(entry, *order))),
            _ => None,
        }
    });
    let labels = list(
        browser,
        "disagreement with the labels",
        "judge, labels",
        |entry| {
            let (own, label) = (entry.order(judge)?, entry.label?);
            (own != label)
                .then(|| format!("{}, {}", preferred(entry, own), preferred(entry, label)))
        },
    );
    let missing = list(browser, "unscored", "reason", |entry| {
        match entry.verdicts.get(judge)?.as_ref()? {
            OutcomeSummary::Unscored { reason, message } => {
                Some(format!("{}: {message}", reason.name()))
            }
            OutcomeSummary::Judged { .. } => None,
        }
    });
    [flips, labels, missing].into_iter().flatten().collect()
}

/// Lists the pairs on which two judges disagree; `None` without such a pair.
pub(super) fn of_judges(
    browser: &CaseBrowser,
    [first, second]: [usize; 2],
    names: &str,
) -> Option<SectionBlock> {
    let title = format!("disagreement between {names}");
    list(browser, &title, "first, second", |entry| {
        let (a, b) = (entry.order(first)?, entry.order(second)?);
        (a != b).then(|| format!("{}, {}", preferred(entry, a), preferred(entry, b)))
    })
}
