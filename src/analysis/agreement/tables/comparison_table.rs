//! The comparison of two judges as a text table.

use crate::analysis::agreement::judge_comparison::JudgeComparison;
use crate::analysis::agreement::statistics::statistic::Statistic;
use crate::support::tables::{Reasons, Table, TableSection};
use crate::support::terminal::number::{
    NOT_APPLICABLE, UNDEFINED, format_p_value, format_with_interval,
};

impl JudgeComparison {
    /// Returns the comparison as a table.
    pub fn table(&self) -> TableSection {
        let mut table = Table::new([
            "statistic",
            "first",
            "second",
            "difference [95 % CI]",
            "p",
            "p (Holm)",
            "n",
            "MDE",
        ]);
        let mut reasons = Reasons::default();
        for row in &self.differences {
            let statistic = row.statistic;
            let missing = || NOT_APPLICABLE.to_owned();
            let value = |value: Option<f64>| {
                value.map_or(UNDEFINED.to_owned(), |v| statistic.format_value(v))
            };
            let p = |p: Option<f64>| p.map_or_else(missing, format_p_value);
            let interval = row.interval.map(|bounds| statistic.format_bounds(bounds));
            let mde = row.minimum_detectable_effect;
            table.push_row([
                statistic.title().to_owned(),
                value(row.first),
                value(row.second),
                format_with_interval(&value(row.difference), interval),
                p(row.p),
                p(row.p_holm),
                row.n.to_string(),
                mde.map_or_else(missing, |mde| statistic.format_value(mde)),
            ]);
            if let Some(reason) = &row.undefined {
                reasons.add(statistic.title(), reason);
            }
        }
        let mcnemar = &self.mcnemar;
        let mut notes = vec![
            self.conclusion(),
            format!(
                "McNemar's exact test, pairs treated as independent: {} pairs right by the first judge only, {} \
                 by the second only, p = {}",
                mcnemar.only_first,
                mcnemar.only_second,
                format_p_value(mcnemar.p)
            ),
            "MDE: minimum detectable effect (80 % power at this sample size)".to_owned(),
        ];
        notes.extend(reasons.undefined_notes());
        let title = format!(
            "first: {}; second: {}; score target: {}",
            self.first,
            self.second,
            self.target.key()
        );
        TableSection::new(title, table).with_notes(notes)
    }

    /// Names the statistics in which one judge agrees significantly better with the labels.
    fn conclusion(&self) -> String {
        let significant = self.differences.iter().filter(|d| d.p_holm.is_some_and(|p| p < 0.05));
        let is_first_better = |statistic, difference: f64| {
            // A smaller error is better.
            (difference > 0.0) != (statistic == Statistic::MeanAbsoluteError)
        };
        let better: Vec<String> = significant
            .filter_map(|row| {
                let first_is_better = is_first_better(row.statistic, row.difference?);
                let judge = if first_is_better { "first" } else { "second" };
                let title = row.statistic.title();
                Some(format!("{title}: the {judge} judge agrees better"))
            })
            .collect();
        if better.is_empty() {
            "no significant difference between the two judges on these cases".to_owned()
        } else {
            format!("significant after Holm's correction: {}", better.join("; "))
        }
    }
}
