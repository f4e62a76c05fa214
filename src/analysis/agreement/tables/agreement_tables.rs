//! Agreement as text tables.

use std::fmt::Write as _;

use crate::analysis::agreement::by_target::{Agreement, TargetAgreement};
use crate::analysis::agreement::statistics::agreement_statistic::{AgreementStatistic, SIDE_NAMES};
use crate::analysis::agreement::statistics::statistic::Statistic;
use crate::analysis::verdicts::caption::interval_caption;
use crate::statistics::{Estimate, Undefined};
use crate::support::tables::{Reasons, Table, TableSection};
use crate::support::terminal::number::{
    NOT_APPLICABLE, UNDEFINED, format_floor_percent, format_with_interval,
};
use crate::support::text::format_count;

/// The columns of the tables with one row per target or subgroup.
const SUMMARY_STATISTICS: [(&str, Statistic); 4] = [
    ("accuracy", Statistic::Accuracy),
    ("quadratic kappa", Statistic::KappaQuadratic),
    ("Spearman", Statistic::Spearman),
    ("abs. error", Statistic::MeanAbsoluteError),
];

/// Subgroups with fewer cases than this are marked.
const SMALL_GROUP: usize = 30;

/// A row of a summary table: a target or subgroup and its statistics.
type SummaryRow<'a> = (&'a str, &'a [AgreementStatistic]);

impl Agreement {
    /// Returns the paragraph above the tables: what was compared, and how intervals were computed.
    pub fn intro(&self) -> String {
        let source = self.labels.as_deref().unwrap_or("labels of the records");
        let raters = format_count(self.raters.len() as u64, "rater");
        let mut text = format!("{} vs {raters} ({source})\n", self.name);
        let _ = write!(
            text,
            "{} in the records, {} unscored; {} used",
            format_count(self.pairs as u64, "pair"),
            self.unscored,
            format_count(self.joined as u64, "label"),
        );
        if self.unmatched > 0 {
            let _ = write!(text, ", {} of other cases ignored", self.unmatched);
        }
        text + "\n" + &interval_caption(self.draws, self.seed)
    }

    /// Returns the tables: all statistics of the first target, then a summary of all targets and of
    /// subgroups.
    pub fn tables(&self) -> Vec<TableSection> {
        let mut tables: Vec<TableSection> =
            self.sections.first().map(full_table).into_iter().collect();
        if self.sections.len() > 1 {
            let rows: Vec<SummaryRow> = self
                .sections
                .iter()
                .map(|section| (section.target.key(), &section.statistics[..]))
                .collect();
            tables.push(summary_table("by score target", &rows));
        }
        for groups in self.groups.chunk_by(|a, b| a.by == b.by) {
            let rows: Vec<SummaryRow> =
                groups.iter().map(|group| (group.value.as_str(), &group.statistics[..])).collect();
            let by = groups.first().map_or("", |group| group.by.as_str());
            let target = self.sections.first().map_or("", |s| s.target.key());
            let title = format!("by {by} (score target: {target})");
            tables.push(summary_table(&title, &rows));
        }
        tables
    }
}

/// Builds the table of all statistics of one target.
fn full_table(section: &TargetAgreement) -> TableSection {
    let statistics = &section.statistics;
    let has_ceiling = statistics.iter().any(|s| s.ceiling.is_some());
    let mut header = vec!["statistic", "judge [95 % CI]", "n", "coverage"];
    if has_ceiling {
        header.extend(["raters [95 % CI]", "n"]);
    }
    let mut table = Table::new(header);
    for statistic in statistics {
        table.push_row(full_row(statistic, has_ceiling));
    }
    let mut notes = coverage_notes(statistics);
    if section.statistic(Statistic::AccuracyWithoutTies).is_some() {
        notes.push(
            "pairwise accuracy: a tie has to match a tie; without ties: only pairs that neither \
             judge nor label ties; better response preferred: only pairs that the label does not \
             tie, where a tie of the judge counts ½"
                .to_owned(),
        );
    }
    if section.statistic(Statistic::MeanAbsoluteError).is_some() {
        notes.push(
            "higher is better, except for the mean absolute error (lower is better) and the mean signed error \
             (0 is best)"
                .to_owned(),
        );
    }
    notes.extend(undefined_notes(statistics, has_ceiling));
    if statistics.iter().any(AgreementStatistic::uses_wilson_interval) {
        notes.push(
            "proportions of 0 or 100 %, or from fewer than ten images: Wilson interval, which treats images as \
             independent cases"
                .to_owned(),
        );
    }
    notes.extend(exact_interval_note(statistics));
    if has_ceiling {
        notes.push(
            "raters: human ceiling. Each rater is compared with the consensus of the others; the table shows the \
             mean. Fleiss' kappa, alpha and ICC are computed over all raters. For Fleiss' kappa, ICC(1,1) and \
             ICC(1,k), n counts the cases with the most common number of ratings; for the other ICCs, the cases \
             that all raters rated"
                .to_owned(),
        );
    }
    let title = format!("score target: {}", section.target.key());
    TableSection::new(title, table).with_notes(notes)
}

/// Builds the row of a statistic, with the raters' estimate if several raters rated the same cases.
fn full_row(statistic: &AgreementStatistic, has_ceiling: bool) -> Vec<String> {
    let kind = statistic.statistic;
    let mut row = vec![
        kind.name().to_owned(),
        estimate_cell(kind, &statistic.estimate),
        statistic.estimate.n.to_string(),
        format_floor_percent(statistic.coverage.proportion()),
    ];
    if has_ceiling {
        let ceiling = statistic.ceiling.as_ref().map(|c| &c.estimate);
        let missing = || NOT_APPLICABLE.to_owned();
        row.push(ceiling.map_or_else(missing, |c| estimate_cell(kind, c)));
        row.push(ceiling.map_or_else(missing, |c| c.n.to_string()));
    }
    row
}

/// Formats a value with its interval.
fn estimate_cell(statistic: Statistic, estimate: &Estimate) -> String {
    let Ok(value) = estimate.value else {
        return UNDEFINED.to_owned();
    };
    let interval = estimate.interval.ok();
    format_with_interval(
        &statistic.format_value(value),
        interval.map(|bounds| statistic.format_bounds(bounds)),
    )
}

/// Returns the reasons for undefined statistics and intervals, including those of the raters.
fn undefined_notes(statistics: &[AgreementStatistic], has_ceiling: bool) -> Vec<String> {
    let (mut no_value, mut no_interval) = (Reasons::default(), Reasons::default());
    let mut add = |subject: String, estimate: &Estimate, reason: Option<String>| {
        if let Some(reason) = reason {
            let reasons = if estimate.value.is_ok() { &mut no_interval } else { &mut no_value };
            reasons.add(subject, reason);
        }
    };
    for statistic in statistics {
        let title = statistic.statistic.title();
        if let Some(ceiling) = statistic.ceiling.as_ref().filter(|_| has_ceiling) {
            let subject = format!("{title} of the raters");
            add(subject, &ceiling.estimate, ceiling.undefined_reason());
        }
        add(title.to_owned(), &statistic.estimate, statistic.undefined_reason());
    }
    let mut notes = no_value.undefined_notes();
    notes.extend(no_interval.notes("no interval"));
    notes
}

fn exact_interval_note(statistics: &[AgreementStatistic]) -> Option<String> {
    let exact = statistics.iter().filter_map(|s| {
        let [low, high] = s.statistic.format_bounds(s.exact_interval?);
        Some(format!("{} [{low}, {high}]", s.statistic.name()))
    });
    let exact: Vec<String> = exact.collect();
    let text = || format!("exact F intervals, cases treated as independent: {}", exact.join("; "));
    (!exact.is_empty()).then(text)
}

/// Describes how many labelled cases have a verdict, and the bounds of proportions with unscored
/// cases.
fn coverage_notes(statistics: &[AgreementStatistic]) -> Vec<String> {
    let mut coverage: Vec<String> = Vec::new();
    for statistic in statistics {
        let text = statistic.coverage.describe(statistic.statistic.unit_noun());
        if !coverage.contains(&text) {
            coverage.push(text);
        }
    }
    let mut notes = vec![format!("coverage: {} have a verdict", coverage.join(", "))];
    let bounds = statistics.iter().filter_map(|s| {
        let interval = s.statistic.format_interval(s.bounds()?);
        Some(format!("{} {interval} %", s.statistic.title()))
    });
    let bounds: Vec<String> = bounds.collect();
    if !bounds.is_empty() {
        notes.push(format!(
            "bounds if all unscored cases were wrong or right: {}",
            bounds.join("; ")
        ));
    }
    notes
}

/// Builds the table of the main statistics, one row per target or subgroup.
fn summary_table(title: &str, rows: &[SummaryRow]) -> TableSection {
    let find = |statistics: &[AgreementStatistic], name| {
        let statistic = statistics.iter().find(|s| s.statistic == name);
        statistic.cloned()
    };
    let columns: Vec<_> = SUMMARY_STATISTICS
        .iter()
        .filter(|(_, name)| rows.iter().any(|(_, s)| find(s, *name).is_some()))
        .collect();
    let mut header = vec![""];
    header.extend(columns.iter().map(|(title, _)| *title));
    header.extend(["pairs", "responses"]);
    let mut table = Table::new(header);
    let mut footnotes = Footnotes::default();
    let mut has_small = false;
    for (name, statistics) in rows {
        let coverage = [Statistic::Accuracy, Statistic::Pearson]
            .map(|name| find(statistics, name).map(|statistic| statistic.coverage));
        let is_small = coverage.iter().flatten().all(|c| c.judged < SMALL_GROUP);
        has_small |= is_small;
        let mut row = vec![format!("{name}{}", if is_small { " *" } else { "" })];
        let missing = || NOT_APPLICABLE.to_owned();
        row.extend(columns.iter().map(|(_, name)| {
            let statistic = find(statistics, *name);
            statistic.map_or_else(missing, |statistic| footnotes.cell(&statistic))
        }));
        row.extend(coverage.map(|coverage| {
            coverage.map_or_else(missing, |c| format!("{} of {}", c.judged, c.labelled))
        }));
        table.push_row(row);
    }
    let mut notes = vec![
        "in brackets: 95 % CI".to_owned(),
        "pairs, responses: number with a verdict, of the number labelled".to_owned(),
    ];
    notes.extend(footnotes.into_lines());
    if has_small {
        notes.push(format!("*  fewer than {SMALL_GROUP} cases: too few for conclusions"));
    }
    TableSection::new(title, table).with_notes(notes)
}

/// Reasons why cells have no value or interval, by letter.
#[derive(Default)]
struct Footnotes(Vec<String>);

impl Footnotes {
    /// Formats a value with its interval. A footnote letter gives the reason if one is undefined.
    fn cell(&mut self, statistic: &AgreementStatistic) -> String {
        let (name, estimate) = (statistic.statistic, &statistic.estimate);
        match (estimate.value, estimate.interval) {
            (Ok(_), Ok(_)) => estimate_cell(name, estimate),
            (Ok(value), Err(reason)) => {
                format!("{} {}", name.format_value(value), self.letter_for(reason))
            }
            (Err(reason), _) => format!("{UNDEFINED} {}", self.letter_for(reason)),
        }
    }

    fn letter_for(&mut self, reason: Undefined) -> char {
        // The number of resamples with a value differs from cell to cell.
        let text = match reason {
            Undefined::Unstable { .. } => "too few bootstrap resamples have a value".to_owned(),
            other => other.with_names(SIDE_NAMES),
        };
        let known = self.0.iter().position(|known| *known == text);
        let index = known.unwrap_or_else(|| {
            self.0.push(text);
            self.0.len() - 1
        });
        ('a'..='z').nth(index).unwrap_or('?')
    }

    fn into_lines(self) -> Vec<String> {
        let lines = ('a'..='z').zip(self.0);
        lines.map(|(letter, reason)| format!("{letter}  {reason}")).collect()
    }
}
