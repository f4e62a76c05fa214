//! Two judges compared, as a table to read.

use super::statistic::Statistic;
use crate::analysis::agreement::judge_comparison::JudgeComparison;
use crate::analysis::agreement::tables::{TableSection, probability, said};
use crate::support::terminal::table::Table;

impl JudgeComparison {
    /// The comparison as a table.
    pub fn part(&self) -> TableSection {
        let head = [
            "statistic",
            "first",
            "second",
            "difference",
            "95 % interval",
            "p",
            "p (Holm)",
            "n",
            "detectable",
        ];
        let mut grid = Table::new(head);
        let mut notes = Vec::new();
        for row in &self.differences {
            let show = |value: Option<f64>| {
                value.map_or("undefined".to_owned(), |v| row.statistic.shown(v))
            };
            let p = |value: Option<f64>| value.map_or("-".to_owned(), probability);
            grid.row([
                row.statistic.title().to_owned(),
                show(row.first),
                show(row.second),
                show(row.difference),
                row.interval
                    .map_or("-".to_owned(), |i| row.statistic.shown_interval(i)),
                p(row.p),
                p(row.p_holm),
                row.n.to_string(),
                row.smallest_detectable
                    .map_or("-".to_owned(), |v| row.statistic.shown(v)),
            ]);
            if let Some(reason) = &row.undefined {
                notes.push((row.statistic.title().to_owned(), reason.clone()));
            }
        }
        let mut told = vec![self.verdict()];
        let test = &self.mcnemar;
        told.push(format!(
            "McNemar's exact test, pairs taken as independent: {} only the first has right, {} only the \
             second, p = {}",
            test.only_first,
            test.only_second,
            probability(test.p)
        ));
        told.push(
            "detectable: the smallest true difference that so many cases would have shown four times \
             out of five"
                .to_owned(),
        );
        told.extend(said(notes));
        TableSection {
            title: format!(
                "first: {}; second: {}; on {}",
                self.first,
                self.second,
                self.target.key()
            ),
            grid,
            notes: told,
        }
    }

    /// What the table says, in words.
    fn verdict(&self) -> String {
        let significant = self
            .differences
            .iter()
            .filter(|d| d.p_holm.is_some_and(|p| p < 0.05));
        let better = |statistic, difference: f64| {
            // An error is better where it is smaller.
            (difference > 0.0) != (statistic == Statistic::MeanAbsoluteError)
        };
        let told: Vec<String> = significant
            .filter_map(|row| {
                let who = if better(row.statistic, row.difference?) {
                    "first"
                } else {
                    "second"
                };
                Some(format!(
                    "{}: the {who} agrees better",
                    row.statistic.title()
                ))
            })
            .collect();
        if told.is_empty() {
            "no significant difference between the two judges on these cases".to_owned()
        } else {
            format!("significant after Holm's correction: {}", told.join("; "))
        }
    }
}
