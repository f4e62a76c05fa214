//! A table of text cells.

use anyhow::{Context as _, Result};

use super::layout::lay_out;
use super::style::TableStyle;
use crate::support::files::csv_formula;
use crate::support::text::cut::cut_cell;
use crate::support::text::markdown::escape_markdown_cell;

/// Header and rows of text cells, rendered in several formats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub header: Vec<String>,
    /// The rows; each has as many cells as the header.
    pub rows: Vec<Vec<String>>,
    /// Number of left-aligned text columns. The other columns are right-aligned values.
    text_columns: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self::new(Vec::<String>::new())
    }
}

impl Table {
    /// Creates a table without rows. The first column is text, the others are values.
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Self {
        Self {
            header: header.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            text_columns: 1,
        }
    }

    /// Sets the number of text columns.
    #[must_use]
    pub fn with_text_columns(mut self, text_columns: usize) -> Self {
        self.text_columns = text_columns;
        self
    }

    /// Adds a row.
    pub fn push_row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Renders the table for a terminal or as Markdown.
    pub fn render(&self, style: TableStyle) -> String {
        match style {
            TableStyle::Terminal { width } => {
                let rows: Vec<&[String]> = self.all_rows().map(Vec::as_slice).collect();
                lay_out(&rows, self.text_columns, width)
            }
            TableStyle::Markdown => self.to_markdown(),
        }
    }

    /// Returns comma-separated values with a header. Adds an apostrophe before cells that a
    /// spreadsheet could run as a formula.
    pub fn to_csv(&self) -> Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in self.all_rows() {
            let cells = row.iter().map(|cell| csv_formula::escape_formula(cell));
            let cells: Vec<_> = cells.collect();
            let bytes = cells.iter().map(|cell| cell.as_bytes());
            writer.write_record(bytes).context("cannot write a table")?;
        }
        let bytes = writer.into_inner().context("cannot write a table")?;
        String::from_utf8(bytes).context("cannot write a table")
    }

    fn all_rows(&self) -> impl Iterator<Item = &Vec<String>> {
        std::iter::once(&self.header).chain(&self.rows)
    }

    fn to_markdown(&self) -> String {
        let row = |cells: &[String]| {
            let cells = cells.iter().map(|cell| markdown_cell(cell));
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let is_text = |column: usize| column < self.text_columns;
        let rule: Vec<String> = (0..self.header.len())
            .map(|column| if is_text(column) { "---" } else { "---:" }.to_owned())
            .collect();
        let mut text = row(&self.header) + &row(&rule);
        text.extend(self.rows.iter().map(|cells| row(cells)));
        text
    }
}

/// Escapes a cell for Markdown and keeps its indent, which Markdown would remove.
fn markdown_cell(cell: &str) -> String {
    let text = cell.trim_start_matches(' ');
    let indent = "&nbsp;".repeat(cell.len() - text.len());
    indent + &escape_markdown_cell(&cut_cell(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_the_same_cells() {
        let mut table = Table::new(["model", "score"]);
        table.push_row(["a|b", "1"]);
        table.push_row(["c, \u{1b}d", "12.5"]);
        let terminal = TableStyle::Terminal { width: 80 };
        assert_eq!(
            table.render(terminal),
            "model       score\na|b             1\nc, \\u{1b}d   12.5\n"
        );
        let markdown = "| model | score |\n| --- | ---: |\n| a\\|b | 1 |\n| c, \\u{1b}d | 12.5 |\n";
        assert_eq!(table.render(TableStyle::Markdown), markdown);
        table.push_row(["=1+1", "-2"]);
        assert!(table.to_csv().unwrap().ends_with("a|b,1\n\"c, \u{1b}d\",12.5\n'=1+1,-2\n"));
    }

    #[test]
    fn indented_labels_stay_indented_in_markdown() {
        let mut table = Table::new(["kappa", "n"]);
        table.push_row(["  linear", "3"]);
        let markdown = "| kappa | n |\n| --- | ---: |\n| &nbsp;&nbsp;linear | 3 |\n";
        assert_eq!(table.render(TableStyle::Markdown), markdown);
    }

    #[test]
    fn text_columns_are_left_aligned() {
        let mut table = Table::new(["case", "reason", "n"]).with_text_columns(2);
        table.push_row(["1", "parse", "12"]);
        let terminal = TableStyle::Terminal { width: 80 };
        assert_eq!(table.render(terminal), "case  reason   n\n1     parse   12\n");
        let markdown = "| case | reason | n |\n| --- | --- | ---: |\n| 1 | parse | 12 |\n";
        assert_eq!(table.render(TableStyle::Markdown), markdown);
    }
}
