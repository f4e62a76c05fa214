//! Agreement as tables to read.

use std::fmt::Write as _;

use super::statistic::Statistic;
use crate::analysis::agreement::agreement_statistic::{AgreementStatistic, SIDES};
use crate::analysis::agreement::by_target::{Agreement, SubgroupAgreement, TargetAgreement};
use crate::judging::run::summary::percent_down;
use crate::statistics::Undefined;
use crate::support::terminal::table::Table;
use crate::support::text::plural;

/// The columns of the tables that have a row for each target or subgroup.
const BRIEF: [(&str, Statistic); 4] = [
    ("accuracy", Statistic::Accuracy),
    ("quadratic kappa", Statistic::KappaQuadratic),
    ("Spearman", Statistic::Spearman),
    ("abs. error", Statistic::MeanAbsoluteError),
];

/// Groups of fewer cases are marked.
const SMALL: usize = 30;

/// A part of what is told: a heading and a table, and what is said below it.
#[derive(Clone, Debug)]
pub struct TableSection {
    /// The heading.
    pub title: String,
    /// The table.
    pub grid: Table,
    /// Lines below it.
    pub notes: Vec<String>,
}

impl Agreement {
    /// What the tables are about, in one paragraph.
    pub fn lead(&self) -> String {
        let raters = match self.raters.len() {
            1 => "one rater".to_owned(),
            n => format!("{n} raters"),
        };
        let from = self.labels.as_deref().unwrap_or("the records' own labels");
        let mut text = format!("{} beside {raters} ({from})\n", self.name);
        let _ = writeln!(
            text,
            "{} in the records, {} unscored; {} used{}",
            plural(self.pairs as u64, "pair"),
            self.unscored,
            plural(self.joined as u64, "label"),
            if self.unmatched == 0 {
                String::new()
            } else {
                format!(", {} of other cases", self.unmatched)
            },
        );
        let _ = write!(
            text,
            "intervals: 95 %, by {} draws of whole images (seed {})",
            self.draws, self.seed
        );
        text
    }

    /// The tables.
    pub fn parts(&self) -> Vec<TableSection> {
        let mut parts: Vec<TableSection> = self.sections.first().map(in_full).into_iter().collect();
        if self.sections.len() > 1 {
            let rows = self
                .sections
                .iter()
                .map(|s| (s.target.key().to_owned(), &s.figures[..]));
            parts.push(brief("by what is scored", &rows.collect::<Vec<_>>()));
        }
        for groups in self.groups.chunk_by(|a, b| a.by == b.by) {
            let of = |group: &SubgroupAgreement| (group.value.clone(), group.figures.clone());
            let owned: Vec<(String, Vec<AgreementStatistic>)> = groups.iter().map(of).collect();
            let rows = owned
                .iter()
                .map(|(value, figures)| (value.clone(), &figures[..]));
            let by = groups.first().map_or("", |group| group.by.as_str());
            let target = self.sections.first().map_or("", |s| s.target.key());
            parts.push(brief(
                &format!("by {by}, on {target}"),
                &rows.collect::<Vec<_>>(),
            ));
        }
        parts
    }
}

/// What keeps raters from a figure or an interval among themselves.
fn beside(figure: &AgreementStatistic) -> Option<(String, String)> {
    let reason = figure.ceiling.as_ref()?.reason()?;
    let title = format!("{} of raters with each other", figure.statistic.title());
    Some((title, reason))
}

/// Every statistic of one target.
fn in_full(section: &TargetAgreement) -> TableSection {
    let several = section
        .figures
        .iter()
        .any(|figure| figure.ceiling.is_some());
    let mut head = vec!["statistic", "judge", "95 % interval", "n", "coverage"];
    if several {
        head.extend(["raters", "95 % interval", "n"]);
    }
    let mut grid = Table::new(head);
    let (mut notes, mut exact) = (Vec::new(), Vec::new());
    for figure in &section.figures {
        let (statistic, estimate) = (figure.statistic, &figure.estimate);
        grid.row(full_row(figure, several));
        notes.extend(beside(figure).filter(|_| several));
        if let Some(reason) = figure.reason() {
            let what = if estimate.value.is_err() {
                ""
            } else {
                " interval"
            };
            notes.push((format!("{}{what}", statistic.title()), reason));
        }
        if let Some(ends) = figure.exact {
            exact.push(format!(
                "{} {}",
                statistic.name(),
                statistic.shown_interval(ends)
            ));
        }
    }
    let mut told = covered(&section.figures);
    if section.figure(Statistic::MeanAbsoluteError).is_some() {
        told.push(
            "more is better, but of the mean absolute error, where less is better, and of the mean of judge less \
             label, which is best at 0"
                .to_owned(),
        );
    }
    told.extend(said(notes));
    if section
        .figures
        .iter()
        .any(AgreementStatistic::is_beyond_draws)
    {
        told.push(
            "a share of 0 or 100 %, or of fewer than ten images: Wilson's interval, each image taken as one case"
                .to_owned(),
        );
    }
    if !exact.is_empty() {
        told.push(format!(
            "exact F intervals, cases taken as independent: {}",
            exact.join("; ")
        ));
    }
    if several {
        told.push(
            "raters: each beside the consensus of the others, on average; Fleiss, alpha and ICC of \
             all of them, and of the n cases with as many ratings as most (Fleiss, ICC(1,1), ICC(1,k)) or with all \
             (the other ICC)"
                .to_owned(),
        );
    }
    TableSection {
        title: format!("on {}", section.target.key()),
        grid,
        notes: told,
    }
}

/// The row of a statistic, with the raters' beside it where several rated the same.
fn full_row(figure: &AgreementStatistic, several: bool) -> Vec<String> {
    let statistic = figure.statistic;
    let estimate = &figure.estimate;
    let mut row = vec![statistic.name().to_owned()];
    row.push(
        estimate
            .value
            .map_or("undefined".to_owned(), |v| statistic.shown(v)),
    );
    row.push(
        estimate
            .interval
            .map_or("-".to_owned(), |i| statistic.shown_interval(i)),
    );
    row.push(estimate.n.to_string());
    row.push(format!("{:.0} %", percent_down(figure.coverage.share())));
    if several {
        let ceiling = figure.ceiling.as_ref().map(|c| &c.estimate);
        let value = ceiling.map(|c| c.value.map_or("undefined".into(), |v| statistic.shown(v)));
        let interval = ceiling.and_then(|c| c.interval.ok());
        row.push(value.unwrap_or_else(|| "-".to_owned()));
        row.push(interval.map_or("-".to_owned(), |i| statistic.shown_interval(i)));
        row.push(ceiling.map_or("-".to_owned(), |c| c.n.to_string()));
    }
    row
}

/// How many labelled cases have a verdict, and the shares that those without one leave possible.
fn covered(figures: &[AgreementStatistic]) -> Vec<String> {
    let mut cases: Vec<String> = Vec::new();
    for figure in figures {
        let of = figure.coverage.told(figure.statistic.cases());
        if !cases.contains(&of) {
            cases.push(of);
        }
    }
    let mut told = vec![format!("coverage: {} have a verdict", cases.join(", "))];
    let bound = |figure: &AgreementStatistic| {
        let statistic = figure.statistic;
        let ends = statistic.shown_interval(figure.bounds()?);
        Some(format!("{} {ends} %", statistic.title()))
    };
    let bounds: Vec<String> = figures.iter().filter_map(bound).collect();
    if !bounds.is_empty() {
        told.push(format!(
            "if those without a verdict were all wrong, to if they were all right: {}",
            bounds.join("; ")
        ));
    }
    told
}

/// Reasons, each once, with what they are reasons for.
pub(super) fn said(notes: Vec<(String, String)>) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for (what, reason) in notes {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, of)) => of.push(what),
            None => reasons.push((reason, vec![what])),
        }
    }
    let line =
        |(reason, of): (String, Vec<String>)| format!("undefined: {} ({reason})", of.join(", "));
    reasons.into_iter().map(line).collect()
}

/// The main statistics, a row for each target or subgroup.
fn brief(title: &str, rows: &[(String, &[AgreementStatistic])]) -> TableSection {
    let find = |figures: &[AgreementStatistic], statistic| {
        figures
            .iter()
            .find(|figure| figure.statistic == statistic)
            .cloned()
    };
    let shown: Vec<_> = BRIEF
        .iter()
        .filter(|(_, statistic)| rows.iter().any(|(_, f)| find(f, *statistic).is_some()))
        .collect();
    let mut head = vec![String::new()];
    head.extend(shown.iter().map(|(name, _)| (*name).to_owned()));
    head.extend(["pairs", "responses"].map(str::to_owned));
    let mut grid = Table::new(head);
    let mut reasons = Footnotes::default();
    for (name, figures) in rows {
        let both = [Statistic::Accuracy, Statistic::Pearson];
        let both = both.map(|statistic| find(figures, statistic).map(|figure| figure.coverage));
        let small = both.iter().flatten().all(|of| of.judged < SMALL);
        let mut row = vec![format!("{name}{}", if small { " *" } else { "" })];
        for (_, statistic) in &shown {
            let figure = find(figures, *statistic);
            row.push(figure.map_or("-".to_owned(), |figure| cell(&figure, &mut reasons)));
        }
        row.extend(both.map(|of| {
            of.map_or("-".to_owned(), |of| {
                format!("{} of {}", of.judged, of.labelled)
            })
        }));
        grid.row(row);
    }
    let mut told = vec!["pairs, responses: those with a verdict of those labelled".to_owned()];
    told.extend(reasons.told());
    if grid
        .rows
        .iter()
        .any(|row| row.first().is_some_and(|name| name.ends_with(" *")))
    {
        told.push(format!("*  fewer than {SMALL} cases: little can be said"));
    }
    TableSection {
        title: title.to_owned(),
        grid,
        notes: told,
    }
}

/// A value with its interval, or a letter that stands for the reason why there is none.
fn cell(figure: &AgreementStatistic, reasons: &mut Footnotes) -> String {
    let (statistic, estimate) = (figure.statistic, &figure.estimate);
    let [low, high] = match (estimate.value, estimate.interval) {
        (Ok(_), Ok(ends)) => ends,
        (Ok(value), Err(why)) => {
            return format!("{} {}", statistic.shown(value), reasons.letter(why));
        }
        (Err(why), _) => return format!("undefined {}", reasons.letter(why)),
    };
    let value = estimate.value.unwrap_or_default();
    if statistic.is_share() {
        let [value, low, high] = [value, low, high].map(|v| 100.0 * v);
        format!("{value:.1} % [{low:.0}, {high:.0}]")
    } else {
        let [value, low, high] = [value, low, high].map(|v| statistic.shown(v));
        format!("{value} [{low}, {high}]")
    }
}

/// Reasons by letter, as they come up in a table.
#[derive(Default)]
struct Footnotes(Vec<String>);

impl Footnotes {
    fn letter(&mut self, reason: Undefined) -> char {
        // How many draws had a value differs from cell to cell, and says the same.
        let text = match reason {
            Undefined::Unstable { .. } => "too few bootstrap draws have a value".to_owned(),
            other => other.named(SIDES),
        };
        let known = self.0.iter().position(|known| *known == text);
        let place = known.unwrap_or_else(|| {
            self.0.push(text);
            self.0.len() - 1
        });
        ('a'..='z').nth(place).unwrap_or('?')
    }

    fn told(self) -> Vec<String> {
        ('a'..='z')
            .zip(self.0)
            .map(|(letter, reason)| format!("{letter}  {reason}"))
            .collect()
    }
}

/// A p-value as tables show it.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 {
        "below 0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}
