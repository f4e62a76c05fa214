//! Tables of a comparison: text, Markdown and CSV.

use std::collections::HashMap;
use std::path::Path;

use super::comparison::JudgedComparison;
use super::pair_values::PairedComparison;
use super::row::JudgedRow;
use crate::support::tables::{Table, TableSection, TableStyle, render_sections};
use crate::support::terminal::number::{
    format_floor_percent, format_p_value, format_percent_with_interval, format_with_interval,
};
use crate::support::text::format_count;
use crate::training::comparisons::encoders::probe::NamedProportion;
use crate::training::measurement::Proportion;

/// Mark of a value that does not exist.
const NONE: &str = "–";

/// Name of the folder in which a training puts its panel.
const PANEL: &str = "panel";

/// Short names of encoders in tables: the last part of a path, if no other encoder has it; for the
/// panel of a training, the folder of the training.
struct EncoderLabels(HashMap<String, String>);

impl EncoderLabels {
    fn new(rows: &[JudgedRow]) -> Self {
        let short = |name: &str| {
            let mut parts =
                Path::new(name).iter().rev().map(|part| part.to_string_lossy().into_owned());
            let last = parts.next();
            let last = if last.as_deref() == Some(PANEL) { parts.next().or(last) } else { last };
            last.filter(|_| Path::new(name).exists()).unwrap_or_else(|| name.to_owned())
        };
        let all: Vec<String> = rows.iter().map(|row| short(&row.encoder)).collect();
        let labels = rows.iter().zip(&all).map(|(row, label)| {
            let is_unique = all.iter().filter(|other| *other == label).count() == 1;
            (row.encoder.clone(), if is_unique { label.clone() } else { row.encoder.clone() })
        });
        Self(labels.collect())
    }

    /// Returns the label of an encoder; other names stay as they are.
    fn get<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.get(name).map_or(name, String::as_str)
    }
}

/// Tables of a comparison.
struct ComparisonTables<'a> {
    comparison: &'a JudgedComparison,
    labels: EncoderLabels,
}

impl JudgedComparison {
    /// Returns the tables with an introduction.
    pub fn text(&self, style: TableStyle) -> String {
        let pairs = self.rows.first().map_or(0, |row| row.pairs);
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let intro = format!(
            "encoders on {}: {}, judged by {}\n\
             trained for every encoder: {}; {} {}\n\
             in brackets: 95 % CI, clustered by image",
            self.set,
            format_count(pairs as u64, "pair"),
            self.base,
            self.budget,
            if seeds.len() == 1 { "seed" } else { "seeds" },
            seeds.join(", "),
        );
        let tables = ComparisonTables { comparison: self, labels: EncoderLabels::new(&self.rows) };
        let mut sections = vec![tables.accuracy(), tables.differences()];
        let majority = &self.majority_class;
        sections.push(tables.groups(
            "Order accuracy by question type",
            "question type",
            |row| &row.by_question_type,
            &majority.by_question_type,
        ));
        sections.push(tables.groups(
            "Order accuracy by modality",
            "modality",
            |row| &row.by_modality,
            &majority.by_modality,
        ));
        sections.push(tables.costs());
        render_sections(&intro, &sections, style)
    }
}

impl ComparisonTables<'_> {
    fn accuracy(&self) -> TableSection {
        let header = ["encoder", "order accuracy", "chosen scores", "n", "images", "coverage"];
        let mut table = Table::new(header);
        for row in &self.comparison.rows {
            let chosen = row.statistics.get(1).and_then(|statistic| statistic.proportion);
            let mut cells = proportion_cells(self.labels.get(&row.encoder), row.order_accuracy());
            cells.insert(2, percent(chosen));
            cells.push(format_floor_percent(row.coverage()));
            table.push_row(cells);
            let mut cells = proportion_cells("  blank image", row.blank_image);
            cells.insert(2, String::new());
            cells.push(String::new());
            table.push_row(cells);
        }
        let mut cells =
            proportion_cells("majority class", self.comparison.majority_class.order_accuracy);
        cells.insert(2, String::new());
        cells.push("100 %".to_owned());
        table.push_row(cells);
        TableSection::new("Order accuracy", table).with_notes(self.accuracy_notes())
    }

    fn accuracy_notes(&self) -> Vec<String> {
        let mut notes = vec![
            "order accuracy: the better response has the higher final score; by expected scores on data sets, where a \
             tie counts ½"
                .to_owned(),
            "chosen scores: the same by the most probable scores, where a tie is wrong unless it is known".to_owned(),
            "blank image: the same panel judges with a grey image; majority class: the response that is the more \
             frequent answer in the training split (on phantoms the more frequent order)"
                .to_owned(),
            "coverage: pairs with a verdict; the others count neither as right nor as wrong".to_owned(),
        ];
        for row in self.comparison.rows.iter().filter(|row| row.scored < row.pairs) {
            let reason = row.unscored_first.as_deref().unwrap_or("unknown reason");
            let reason = reason.lines().next().unwrap_or_default();
            let n = row.pairs - row.scored;
            notes.push(format!(
                "{}: {n} of {} pairs unscored ({reason})",
                self.labels.get(&row.encoder),
                row.pairs
            ));
        }
        if self.comparison.seeds.len() > 1 {
            for row in &self.comparison.rows {
                let seeds = row.by_seed.iter().map(|seed| {
                    let value = seed.order_accuracy.map(|p| format!("{:.1} %", 100.0 * p.value));
                    format!("{} with seed {}", value.unwrap_or_else(|| NONE.to_owned()), seed.seed)
                });
                let seeds = seeds.collect::<Vec<_>>().join(", ");
                notes.push(format!("{}: order accuracy {seeds}", self.labels.get(&row.encoder)));
            }
        }
        notes
    }

    fn differences(&self) -> TableSection {
        let header = ["encoder", "compared with", "difference", "p", "p (Holm)", "n"];
        let mut table = Table::new(header).with_text_columns(2);
        for comparison in &self.comparison.differences {
            let PairedComparison { encoder, baseline, n, difference, .. } = comparison;
            let [value, p, p_holm] = match difference {
                None => [NONE; 3].map(str::to_owned),
                Some(difference) => {
                    let points = |value: f64| format!("{:+.1}", 100.0 * value);
                    let interval = difference.interval.map(|ends| ends.map(points));
                    [
                        format_with_interval(&points(difference.value), interval),
                        format_p_value(difference.p),
                        format_p_value(difference.p_holm),
                    ]
                }
            };
            let names = [encoder, baseline].map(|name| self.labels.get(name).to_owned());
            table.push_row(names.into_iter().chain([value, p, p_holm, n.to_string()]));
        }
        let notes = vec![
            "difference: percentage points of order accuracy, on the pairs that both have scored; p: paired permutation \
             test by image; Holm's correction is over all rows"
                .to_owned(),
        ];
        TableSection::new("Paired differences", table).with_notes(notes)
    }

    fn groups(
        &self,
        title: &str,
        header: &str,
        groups: impl Fn(&JudgedRow) -> &Vec<NamedProportion>,
        majority: &[NamedProportion],
    ) -> TableSection {
        let header = [header, "encoder", "order accuracy", "n", "images"];
        let mut table = Table::new(header).with_text_columns(2);
        for (i, majority) in majority.iter().enumerate() {
            for (j, row) in self.comparison.rows.iter().enumerate() {
                let proportion = groups(row).get(i).and_then(|group| group.proportion);
                let name = if j == 0 { majority.name.as_str() } else { "" };
                let cells = proportion_cells(self.labels.get(&row.encoder), proportion);
                table.push_row([name.to_owned()].into_iter().chain(cells));
            }
            let cells = proportion_cells("majority class", majority.proportion);
            table.push_row([String::new()].into_iter().chain(cells));
        }
        TableSection::new(title, table)
    }

    fn costs(&self) -> TableSection {
        let header = [
            "encoder",
            "tokens/image",
            "ms/image",
            "s/pair",
            "peak memory",
            "encoder",
            "projector",
            "trained",
        ];
        let mut table = Table::new(header);
        for row in &self.comparison.rows {
            let mut cells =
                vec![self.labels.get(&row.encoder).to_owned(), row.fit.image_tokens.to_string()];
            cells.extend(match &row.cost {
                None => vec![NONE.to_owned(); 6],
                Some(cost) => vec![
                    format!("{:.1}", cost.milliseconds_per_image),
                    row.seconds_per_pair.map_or_else(|| NONE.to_owned(), |s| format!("{s:.2}")),
                    cost.peak_memory
                        .map_or_else(|| NONE.to_owned(), |bytes| format!("{} MiB", bytes >> 20)),
                    millions(cost.encoder_parameters),
                    millions(cost.projector_parameters),
                    millions(cost.trained_parameters),
                ],
            });
            table.push_row(cells);
        }
        let notes = vec![
            "ms/image: encoder and projector, one image at a time; s/pair: judging in both orders; peak memory: of the \
             process on the host, training and judging; later encoders include memory that the process keeps"
                .to_owned(),
            "encoder, projector, trained: millions of parameters; trained: the projector and the trained parts of the \
             four members"
                .to_owned(),
        ];
        TableSection::new("Costs", table).with_notes(notes)
    }
}

/// Returns cells with a name, a value with its interval, n and images.
fn proportion_cells(name: &str, proportion: Option<Proportion>) -> Vec<String> {
    match proportion {
        Some(proportion) => proportion.cells(name).to_vec(),
        None => vec![name.to_owned(), NONE.to_owned(), "0".to_owned(), "0".to_owned()],
    }
}

fn percent(proportion: Option<Proportion>) -> String {
    let format = |p: Proportion| format_percent_with_interval(p.value, Some(p.interval));
    proportion.map_or_else(|| NONE.to_owned(), format)
}

fn millions(parameters: u64) -> String {
    format!("{:.3}", parameters as f64 / 1e6)
}
