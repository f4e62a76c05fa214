//! Cases worth a look: verdicts that flip, that the labels do not share, that judges do not share, and those that
//! are missing.

use super::browser::{BrowserEntry, CaseBrowser};
use super::section::SectionBlock;
use crate::analysis::report::record_summary::OutcomeSummary;
use crate::judging::judge::recorded_verdict::PairOrder;
use crate::support::tables::{Table, TableSection};
use crate::support::text::plural;

/// So many cases of a kind are listed; the browser has all.
const LISTED: usize = 20;

/// A list of the first entries that satisfy something, with what is said of each.
fn list(
    browser: &CaseBrowser,
    title: &str,
    head: &str,
    told: impl Fn(&BrowserEntry) -> Option<String>,
) -> Option<SectionBlock> {
    let mut table = Table::new(["case", "models", head]).with_text_columns(3);
    let (mut places, mut all) = (Vec::new(), 0);
    for (place, entry) in browser.entries.iter().enumerate() {
        let Some(said) = told(entry) else { continue };
        all += 1;
        if places.len() < LISTED {
            let line = || format!("line {}", entry.line);
            let case = entry.case.clone().unwrap_or_else(line);
            table.row([case, entry.models.join(" / "), said]);
            places.push(place);
        }
    }
    let mut notes = Vec::new();
    if all > LISTED {
        notes.push(format!(
            "the first {LISTED} of {all}; the case browser has all"
        ));
    }
    let title = format!("{title}: {}", plural(all as u64, "pair"));
    let section = TableSection::new(title, table).with_notes(notes);
    (all > 0).then_some(SectionBlock::Cases(section, places))
}

/// Which of two models an order prefers.
pub(super) fn preferred(entry: &BrowserEntry, order: PairOrder) -> String {
    let model = |side: usize| entry.models.get(side).cloned().unwrap_or_default();
    match order {
        PairOrder::FirstBetter => format!("{} better", model(0)),
        PairOrder::Tie => "a tie".to_owned(),
        PairOrder::SecondBetter => format!("{} better", model(1)),
    }
}

/// The lists of one judge.
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
        "verdicts that the labels do not share",
        "judge, labels",
        |entry| {
            let (own, label) = (entry.order(judge)?, entry.label?);
            (own != label)
                .then(|| format!("{}, {}", preferred(entry, own), preferred(entry, label)))
        },
    );
    let missing = list(browser, "without a verdict", "reason", |entry| match entry
        .verdicts
        .get(judge)?
        .as_ref()?
    {
        OutcomeSummary::Unscored { reason, message } => {
            Some(format!("{}: {message}", reason.name()))
        }
        OutcomeSummary::Judged { .. } => None,
    });
    [flips, labels, missing].into_iter().flatten().collect()
}

/// The pairs that two judges order differently.
pub(super) fn of_judges(
    browser: &CaseBrowser,
    [first, second]: [usize; 2],
    names: &str,
) -> Option<SectionBlock> {
    let title = format!("{names}: ordered differently");
    list(browser, &title, "first, second", |entry| {
        let (a, b) = (entry.order(first)?, entry.order(second)?);
        (a != b).then(|| format!("{}, {}", preferred(entry, a), preferred(entry, b)))
    })
}
