//! Tables of a comparison: text, Markdown and CSV.

use super::comparison::JudgedComparison;
use super::pair_values::{ComparedPair, PairedComparison};
use super::row::JudgedRow;
use crate::support::tables::{Table, TableSection, TableStyle, render_sections};
use crate::support::terminal::number::{
    format_floor_percent, format_p_value, format_percent_with_interval, format_with_interval,
};
use crate::support::text::format_count;
use crate::training::encoders::probe::NamedProportion;
use crate::training::measurement::Proportion;

/// Mark of a value that does not exist.
const NONE: &str = "–";

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
        let mut sections = vec![self.accuracy(), self.difference_table()];
        let majority = &self.majority_class;
        sections.push(self.groups(
            "Order accuracy by question type",
            "question type",
            |row| &row.by_question_type,
            &majority.by_question_type,
        ));
        sections.push(self.groups(
            "Order accuracy by modality",
            "modality",
            |row| &row.by_modality,
            &majority.by_modality,
        ));
        sections.push(self.costs());
        render_sections(&intro, &sections, style)
    }

    fn accuracy(&self) -> TableSection {
        let header = ["encoder", "order accuracy", "chosen scores", "n", "images", "coverage"];
        let mut table = Table::new(header);
        for row in &self.rows {
            let chosen = row.statistics.get(1).and_then(|statistic| statistic.proportion);
            let mut cells = proportion_cells(&row.encoder, row.order_accuracy());
            cells.insert(2, percent(chosen));
            cells.push(format_floor_percent(row.coverage()));
            table.push_row(cells);
            let mut cells = proportion_cells("  blank image", row.blank_image);
            cells.insert(2, String::new());
            cells.push(String::new());
            table.push_row(cells);
        }
        let mut cells = proportion_cells("majority class", self.majority_class.order_accuracy);
        cells.insert(2, String::new());
        cells.push("100 %".to_owned());
        table.push_row(cells);
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
        for row in self.rows.iter().filter(|row| row.scored < row.pairs) {
            let reason = row.unscored_first.as_deref().unwrap_or("unknown reason");
            let reason = reason.lines().next().unwrap_or_default();
            let n = row.pairs - row.scored;
            notes.push(format!("{}: {n} of {} pairs unscored ({reason})", row.encoder, row.pairs));
        }
        if self.seeds.len() > 1 {
            for row in &self.rows {
                let seeds = row.by_seed.iter().map(|seed| {
                    let value = seed.order_accuracy.map(|p| format!("{:.1} %", 100.0 * p.value));
                    format!("{} with seed {}", value.unwrap_or_else(|| NONE.to_owned()), seed.seed)
                });
                let seeds = seeds.collect::<Vec<_>>().join(", ");
                notes.push(format!("{}: order accuracy {seeds}", row.encoder));
            }
        }
        TableSection::new("Order accuracy", table).with_notes(notes)
    }

    fn difference_table(&self) -> TableSection {
        let header = ["encoder", "compared with", "difference", "p", "p (Holm)", "n"];
        let mut table = Table::new(header).with_text_columns(2);
        for comparison in &self.differences {
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
            table.push_row([encoder.clone(), baseline.clone(), value, p, p_holm, n.to_string()]);
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
            for (j, row) in self.rows.iter().enumerate() {
                let proportion = groups(row).get(i).and_then(|group| group.proportion);
                let name = if j == 0 { majority.name.as_str() } else { "" };
                let cells = proportion_cells(&row.encoder, proportion);
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
        for row in &self.rows {
            let mut cells = vec![row.encoder.clone(), row.fit.image_tokens.to_string()];
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
             process on the host, training and judging"
                .to_owned(),
            "encoder, projector, trained: millions of parameters; trained: the projector and the trained parts of the \
             four members"
                .to_owned(),
        ];
        TableSection::new("Costs", table).with_notes(notes)
    }

    /// Returns one row per statistic.
    pub fn csv_table(&self) -> Table {
        let header = [
            "encoder",
            "compared_with",
            "statistic",
            "group",
            "value",
            "low",
            "high",
            "p",
            "p_holm",
            "n",
            "images",
        ];
        let mut table = Table::new(header).with_text_columns(4);
        for row in &self.rows {
            let encoder = row.encoder.as_str();
            for statistic in &row.statistics {
                let name = statistic.name.trim();
                push_proportion(&mut table, [encoder, name, ""], statistic.proportion);
            }
            push_proportion(
                &mut table,
                [encoder, "order accuracy, blank image", ""],
                row.blank_image,
            );
            push_groups(&mut table, encoder, [&row.by_question_type, &row.by_modality]);
            for seed in &row.by_seed {
                let seed_name = seed.seed.to_string();
                let key = [encoder, "order accuracy, seed", seed_name.as_str()];
                push_proportion(&mut table, key, seed.order_accuracy);
            }
            for (name, value) in cost_values(row) {
                let mut cells = [encoder, "", name, ""].map(str::to_owned).to_vec();
                cells.push(value);
                cells.resize(11, String::new());
                table.push_row(cells);
            }
        }
        let majority = &self.majority_class;
        let name = "majority class";
        push_proportion(&mut table, [name, "order accuracy", ""], majority.order_accuracy);
        push_groups(&mut table, name, [&majority.by_question_type, &majority.by_modality]);
        for comparison in &self.differences {
            push_difference(&mut table, comparison);
        }
        table
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

/// Adds rows with the order accuracy of groups: question types and modalities.
fn push_groups(table: &mut Table, encoder: &str, groups: [&Vec<NamedProportion>; 2]) {
    let names = ["order accuracy by question type", "order accuracy by modality"];
    for (name, groups) in names.into_iter().zip(groups) {
        for group in groups {
            push_proportion(table, [encoder, name, &group.name], group.proportion);
        }
    }
}

/// Adds a row with a proportion. `key`: encoder, statistic and group.
fn push_proportion(table: &mut Table, key: [&str; 3], proportion: Option<Proportion>) {
    let [encoder, statistic, group] = key;
    let mut cells = [encoder, "", statistic, group].map(str::to_owned).to_vec();
    match proportion {
        Some(Proportion { value, interval: [low, high], n, images }) => {
            cells.extend([value, low, high].map(|value| value.to_string()));
            cells.extend([String::new(), String::new(), n.to_string(), images.to_string()]);
        }
        None => cells.extend(["", "", "", "", "", "0", "0"].map(str::to_owned)),
    }
    table.push_row(cells);
}

fn push_difference(table: &mut Table, comparison: &PairedComparison) {
    let PairedComparison { encoder, baseline, n, difference, kind } = comparison;
    let group = match kind {
        ComparedPair::Encoders => "encoders",
        ComparedPair::BlankImage => "blank image",
        ComparedPair::MajorityClass => "majority class",
    };
    let statistic = "difference of order accuracy".to_owned();
    let mut cells = vec![encoder.clone(), baseline.clone(), statistic, group.to_owned()];
    match difference {
        Some(difference) => {
            let ends = difference.interval.map(|ends| ends.map(|end| end.to_string()));
            let [low, high] = ends.unwrap_or_default();
            cells.extend([difference.value.to_string(), low, high]);
            cells.extend([difference.p, difference.p_holm].map(|p| p.to_string()));
        }
        None => cells.extend([""; 5].map(str::to_owned)),
    }
    cells.extend([n.to_string(), String::new()]);
    table.push_row(cells);
}

/// Returns the costs and the coverage of an encoder by name.
fn cost_values(row: &JudgedRow) -> Vec<(&'static str, String)> {
    let mut values = vec![
        ("pairs", row.pairs.to_string()),
        ("scored pairs", row.scored.to_string()),
        ("tokens per image", row.fit.image_tokens.to_string()),
    ];
    values.extend(row.seconds_per_pair.map(|seconds| ("seconds per pair", seconds.to_string())));
    if let Some(cost) = &row.cost {
        values.push(("milliseconds per image", cost.milliseconds_per_image.to_string()));
        values.extend(cost.peak_memory.map(|bytes| ("peak memory, bytes", bytes.to_string())));
        values.push(("parameters of the encoder", cost.encoder_parameters.to_string()));
        values.push(("parameters of the projector", cost.projector_parameters.to_string()));
        values.push(("trained parameters", cost.trained_parameters.to_string()));
        values.extend(cost.training_seconds.map(|s| ("seconds of training", s.to_string())));
    }
    values
}
