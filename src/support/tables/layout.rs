//! Layout of a table on a terminal: column widths, wrapped cells and groups of columns.

use unicode_width::UnicodeWidthStr as _;

use super::wrap::{longest_word, protect_spaces, wrap};
use crate::support::text::cut::cut_cell;
use crate::support::text::escape_control_chars;

/// Number of spaces between columns.
const GAP: usize = 2;

/// Minimum width of a text column, if its cells are wider.
const MIN_TEXT: usize = 24;

/// Values up to this width are not wrapped, except before an interval.
const MAX_VALUE: usize = 16;

/// Indentation of the second and later lines of a text.
const HANGING: usize = 2;

/// Cells of a table, the header first, prepared for line breaking.
struct Cells {
    rows: Vec<Vec<String>>,
    columns: Vec<Column>,
}

/// The space that a column needs, in terminal columns.
#[derive(Clone, Copy, Debug)]
struct Column {
    is_text: bool,
    natural: usize,
    minimum: usize,
}

/// Aligns the columns of a table. The first row is the header, and the first `text_columns` columns
/// are text.
///
/// Lines are at most `width` columns wide. Wide cells and headers are wrapped. If that is not
/// enough, the columns are split into groups that follow each other, each with the first column.
pub(super) fn lay_out(rows: &[&[String]], text_columns: usize, width: usize) -> String {
    let cells = Cells::new(rows, text_columns);
    let mut text = String::new();
    for group in cells.balanced_groups(width) {
        if !text.is_empty() {
            text.push('\n');
        }
        let widths = cells.widths(&group, width);
        for (i, row) in cells.rows.iter().enumerate() {
            let is_header = i == 0;
            text.push_str(&cells.render_row(row, &group, &widths, is_header));
        }
    }
    text
}

impl Cells {
    fn new(rows: &[&[String]], text_columns: usize) -> Self {
        let prepare = |row: &&[String]| {
            row.iter().map(|cell| protect_spaces(&escape_control_chars(&cut_cell(cell)))).collect()
        };
        let rows: Vec<Vec<String>> = rows.iter().map(prepare).collect();
        let count = rows.first().map_or(0, Vec::len);
        let column = |i: usize| {
            let cells: Vec<&String> = rows.iter().filter_map(|row| row.get(i)).collect();
            Column::new(&cells, i < text_columns)
        };
        let columns = (0..count).map(column).collect();
        Self { rows, columns }
    }

    /// Splits the columns into as few groups as possible, of similar widths.
    fn balanced_groups(&self, width: usize) -> Vec<Vec<usize>> {
        let mut groups = self.groups(width);
        for narrower in (1..width).rev() {
            let narrower_groups = self.groups(narrower);
            if narrower_groups.len() > groups.len() || groups.len() == 1 {
                break;
            }
            groups = narrower_groups;
        }
        groups
    }

    /// Splits the columns into groups that fit side by side at their minimum widths.
    fn groups(&self, width: usize) -> Vec<Vec<usize>> {
        let minimum = |i: usize| self.columns.get(i).map_or(0, |column| column.minimum);
        let mut groups = Vec::new();
        let mut group = vec![0];
        let mut used = minimum(0);
        for i in 1..self.columns.len() {
            let needed = GAP + minimum(i);
            if used + needed > width && group.len() > 1 {
                groups.push(std::mem::replace(&mut group, vec![0]));
                used = minimum(0);
            }
            group.push(i);
            used += needed;
        }
        groups.push(group);
        groups
    }

    /// Returns the widths of the columns of a group: the natural ones, reduced until they fit.
    ///
    /// A column of values is reduced to its minimum in one step, so that all its intervals break at
    /// the same position.
    fn widths(&self, group: &[usize], width: usize) -> Vec<usize> {
        let columns: Vec<Column> =
            group.iter().filter_map(|i| self.columns.get(*i).copied()).collect();
        let width = width.saturating_sub(GAP * columns.len().saturating_sub(1));
        let mut widths: Vec<usize> = columns.iter().map(|column| column.natural).collect();
        while widths.iter().sum::<usize>() > width {
            let slack = |(width, column): (&usize, &Column)| width.saturating_sub(column.minimum);
            let slacks = widths.iter().zip(&columns).map(slack);
            let widest = slacks.zip(&widths).enumerate().max_by_key(|(_, key)| *key);
            let Some((i, (slack, _))) = widest else { break };
            widths[i] = match slack {
                0 if widths[i] <= 1 => break,
                0 => widths[i] - 1,
                _ if columns[i].is_text => widths[i] - 1,
                _ => columns[i].minimum,
            };
        }
        let mut unused = width.saturating_sub(widths.iter().sum());
        for (width, column) in widths.iter_mut().zip(&columns) {
            let more = column.natural.saturating_sub(*width).min(unused);
            if column.is_text {
                *width += more;
                unused -= more;
            }
        }
        widths
    }

    /// Returns the lines of a row. Headers are aligned at their last line, other cells at their
    /// first.
    fn render_row(
        &self,
        row: &[String],
        group: &[usize],
        widths: &[usize],
        is_header: bool,
    ) -> String {
        let mut text = String::new();
        let cells: Vec<(Vec<String>, Column, usize)> = group
            .iter()
            .zip(widths)
            .filter_map(|(i, width)| {
                let column = *self.columns.get(*i)?;
                let hanging = if column.is_text && !is_header { HANGING } else { 0 };
                Some((wrap(row.get(*i)?, *width, hanging), column, *width))
            })
            .collect();
        let height = cells.iter().map(|(lines, ..)| lines.len()).max();
        let height = height.unwrap_or(0);
        for i in 0..height {
            let mut line = String::new();
            for (lines, column, width) in &cells {
                let skipped = if is_header { height - lines.len() } else { 0 };
                let cell = i.checked_sub(skipped).and_then(|i| lines.get(i));
                let cell = cell.map_or("", String::as_str);
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                if !line.is_empty() {
                    line.push_str(&" ".repeat(GAP));
                }
                if column.is_text {
                    line.extend([cell, &padding]);
                } else {
                    line.extend([&padding, cell]);
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

impl Column {
    /// Measures the cells of a column, the header first.
    fn new(cells: &[&String], is_text: bool) -> Self {
        let natural = cells.iter().map(|cell| cell.width()).max().unwrap_or(0);
        let minimum = if is_text {
            let word = cells.iter().map(|cell| longest_word(cell)).max();
            word.unwrap_or(0).clamp(MAX_VALUE, MIN_TEXT).min(natural)
        } else {
            let needed = |cell: &&String| match cell.width() {
                width if width <= MAX_VALUE && !cell.contains(" [") => width,
                _ => longest_word(cell),
            };
            let header = cells.first().map_or(0, |cell| longest_word(cell));
            let values = cells.iter().skip(1).map(needed).max().unwrap_or(0);
            values.min(MIN_TEXT).max(header.min(MAX_VALUE))
        };
        Self { is_text, natural, minimum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lay_out_cells(rows: &[&[&str]], width: usize) -> String {
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|&cell| cell.to_owned()).collect()).collect();
        let rows: Vec<&[String]> = rows.iter().map(Vec::as_slice).collect();
        lay_out(&rows, 1, width)
    }

    const INTERVALS: [&[&str]; 3] = [
        &["statistic", "judge [95 % CI]", "n", "raters [95 % CI]"],
        &["Krippendorff's alpha", "0.52 [0.40, 0.61]", "120", "0.70 [0.61, 0.78]"],
        &["  ordinal", "undefined", "0", "-"],
    ];

    #[test]
    fn wide_terminals_have_one_line_per_row() {
        let expected = "\
statistic               judge [95 % CI]    n   raters [95 % CI]
Krippendorff's alpha  0.52 [0.40, 0.61]  120  0.70 [0.61, 0.78]
  ordinal                     undefined    0                  -
";
        assert_eq!(lay_out_cells(&INTERVALS, 80), expected);
    }

    #[test]
    fn narrow_terminals_wrap_cells() {
        let expected = [
            "                             judge             raters",
            "statistic                [95 % CI]    n     [95 % CI]",
            "Krippendorff's alpha          0.52  120          0.70",
            "                      [0.40, 0.61]       [0.61, 0.78]",
            "  ordinal                undefined    0             -",
        ];
        let text = lay_out_cells(&INTERVALS, 56);
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn columns_that_do_not_fit_follow_in_groups() {
        let text = lay_out_cells(&INTERVALS, 40);
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
        assert_eq!(text.matches("statistic").count(), 2, "{text}");
        let words = ["Krippendorff's", "[0.61, 0.78]", "undefined", "120", "-"];
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }

    #[test]
    fn long_names_keep_the_alignment() {
        let name = "organisation/a-model-with-a-very-long-name-v1.6-mistral-7b-finetuned";
        let text = lay_out_cells(&[&["model", "score"], &[name, "4.25"], &["b", "3.00"]], 40);
        let lines: Vec<&str> = text.lines().collect();
        let score = lines[0].find("score").unwrap() + "score".len();
        assert!(lines.iter().all(|line| line.width() <= score), "{text}");
        assert!(lines[1].ends_with("  4.25"), "{text}");
        let joined: String = lines[1..].iter().map(|line| line.trim()).collect();
        let joined = joined.replace("4.25", "").replace(' ', "");
        assert!(joined.starts_with(name), "{text}");
    }

    #[test]
    fn wide_characters_are_aligned() {
        let text = lay_out_cells(&[&["model", "n"], &["肝脏", "1"], &["b", "23"]], 40);
        assert_eq!(text, "model   n\n肝脏    1\nb      23\n");
    }
}
