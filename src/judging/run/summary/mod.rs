//! Summary of a run: a table of the models, flips and unscored pairs.

pub mod counts;
pub mod tally;
pub mod unscored_causes;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use acem3_experts::Aspect;
use acem3_experts::prompt::Form;
use serde::Serialize;

use crate::judging::run::summary::counts::RunCounts;
use crate::judging::run::summary::tally::{ModelTally, Tally};
use crate::support::tables::{Table, TableSection, TableStyle};
use crate::support::terminal::number::{NOT_APPLICABLE, format_floor_percent};
use crate::support::text::{escape_control_chars, format_count};

/// Meaning of the columns of the table.
const LEGEND: &str = "\
score     mean final score, {range}, from the conclusion model; not the mean of the aspects
aspects   {aspects}: mean of their criteria, {range}, from the experts
n         {noun} with a verdict; coverage: their proportion of all {noun} of the model
win       pairs with the higher final score; tie: equal scores; loss: the lower one
";

/// Summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Name of the judge.
    pub judge: String,
    /// The form of judging; absent for pairs.
    #[serde(skip_serializing_if = "Form::is_pair")]
    pub form: Form,
    /// Lowest and highest score of the rubric.
    pub range: [u8; 2],
    /// Counts of the run.
    pub counts: RunCounts,
    /// The models, with the highest mean score first.
    pub models: Vec<ModelSummary>,
    /// Flips of the preferred response.
    pub flips: Flips,
    /// Mean final score of the response in each place of a list, the first shown first; empty in other
    /// forms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub positions: Vec<f64>,
    /// Path of the records.
    pub records: String,
}

/// Results of one model. Means are `None` if the model has no verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelSummary {
    /// Name of the model.
    pub model: String,
    /// Mean combined final score, 0 to 5.
    pub score: Option<f64>,
    /// Mean combined expected final score, 0 to 5.
    pub expected: Option<f64>,
    /// Mean score of each aspect, 0 to 5.
    #[serde(flatten)]
    pub aspects: BTreeMap<Aspect, Option<f64>>,
    /// Number of pairs with a verdict.
    pub n: u64,
    /// Proportion of pairs with a verdict, 0 to 1.
    pub coverage: f64,
    /// Pairs that the model won.
    pub wins: u64,
    /// Ties.
    pub ties: u64,
    /// Pairs that the model lost.
    pub losses: u64,
}

/// Flips: pairs whose preferred response changes with the presentation order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flips {
    /// Pairs judged in both presentation orders.
    pub n: u64,
    /// Pairs whose preferred response changes.
    pub flipped: u64,
}

impl Summary {
    /// Creates the summary of a tally.
    pub fn from_tally(tally: &Tally, judge: String, form: Form, records: &Path) -> Self {
        let aspects = tally.aspects();
        let mut models: Vec<_> = tally
            .models
            .iter()
            .map(|(name, model)| ModelSummary::from_tally(name, model, &aspects))
            .collect();
        // The sort is stable: models with equal scores stay in alphabetical order.
        models.sort_by(|a, b| b.score.unwrap_or(-1.0).total_cmp(&a.score.unwrap_or(-1.0)));
        Self {
            judge,
            form,
            range: [0, 5],
            counts: tally.counts.clone(),
            models,
            positions: tally.mean_positions(),
            flips: Flips { n: tally.both_orders, flipped: tally.flipped },
            records: records.display().to_string(),
        }
    }

    /// Sets the lowest and highest score of the rubric.
    #[must_use]
    pub fn with_range(self, range: [u8; 2]) -> Self {
        Self { range, ..self }
    }

    /// Returns the summary as text, with its table in this style. `accuracy`: table of the models in the
    /// form `correctness`.
    pub fn to_text(&self, style: TableStyle, accuracy: Option<&TableSection>) -> String {
        let counts = &self.counts;
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{} of {} judged by {}\n",
            format_count(counts.judged, self.form.unit()),
            format_count(counts.cases, "case"),
            escape_control_chars(&self.judge)
        );
        if let Some(section) = accuracy {
            let _ = writeln!(text, "{}", section.render(style, 2));
        } else if !self.models.is_empty() {
            let _ = writeln!(text, "{}", self.table().render(style));
            let _ = writeln!(text, "{}", self.legend());
        }
        if self.form.is_pair() {
            let _ = writeln!(text, "{}", self.flip_line());
        }
        if !self.positions.is_empty() {
            let means: Vec<String> = self.positions.iter().map(|p| format!("{p:.2}")).collect();
            let _ = writeln!(
                text,
                "positions {}: mean final score of the response shown first, second and so on",
                means.join(", ")
            );
        }
        let _ = writeln!(text, "{}", self.unscored_line());
        if counts.ignored_images > 0 {
            let cases = format_count(counts.ignored_images, "case");
            let verb = if counts.ignored_images == 1 { "has" } else { "have" };
            let _ = writeln!(
                text,
                "images    {cases} {verb} the image in a field that is not read: judged without an image"
            );
        }
        let noted = counts.noted.saturating_sub(counts.ignored_images);
        if noted > 0 {
            let problems = format_count(noted, "input problem");
            let verb = if noted == 1 { "affects" } else { "affect" };
            let _ = writeln!(text, "noted     {problems} that {verb} no verdict");
        }
        if counts.reused > 0 {
            let judged = format_count(counts.judged, "verdict");
            let reused = counts.reused;
            let _ = writeln!(text, "reused    {reused} of {judged}, from an earlier run");
        }
        let _ = writeln!(text, "records   {}", escape_control_chars(&self.records));
        text
    }

    /// Explains the columns of the table. Single responses are compared after the judge has scored each
    /// alone.
    fn legend(&self) -> String {
        let noun = format!("{}s", self.form.unit());
        let columns: Vec<&str> = self.aspects().map(column_of_aspect).collect();
        let [low, high] = self.range;
        let legend =
            LEGEND.replace("{noun}", &noun).replace("{range}", &format!("{low} to {high}"));
        match columns.as_slice() {
            [] => legend
                .lines()
                .filter(|line| !line.contains("{aspects}"))
                .fold(String::new(), |text, line| text + line + "\n"),
            columns => legend.replace("{aspects}", &columns.join(", ")),
        }
    }

    fn aspects(&self) -> impl Iterator<Item = Aspect> {
        self.models.first().into_iter().flat_map(|model| model.aspects.keys().copied())
    }

    fn table(&self) -> Table {
        let header = ["model", "score"].into_iter().chain(self.aspects().map(column_of_aspect));
        let mut table =
            Table::new(header.chain(["n", "coverage", "win", "tie", "loss"]).collect::<Vec<_>>());
        let mean = |value: Option<f64>| {
            value.map_or_else(|| NOT_APPLICABLE.to_owned(), |v| format!("{v:.2}"))
        };
        for model in &self.models {
            let mut row = vec![model.model.clone(), mean(model.score)];
            row.extend(model.aspects.values().map(|score| mean(*score)));
            row.extend([model.n.to_string(), format_floor_percent(model.coverage)]);
            row.extend([model.wins, model.ties, model.losses].map(|n| n.to_string()));
            table.push_row(row);
        }
        table
    }

    fn flip_line(&self) -> String {
        let Flips { n, flipped } = self.flips;
        if n == 0 {
            return "flips     not measured: no pair was judged in both presentation orders"
                .to_owned();
        }
        let percent = 100.0 * flipped as f64 / n as f64;
        format!("flips     {flipped} of {n} ({percent:.1} %) when the presentation order changes")
    }

    fn unscored_line(&self) -> String {
        let all = self.counts.unscored_total();
        if all == 0 {
            return "unscored  none".to_owned();
        }
        let reasons = self.counts.unscored.iter();
        let reasons: Vec<_> = reasons.map(|(reason, n)| format!("{} {n}", reason.name())).collect();
        let percent = self.counts.unscored_percent();
        let records = self.counts.judged_or_unscored();
        let unlisted = match self.counts.unlisted_pairs {
            0 => String::new(),
            n => format!("; {} have no record of their own", format_count(n, "more pair")),
        };
        format!("unscored  {all} of {records} ({percent:.1} %): {}{unlisted}", reasons.join(", "))
    }
}

/// Returns the column of an aspect: the last word of its key.
fn column_of_aspect(aspect: Aspect) -> &'static str {
    aspect.key().rsplit('_').next().unwrap_or_default()
}

impl ModelSummary {
    fn from_tally(name: &str, model: &ModelTally, aspects: &[Aspect]) -> Self {
        let n = model.judged as f64;
        let mean = |sum: f64| (model.judged > 0).then(|| (sum / n * 1e4).round() / 1e4);
        Self {
            model: name.to_owned(),
            score: mean(model.scores),
            expected: mean(model.expected),
            aspects: aspects
                .iter()
                .map(|a| (*a, model.aspects.get(a).and_then(|s| mean(*s))))
                .collect(),
            n: model.judged,
            coverage: n / model.pairs.max(1) as f64,
            wins: model.wins,
            ties: model.ties,
            losses: model.losses,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::UnscoredReason;

    fn tally() -> Tally {
        let good = ModelTally {
            pairs: 4,
            judged: 3,
            scores: 13.0,
            expected: 12.5,
            aspects: Aspect::ALL.into_iter().zip([12.0, 9.0, 15.0]).collect(),
            wins: 2,
            ties: 1,
            losses: 0,
        };
        let unjudged = ModelTally { pairs: 1, ..ModelTally::default() };
        let unscored = [(UnscoredReason::Image, 1)].into();
        let counts = RunCounts {
            cases: 3,
            records: 4,
            judged: 3,
            reused: 1,
            unscored,
            ..RunCounts::default()
        };
        let models = [("a".to_owned(), unjudged), ("good one".to_owned(), good)].into();
        Tally { counts, models, both_orders: 3, flipped: 1, new_verdicts: 2, ..Tally::default() }
    }

    #[test]
    fn summary_has_table_flips_and_unscored() {
        let summary = Summary::from_tally(
            &tally(),
            "mini 1".to_owned(),
            Form::Pair,
            Path::new("out/records.jsonl"),
        );
        let expected = "\
3 pairs of 3 cases judged by mini 1

model     score  expression  knowledge  relevance  n  coverage  win  tie  loss
good one   4.33        4.00       3.00       5.00  3      75 %    2    1     0
a             -           -          -          -  0       0 %    0    0     0

score     mean final score, 0 to 5, from the conclusion model; not the mean of the aspects
aspects   expression, knowledge, relevance: mean of their criteria, 0 to 5, from the experts
n         pairs with a verdict; coverage: their proportion of all pairs of the model
win       pairs with the higher final score; tie: equal scores; loss: the lower one

flips     1 of 3 (33.3 %) when the presentation order changes
unscored  1 of 4 (25.0 %): image 1
reused    1 of 3 verdicts, from an earlier run
records   out/records.jsonl
";
        let terminal = TableStyle::Terminal { width: 80 };
        assert_eq!(summary.to_text(terminal, None), expected);
    }

    #[test]
    fn control_characters_in_names_are_escaped() {
        let mut tally = tally();
        let model = tally.models.remove("a").unwrap();
        tally.models.insert("a\u{1b}[2J\nb".to_owned(), model);
        let summary = Summary::from_tally(&tally, "mini".to_owned(), Form::Pair, Path::new("r"));
        let text = summary.to_text(TableStyle::Terminal { width: 80 }, None);
        assert!(text.contains("\na\\u{1b}[2J\\nb "), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn direction_marks_are_escaped() {
        let marked = "a\u{202e}b\u{2066}c\u{200f}\u{2028}d\r";
        assert_eq!(escape_control_chars(marked), "a\\u{202e}b\\u{2066}c\\u{200f}\\u{2028}d\\r");
        // Letters of any script and the joiners within words stay unchanged.
        assert_eq!(escape_control_chars("اسم\u{200c}ها 肝"), "اسم\u{200c}ها 肝");
    }
}
