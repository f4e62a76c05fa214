//! The agreement of a judge as one row per statistic, for CSV.

use crate::analysis::agreement::agreement_statistic::AgreementStatistic;
use crate::analysis::agreement::by_target::Agreement;
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
        let mut table = Table::new(
            ["target", "by", "group"]
                .into_iter()
                .chain(STATISTIC_COLUMNS),
        );
        let first = self.sections.first();
        let first_target = first.map_or("", |section| section.target.key());
        let sections = self.sections.iter();
        let sections = sections.map(|s| ([s.target.key(), "", ""], &s.figures));
        let groups = self.groups.iter();
        let groups = groups.map(|g| ([first_target, &g.by, &g.value], &g.figures));
        for (names, statistics) in sections.chain(groups) {
            for statistic in statistics {
                let names = names.map(str::to_owned);
                table.row(names.into_iter().chain(cells(statistic)));
            }
        }
        table
    }
}

fn cells(statistic: &AgreementStatistic) -> [String; 17] {
    let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
    let ends = |interval: Option<[f64; 2]>| [0, 1].map(|i| number(interval.map(|ends| ends[i])));
    let estimate = &statistic.estimate;
    let ceiling = statistic.ceiling.as_ref().map(|c| &c.estimate);
    let [low, high] = ends(estimate.interval.ok());
    let [exact_low, exact_high] = ends(statistic.exact);
    let [worst, best] = ends(statistic.bounds());
    let [ceiling_low, ceiling_high] = ends(ceiling.and_then(|c| c.interval.ok()));
    [
        statistic.statistic.key(),
        number(estimate.value.ok()),
        low,
        high,
        exact_low,
        exact_high,
        estimate.n.to_string(),
        statistic.coverage.labelled.to_string(),
        statistic.coverage.share().to_string(),
        worst,
        best,
        estimate.clusters.to_string(),
        statistic.reason().unwrap_or_default(),
        number(ceiling.and_then(|c| c.value.ok())),
        ceiling_low,
        ceiling_high,
        ceiling.map_or(String::new(), |c| c.n.to_string()),
    ]
}
