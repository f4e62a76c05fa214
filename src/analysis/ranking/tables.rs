//! A ranking as tables to read.

use crate::analysis::agreement::{TableSection, probability};
use crate::analysis::ranking::model_ranking::Ranking;
use crate::judging::run::summary::percent_down;
use crate::support::terminal::number::signed;
use crate::support::terminal::table::Table;
use crate::support::text::plural;

impl Ranking {
    /// What the tables are about, in one paragraph.
    pub fn lead(&self) -> String {
        format!(
            "{} of {} with a verdict of {}, on {}; {}\nintervals: 95 %, by {} draws of whole images \
             (seed {})",
            self.n,
            plural(self.pairs as u64, "pair"),
            self.name,
            self.target.key(),
            plural(self.images as u64, "image"),
            self.draws,
            self.seed
        )
    }

    /// The tables.
    pub fn parts(&self) -> Vec<TableSection> {
        vec![self.models_part(), self.matrix(), self.differences()]
    }

    /// The models, a line for each.
    pub fn grid(&self) -> Table {
        let mut grid = Table::new([
            "model",
            "rank",
            "ranks",
            "win rate",
            "95 % interval",
            "strength",
            "95 % interval",
            "win",
            "tie",
            "loss",
            "n",
            "coverage",
        ]);
        let dash = || "-".to_owned();
        for model in &self.models {
            let ranks = match model.rank_interval {
                [a, b] if a == b => a.to_string(),
                [a, b] => format!("{a}-{b}"),
            };
            let percent = |v: f64| format!("{:.1}", 100.0 * v);
            let rates = model.win_rate_interval;
            let strengths = model.strength_interval;
            grid.row([
                model.model.clone(),
                model.rank.to_string(),
                ranks,
                model.win_rate.map_or_else(dash, |v| percent(v) + " %"),
                rates.map_or_else(dash, |[a, b]| format!("{} to {}", percent(a), percent(b))),
                model.strength.map_or_else(dash, signed),
                strengths.map_or_else(dash, |[a, b]| format!("{} to {}", signed(a), signed(b))),
                model.wins.to_string(),
                model.ties.to_string(),
                model.losses.to_string(),
                model.n.to_string(),
                format!("{:.0} %", percent_down(model.coverage)),
            ]);
        }
        grid
    }

    /// The models with a number in each column, for a spreadsheet.
    pub fn long(&self) -> Table {
        let mut grid = Table::new([
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
            let ends = |ends: Option<[f64; 2]>| [0, 1].map(|i| number(ends.map(|ends| ends[i])));
            let [rate_low, rate_high] = ends(model.win_rate_interval);
            let [strength_low, strength_high] = ends(model.strength_interval);
            grid.row([
                model.model.clone(),
                model.rank.to_string(),
                model.rank_interval[0].to_string(),
                model.rank_interval[1].to_string(),
                number(model.win_rate),
                rate_low,
                rate_high,
                number(model.strength),
                strength_low,
                strength_high,
                model.wins.to_string(),
                model.ties.to_string(),
                model.losses.to_string(),
                model.n.to_string(),
                model.coverage.to_string(),
            ]);
        }
        grid
    }

    fn models_part(&self) -> TableSection {
        let mut notes = vec!["win rate: a tie is half a win".to_owned()];
        notes.push(match self.ties {
            Some(ties) => format!(
                "strength: its logarithm in Bradley and Terry's model with ties (Davidson 1970), the mean \
                 being 0; equal models tie in {:.0} % of their pairs",
                100.0 * ties / (2.0 + ties)
            ),
            None => "strength: undefined; ranks are of strengths drawn a little to each other".to_owned(),
        });
        notes.extend(self.undefined.clone());
        if self.models.iter().any(|model| model.coverage < 1.0) {
            notes.push("coverage: the part of a model's pairs that have a verdict".to_owned());
        }
        notes.push("ranks: what the differences below that are more than chance leave to each, all right at once with 95 % confidence".to_owned());
        if self
            .models
            .iter()
            .all(|m| m.rank_interval[0] < m.rank_interval[1])
        {
            notes.push("no model's rank is certain".to_owned());
        }
        TableSection {
            title: "models, best first".to_owned(),
            grid: self.grid(),
            notes,
        }
    }

    /// Wins, ties and losses of each against each.
    fn matrix(&self) -> TableSection {
        let mut head = vec!["row against column".to_owned()];
        head.extend(self.models.iter().map(|model| model.model.clone()));
        let mut grid = Table::new(head);
        for row in &self.models {
            let mut cells = vec![row.model.clone()];
            for column in &self.models {
                let find = |a: &str, b: &str| {
                    self.duels
                        .iter()
                        .find(|duel| duel.first == a && duel.second == b)
                };
                let (a, b) = (&row.model, &column.model);
                let own = find(a, b).map(|d| [d.wins, d.ties, d.losses]);
                let counts = own.or_else(|| find(b, a).map(|d| [d.losses, d.ties, d.wins]));
                let counts = counts.filter(|counts| counts.iter().sum::<u64>() > 0);
                cells.push(counts.map_or("-".to_owned(), |[w, t, l]| format!("{w} / {t} / {l}")));
            }
            grid.row(cells);
        }
        TableSection {
            title: "win / tie / loss".to_owned(),
            grid,
            notes: Vec::new(),
        }
    }

    fn differences(&self) -> TableSection {
        let mut grid = Table::new([
            "models",
            "difference",
            "95 % interval",
            "p",
            "p (Holm)",
            "pairs",
        ]);
        for duel in &self.duels {
            let p = |value: Option<f64>| value.map_or("-".to_owned(), probability);
            grid.row([
                duel.words.clone(),
                signed(duel.difference),
                duel.interval.map_or("-".to_owned(), |[a, b]| {
                    format!("{} to {}", signed(a), signed(b))
                }),
                p(duel.p),
                p(duel.p_holm),
                (duel.wins + duel.ties + duel.losses).to_string(),
            ]);
        }
        TableSection {
            title: "every two models".to_owned(),
            grid,
            notes: vec![
                "difference: of the logarithms of their strengths".to_owned(),
                "p: of the points of the one above those of the other, image by image, by all ways to \
                 exchange the two (exact)"
                    .to_owned(),
            ],
        }
    }
}
