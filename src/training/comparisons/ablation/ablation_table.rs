//! Table of an ablation: means over seeds with confidence intervals, as text, JSON and SVG.

use serde::Serialize;

use crate::statistics::mean_interval;
use crate::support::files::file_form::{FileForm, contains_text, has_json_fields};
use crate::support::tables::chart::{Axis, Chart, ChartMark, DOTS_DESCRIPTION, label_with_value};
use crate::support::tables::{Table, TableSection, TableStyle, render_sections};
use crate::support::terminal::number::{
    NOT_APPLICABLE, format_percent_with_interval, format_with_interval,
};
use crate::training::TrainConfig;
use crate::training::comparisons::ablation::ablation_config::AblationConfig;
use crate::training::comparisons::ablation::ablation_result::{AblationResult, TrialStatistic};
use crate::training::comparisons::ablation::study::AblationStudy;

/// Statistics of all variants of a study.
#[derive(Clone, Debug, Serialize)]
pub struct AblationTable {
    /// Study that the variants belong to.
    #[serde(rename = "rows_are")]
    pub study: AblationStudy,
    /// Description of the training and the measurement.
    #[serde(rename = "budget")]
    pub description: String,
    /// One row per variant. The first is the baseline; the others change one setting of it.
    pub rows: Vec<AblationRow>,
}

/// One variant, over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AblationRow {
    /// Name of the variant.
    pub name: String,
    /// Statistics of the variant.
    #[serde(rename = "cells")]
    pub statistics: Vec<SeedStatistic>,
    /// Mean duration of the uninterrupted trainings in seconds.
    pub seconds: Option<f64>,
}

/// A statistic over seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeedStatistic {
    /// Name of the test set, followed by the part of its table (such as an aspect) if it has parts.
    pub group: String,
    /// Name of the statistic in the group.
    pub name: String,
    /// True for a correlation, −1 to 1; otherwise the statistic is a proportion.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_correlation: bool,
    /// Mean over seeds.
    pub mean: f64,
    /// 95 % confidence interval over seeds (Student's t); `None` for a single seed or equal values.
    pub interval: Option<[f64; 2]>,
    /// Value of each seed.
    pub seeds: Vec<f64>,
}

impl AblationRow {
    /// Summarises the results of a variant's seeds.
    pub fn new(name: &str, results: &[AblationResult]) -> Self {
        let names = results.first().map_or(&[][..], |first| first.statistics.as_slice());
        let statistic = |named: &TrialStatistic| {
            let value = |result: &AblationResult| {
                let mut statistics = result.statistics.iter();
                let is_same = |s: &&TrialStatistic| s.group == named.group && s.name == named.name;
                statistics.find(is_same).map(|s| s.value)
            };
            let seeds: Vec<f64> = results.iter().filter_map(value).collect();
            // Equal values would give an interval of width 0, for example for a variant without
            // training.
            let differ = seeds.windows(2).any(|pair| pair[0].total_cmp(&pair[1]).is_ne());
            SeedStatistic {
                group: named.group.clone(),
                name: named.name.clone(),
                is_correlation: named.is_correlation,
                mean: seeds.iter().sum::<f64>() / seeds.len().max(1) as f64,
                interval: mean_interval(&seeds).ok().filter(|_| differ),
                seeds,
            }
        };
        let times: Vec<f64> = results.iter().filter_map(|r| r.seconds).collect();
        Self {
            name: name.to_owned(),
            statistics: names.iter().map(statistic).collect(),
            seconds: (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64),
        }
    }
}

impl AblationTable {
    /// The form of the JSON file.
    pub const JSON_FORM: FileForm = FileForm {
        name: "an ablation result of acem3",
        recognise: |file| has_json_fields(file, &["rows_are", "budget", "rows"]),
    };
    /// The form of the Markdown file.
    pub const MARKDOWN_FORM: FileForm = FileForm {
        name: "an ablation table of acem3",
        recognise: |file| {
            Ok(contains_text(file, "phantom cases of seed")? && contains_text(file, "| seconds |")?)
        },
    };

    /// Creates the table and describes its training and measurement.
    pub fn new(
        study: AblationStudy,
        base: &TrainConfig,
        config: &AblationConfig,
        rows: Vec<AblationRow>,
    ) -> Self {
        let from = base.start.as_ref().map_or("random weights", |start| start.model.as_str());
        let seeds = config.seeds;
        let intervals = if seeds == 1 {
            "1 seed, no intervals".to_owned()
        } else {
            format!(
                "{seeds} seeds; in brackets: 95 % CI over seeds (Student's t), which covers the variation between seeds, \
                 not between cases"
            )
        };
        let cases = config.measurement.cases.as_ref();
        let cases = cases.map_or_else(String::new, |path| format!("; cases: {}", path.display()));
        Self {
            study,
            description: format!(
                "{} from {from}; {} phantom cases of seed {}{cases}; {intervals}",
                base.name, config.measurement.phantoms, config.measurement.seed
            ),
            rows,
        }
    }

    /// Returns the table below its description.
    pub fn text(&self, style: TableStyle) -> String {
        let groups = self.groups();
        let sections = groups.iter().enumerate().map(|(i, group)| {
            TableSection::new((*group).to_owned(), self.group_table(group, i == 0))
        });
        render_sections(&self.description, &sections.collect::<Vec<_>>(), style)
    }

    /// Returns the names of the groups of statistics, in order.
    fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for statistic in self.rows.iter().flat_map(|row| &row.statistics) {
            if !groups.contains(&statistic.group.as_str()) {
                groups.push(&statistic.group);
            }
        }
        groups
    }

    /// Returns the table of a group. The first one has the durations too.
    fn group_table(&self, group: &str, has_seconds: bool) -> Table {
        let mut names: Vec<&str> = Vec::new();
        let of_group = |row: &'_ AblationRow, name: &str| {
            let mut statistics = row.statistics.iter();
            statistics.find(|s| s.group == group && s.name == name).map(SeedStatistic::text)
        };
        for statistic in self.rows.iter().flat_map(|row| &row.statistics) {
            if statistic.group == group && !names.contains(&statistic.name.as_str()) {
                names.push(&statistic.name);
            }
        }
        let header = [""].into_iter().chain(names.iter().copied());
        let mut table = Table::new(header.chain(has_seconds.then_some("seconds")));
        let not_applicable = || NOT_APPLICABLE.to_owned();
        for row in &self.rows {
            let seconds = row.seconds.map(|seconds| format!("{seconds:.0}"));
            let mut cells = vec![row.name.clone()];
            let values = names.iter().map(|name| of_group(row, name));
            cells.extend(values.map(|value| value.unwrap_or_else(not_applicable)));
            cells.extend(has_seconds.then(|| seconds.unwrap_or_else(not_applicable)));
            table.push_row(cells);
        }
        table
    }

    /// Draws the first statistic of every row as an SVG chart.
    pub fn svg(&self) -> String {
        let first = self.rows.first().and_then(|row| row.statistics.first());
        let name = first.map_or_else(String::new, |s| format!("{}: {}", s.group, s.name));
        let mark = |row: &AblationRow| {
            let statistic = row.statistics.first();
            ChartMark {
                label: label_with_value(&row.name, statistic.map(|s| s.mean)),
                value: statistic.map(|s| s.mean),
                interval: statistic.and_then(|s| s.interval),
                is_second_series: false,
            }
        };
        let marks: Vec<ChartMark> = self.rows.iter().map(mark).collect();
        let title = format!("{name} ({})", self.description);
        Chart::forest(&title, DOTS_DESCRIPTION, &Axis::zoomed(&marks), &marks).to_svg_file()
    }
}

impl SeedStatistic {
    fn text(&self) -> String {
        if self.is_correlation {
            let interval = self.interval.map(|[low, high]| [low.max(-1.0), high.min(1.0)]);
            let interval = interval.map(|interval| interval.map(|value| format!("{value:.3}")));
            return format_with_interval(&format!("{:.3}", self.mean), interval);
        }
        let interval = self.interval.map(|[low, high]| [low.max(0.0), high.min(1.0)]);
        format_percent_with_interval(self.mean, interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistic(group: &str, name: &str, value: f64) -> TrialStatistic {
        TrialStatistic {
            group: group.to_owned(),
            name: name.to_owned(),
            value,
            is_correlation: name == "Pearson",
        }
    }

    /// Each group of statistics has its own table, and correlations are no percentages.
    #[test]
    fn groups_have_tables() {
        let mut full = result(1, 0.9, Some(10.0));
        full.statistics.push(statistic("cases, order right by criteria", "mean", 0.75));
        full.statistics.push(statistic("phantoms", "Pearson", -0.5));
        let rows = vec![
            AblationRow::new("full", &[full]),
            AblationRow::new("without", &[result(1, 0.5, Some(9.0))]),
        ];
        let (study, description) = (AblationStudy::Bias, "tiny".to_owned());
        let table = AblationTable { study, description, rows };
        let text = table.text(TableStyle::Markdown);
        assert!(text.contains("| full | 90.0 % | -0.500 | 10 |"), "{text}");
        assert!(text.contains("| without | 50.0 % | - | 9 |"), "{text}");
        let criteria = text.split("cases, order right by criteria").nth(1).unwrap();
        assert!(criteria.contains("| full | 75.0 % |"), "{text}");
    }

    fn result(seed: u64, accuracy: f64, seconds: Option<f64>) -> AblationResult {
        AblationResult {
            seed,
            fingerprint: None,
            seconds,
            statistics: vec![statistic("phantoms", "order right", accuracy)],
        }
    }

    #[test]
    fn interval_reflects_variation_between_seeds() {
        let seeds = [0.90, 0.94, 0.92].map(|accuracy| result(1, accuracy, Some(10.0)));
        let row = AblationRow::new("full", &seeds);
        // scipy.stats.t.interval(0.95, 2, 0.92, 0.02 / sqrt(3))
        let [low, high] = row.statistics[0].interval.unwrap();
        assert!((low - 0.870_317).abs() < 1e-5 && (high - 0.969_683).abs() < 1e-5, "{low} {high}");
        assert_eq!(row.statistics[0].text(), "92.0 % [87.0, 97.0]");
        let single = AblationRow::new("full", &seeds[..1]);
        assert_eq!(single.statistics[0].text(), "90.0 %");
        let interrupted = AblationRow::new("full", &[result(1, 0.5, None)]);
        assert_eq!(interrupted.seconds, None);
    }
}
