//! A ranking as text tables and CSV.

use std::collections::HashMap;

use crate::analysis::ranking::model_ranking::Ranking;
use crate::analysis::ranking::pairwise::{DifferenceTest, PairwiseComparison};
use crate::analysis::verdicts::caption::interval_caption;
use crate::support::tables::{Table, TableSection};
use crate::support::terminal::number::{
    NOT_APPLICABLE, format_floor_percent, format_p_value, format_percent_with_interval,
    format_signed_two_decimals, format_with_interval,
};
use crate::support::text::format_count;

impl Ranking {
    /// Returns the paragraph above the tables: what was ranked, and how intervals were computed.
    pub fn intro(&self) -> String {
        format!(
            "{} of {} with a verdict of {}; {}; score target: {}\n{}",
            self.n,
            format_count(self.pairs as u64, "pair"),
            self.name,
            format_count(self.images as u64, "image"),
            self.target.key(),
            interval_caption(self.draws, self.seed)
        )
    }

    /// Returns the tables: models, win / tie / loss matrix, and pairwise comparisons.
    pub fn tables(&self) -> Vec<TableSection> {
        vec![self.model_table(), self.outcome_matrix(), self.comparison_table()]
    }

    /// Returns one row per model, with one value per cell.
    pub fn csv_table(&self) -> Table {
        let mut table = Table::new([
            "model",
            "rank",
            "rank_best",
            "rank_worst",
            "win_rate",
            "win_rate_low",
            "win_rate_high",
            "strength",
            "strength_low",
            "strength_high",
            "win",
            "tie",
            "loss",
            "n",
            "coverage",
        ]);
        let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
        for model in &self.models {
            let bounds = |interval: Option<[f64; 2]>| {
                [0, 1].map(|i| number(interval.map(|bounds| bounds[i])))
            };
            let [rate_low, rate_high] = bounds(model.win_rate_interval);
            let [strength_low, strength_high] = bounds(model.strength_interval);
            table.push_row([
                model.model.clone(),
                model.rank.to_string(),
                model.rank_interval[0].to_string(),
                model.rank_interval[1].to_string(),
                number(model.win_rate),
                rate_low,
                rate_high,
                model.strength.to_string(),
                strength_low,
                strength_high,
                model.wins.to_string(),
                model.ties.to_string(),
                model.losses.to_string(),
                model.n.to_string(),
                model.coverage.to_string(),
            ]);
        }
        table
    }

    fn model_table(&self) -> TableSection {
        let mut table = Table::new([
            "model",
            "rank [95 % CI]",
            "win rate [95 % CI]",
            "strength [95 % CI]",
            "win",
            "tie",
            "loss",
            "n",
            "coverage",
        ]);
        let missing = || NOT_APPLICABLE.to_owned();
        for model in &self.models {
            let ranks = model.rank_interval.map(|rank| rank.to_string());
            let win_rate = |rate| format_percent_with_interval(rate, model.win_rate_interval);
            let strength = |strength| {
                let interval = model.strength_interval;
                let interval = interval.map(|bounds| bounds.map(format_signed_two_decimals));
                format_with_interval(&format_signed_two_decimals(strength), interval)
            };
            table.push_row([
                model.model.clone(),
                format_with_interval(&model.rank.to_string(), Some(ranks)),
                model.win_rate.map_or_else(missing, win_rate),
                strength(model.strength),
                model.wins.to_string(),
                model.ties.to_string(),
                model.losses.to_string(),
                model.n.to_string(),
                format_floor_percent(model.coverage),
            ]);
        }
        TableSection::new("models, best first", table).with_notes(self.model_notes())
    }

    fn model_notes(&self) -> Vec<String> {
        let mut notes = vec![
            "rank: simultaneous 95 % confidence intervals".to_owned(),
            format!("win, tie, loss: by the {} scores; n: pairs with a verdict", self.target.key()),
            "win rate: a tie counts as half a win".to_owned(),
        ];
        notes.push(format!(
            "strength: log strength of the Bradley–Terry model with ties (Davidson 1970), mean 0; two equally \
             strong models tie in {:.0} % of their pairs",
            100.0 * self.ties / (2.0 + self.ties)
        ));
        if self.penalised {
            notes.push(
                "strength: not estimable by maximum likelihood; penalised with half a win and half a loss of \
                 every model against a hypothetical opponent (Turner et al. 2020); without intervals, because \
                 the verdicts do not limit how large the differences are"
                    .to_owned(),
            );
        }
        notes.extend(self.undefined.clone());
        if self.models.iter().any(|model| model.coverage < 1.0) {
            notes.push("coverage: proportion of a model's pairs that have a verdict".to_owned());
        }
        let is_uncertain = |[best, worst]: [usize; 2]| best < worst;
        if self.models.iter().all(|m| is_uncertain(m.rank_interval)) {
            notes
                .push("no model's rank is certain: every interval covers several ranks".to_owned());
        }
        notes
    }

    /// Builds the matrix of wins, ties and losses of every model against every other.
    fn outcome_matrix(&self) -> TableSection {
        let mut counts: HashMap<(&str, &str), [u64; 3]> = HashMap::new();
        for comparison in &self.comparisons {
            let (first, second) = (comparison.first.as_str(), comparison.second.as_str());
            counts.insert((first, second), [comparison.wins, comparison.ties, comparison.losses]);
            counts.insert((second, first), [comparison.losses, comparison.ties, comparison.wins]);
        }
        let names = self.models.iter().map(|model| model.model.as_str());
        let mut table = Table::new(std::iter::once("row vs column").chain(names.clone()));
        for row in names.clone() {
            let cells = names.clone().map(|column| match counts.get(&(row, column)) {
                Some([0, 0, 0]) | None => NOT_APPLICABLE.to_owned(),
                Some([win, tie, loss]) => format!("{win} / {tie} / {loss}"),
            });
            table.push_row(std::iter::once(row.to_owned()).chain(cells));
        }
        TableSection::new("win / tie / loss", table)
    }

    fn comparison_table(&self) -> TableSection {
        let mut table = Table::new(["models", "difference [95 % CI]", "p", "p (Holm)", "pairs"]);
        for comparison in &self.comparisons {
            let p = |p: Option<f64>| p.map_or_else(|| NOT_APPLICABLE.to_owned(), format_p_value);
            let interval = comparison.interval.map(|bounds| bounds.map(format_signed_two_decimals));
            let mark = if is_tested_by_strengths(comparison) { " *" } else { "" };
            table.push_row([
                comparison.summary.clone(),
                format_with_interval(&format_signed_two_decimals(comparison.difference), interval),
                p(comparison.p) + mark,
                p(comparison.p_holm),
                (comparison.wins + comparison.ties + comparison.losses).to_string(),
            ]);
        }
        let mut notes = vec![
            "difference: between the log strengths".to_owned(),
            "p: exact paired permutation test, clustered by image".to_owned(),
        ];
        if self.comparisons.iter().any(is_tested_by_strengths) {
            notes.push(
                "p *: few images compare the two models with each other or with the same opponent; t-test of \
                 the difference, with its standard error over resampled images"
                    .to_owned(),
            );
        }
        TableSection::new("pairwise comparisons", table).with_notes(notes)
    }
}

/// Returns true if the test used the strengths, not the common comparisons.
fn is_tested_by_strengths(comparison: &PairwiseComparison) -> bool {
    comparison.test == Some(DifferenceTest::Strengths)
}
