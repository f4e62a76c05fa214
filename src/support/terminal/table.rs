//! A table of texts, written for a terminal, as Markdown or as CSV.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use crate::support::files::csv_formula;
use crate::support::text::{markdown, printable};

/// Rows below a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What stands above the columns.
    pub head: Vec<String>,
    /// The rows; each has as many cells as the header.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self {
            head: head.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        std::iter::once(&self.head).chain(&self.rows)
    }

    /// Aligned columns: the first to the left, the others, which are numbers, to the right. A long cell
    /// loses its middle.
    pub fn text(&self) -> String {
        let shown: Vec<Vec<String>> = self
            .lines()
            .map(|row| row.iter().map(|cell| brief(&printable(cell))).collect())
            .collect();
        let width = |column: usize| {
            let cells = shown.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut text = String::new();
        for row in &shown {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let _ = match column {
                    0 => write!(line, "{cell:<width$}"),
                    _ => write!(line, "  {cell:>width$}"),
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// A table of GitHub's Markdown.
    pub fn markdown(&self) -> String {
        let row = |cells: &[String]| {
            let cells = cells.iter().map(|cell| markdown(cell).replace('|', "\\|"));
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let rule: Vec<String> = (0..self.head.len())
            .map(|column| if column == 0 { "---" } else { "---:" }.to_owned())
            .collect();
        let mut text = row(&self.head) + &row(&rule);
        text.extend(self.rows.iter().map(|cells| row(cells)));
        text
    }

    /// Comma-separated values with a header; a text that a spreadsheet could run has an apostrophe before it.
    pub fn csv(&self) -> Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in self.lines() {
            let cells = row.iter().map(|cell| csv_formula::guarded(cell));
            let cells: Vec<_> = cells.collect();
            let bytes = cells.iter().map(|cell| cell.as_bytes());
            writer.write_record(bytes).context("cannot write a table")?;
        }
        let bytes = writer.into_inner().context("cannot write a table")?;
        String::from_utf8(bytes).context("cannot write a table")
    }
}

/// The longest cell of a table on a terminal, in characters.
const LONGEST: usize = 96;

/// A cell that fits: beginning and end of a longer one, which tell one name from another.
fn brief(cell: &str) -> String {
    let n = cell.chars().count();
    if n <= LONGEST {
        return cell.to_owned();
    }
    let half = LONGEST / 2;
    let begin = cell.chars().take(half - 1);
    begin
        .chain(['…'])
        .chain(cell.chars().skip(n - half))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms_of_one_table() {
        let mut grid = Table::new(["model", "score"]);
        grid.row(["a|b", "1"]);
        grid.row(["c, \u{1b}d", "12.5"]);
        assert_eq!(
            grid.text(),
            "model       score\na|b             1\nc, \\u{1b}d   12.5\n"
        );
        let markdown = "| model | score |\n| --- | ---: |\n| a\\|b | 1 |\n| c, \\u{1b}d | 12.5 |\n";
        assert_eq!(grid.markdown(), markdown);
        let mut long = Table::new(["model"]);
        long.row([format!("{}b", "a".repeat(300))]);
        let text = long.text();
        let cell = text.lines().nth(1).unwrap();
        assert_eq!(cell.chars().count(), LONGEST);
        assert!(cell.starts_with("aaa") && cell.ends_with("ab"), "{cell}");
        grid.row(["=1+1", "-2"]);
        assert!(
            grid.csv()
                .unwrap()
                .ends_with("a|b,1\n\"c, \u{1b}d\",12.5\n'=1+1,-2\n")
        );
    }
}
