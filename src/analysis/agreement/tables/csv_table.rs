//! The agreement of a judge as CSV: one row per statistic.

use crate::analysis::agreement::by_target::Agreement;
use crate::analysis::agreement::statistics::agreement_statistic::AgreementStatistic;
use crate::support::tables::Table;

/// The columns of a statistic, after those that name its target and subgroup.
const STATISTIC_COLUMNS: [&str; 17] = [
    "statistic",
    "value",
    "low",
    "high",
    "exact_low",
    "exact_high",
    "n",
    "labelled",
    "coverage",
    "worst",
    "best",
    "images",
    "undefined",
    "ceiling",
    "ceiling_low",
    "ceiling_high",
    "ceiling_n",
];

impl Agreement {
    /// Returns one row per statistic, target and subgroup.
    pub fn csv_table(&self) -> Table {
        let mut table = Table::new(["target", "by", "group"].into_iter().chain(STATISTIC_COLUMNS));
        let first_section = self.sections.first();
        let first_target = first_section.map_or("", |section| section.target.key());
        let sections = self.sections.iter();
        let sections = sections.map(|s| ([s.target.key(), "", ""], &s.statistics));
        let groups = self.groups.iter();
        let groups = groups.map(|g| ([first_target, &g.by, &g.value], &g.statistics));
        for (names, statistics) in sections.chain(groups) {
            for statistic in statistics {
                let names = names.map(str::to_owned);
                table.push_row(names.into_iter().chain(statistic_cells(statistic)));
            }
        }
        table
    }
}

fn statistic_cells(statistic: &AgreementStatistic) -> [String; 17] {
    let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
    let bounds =
        |interval: Option<[f64; 2]>| [0, 1].map(|i| number(interval.map(|bounds| bounds[i])));
    let estimate = &statistic.estimate;
    let ceiling = statistic.ceiling.as_ref().map(|c| &c.estimate);
    let [low, high] = bounds(estimate.interval.ok());
    let [exact_low, exact_high] = bounds(statistic.exact_interval);
    let [worst, best] = bounds(statistic.bounds());
    let [ceiling_low, ceiling_high] = bounds(ceiling.and_then(|c| c.interval.ok()));
    [
        statistic.statistic.key(),
        number(estimate.value.ok()),
        low,
        high,
        exact_low,
        exact_high,
        estimate.n.to_string(),
        statistic.coverage.labelled.to_string(),
        statistic.coverage.proportion().to_string(),
        worst,
        best,
        estimate.clusters.to_string(),
        statistic.undefined_reason().unwrap_or_default(),
        number(ceiling.and_then(|c| c.value.ok())),
        ceiling_low,
        ceiling_high,
        ceiling.map_or(String::new(), |c| c.n.to_string()),
    ]
}
