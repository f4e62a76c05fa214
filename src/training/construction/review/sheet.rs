//! Review sheets that people filled: CSV tables with an answer for each point.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::sample::{FIXED_COLUMNS, KEY, RATER};
use crate::support::files::regular_file;

/// One person's answers about one evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewRow {
    /// The key of the evaluation.
    pub key: String,
    /// The person.
    pub rater: String,
    /// The answer about each point of the sheet; `None` if the cell is empty.
    pub answers: Vec<Option<bool>>,
    /// Place of the row, for messages.
    pub place: String,
}

/// The sheets of all raters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReviewSheets {
    /// What was rated.
    pub points: Vec<String>,
    /// The rows with an answer.
    pub rows: Vec<ReviewRow>,
}

impl ReviewSheets {
    /// Reads sheets. A sheet without names of raters is that of one person, named after the file.
    ///
    /// # Errors
    ///
    /// A file is no sheet, has other points, or an answer is neither yes nor no.
    pub fn read(paths: &[impl AsRef<Path>]) -> Result<Self> {
        let mut sheets = Self::default();
        for path in paths {
            let path = path.as_ref();
            sheets.add(path).with_context(|| path.display().to_string())?;
        }
        if sheets.rows.is_empty() {
            bail!("no row has an answer\nhint: fill the columns {}", sheets.points.join(", "));
        }
        Ok(sheets)
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let text = regular_file::read_to_string(path).context("cannot be read")?;
        // With other line ends, the reader counts differently.
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let first_line = text.lines().next().unwrap_or_default();
        // Spreadsheet programs of many countries write semicolons.
        let delimiter =
            [b',', b';', b'\t'].into_iter().find(|d| first_line.contains(char::from(*d)));
        let mut builder = csv::ReaderBuilder::new();
        builder.delimiter(delimiter.unwrap_or(b','));
        let mut reader = builder.from_reader(text.as_bytes());
        let header: Vec<String> =
            reader.headers()?.iter().map(|name| name.trim().to_owned()).collect();
        let column = |name: &str| header.iter().position(|column| column == name);
        let key = column(KEY).with_context(|| {
            format!(
                "no column `{KEY}`, found {}\n\
                 hint: expected the CSV file that `acem3 data review sample` wrote, separated by commas",
                header.join(", ")
            )
        })?;
        let is_point = |name: &&String| !FIXED_COLUMNS.contains(&name.as_str());
        let points: Vec<String> = header.iter().filter(is_point).cloned().collect();
        if !self.points.is_empty() && self.points != points {
            bail!("rates {}, expected {}", points.join(", "), self.points.join(", "));
        }
        let columns: Vec<usize> = points.iter().filter_map(|name| column(name)).collect();
        self.points = points;
        let rater = column(RATER);
        let file = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        for record in reader.records() {
            let record = record?;
            let place = match record.position() {
                Some(position) => format!("line {}", position.line()),
                None => "a row".to_owned(),
            };
            let cell = |index: usize| record.get(index).unwrap_or_default().trim();
            let answers = columns.iter().map(|index| {
                parse_answer(cell(*index)).with_context(|| {
                    format!("{place}, {}", header.get(*index).map_or("", String::as_str))
                })
            });
            let answers: Vec<Option<bool>> = answers.collect::<Result<_>>()?;
            if answers.iter().all(Option::is_none) {
                continue;
            }
            let named = rater.map(cell).filter(|name| !name.is_empty()).map(str::to_owned);
            self.rows.push(ReviewRow {
                key: cell(key).trim_start_matches('\'').to_owned(),
                rater: named.or_else(|| file.clone()).unwrap_or_default(),
                answers,
                place: format!("{} {place}", path.display()),
            });
        }
        Ok(())
    }
}

/// Reads an answer; `None` for an empty cell.
fn parse_answer(text: &str) -> Result<Option<bool>> {
    Ok(match text.to_lowercase().as_str() {
        "" => None,
        "1" | "yes" | "y" | "true" | "ok" | "x" => Some(true),
        "0" | "no" | "n" | "false" => Some(false),
        _ => bail!("the answer is `{text}`, expected yes or no\nhint: leave it empty if unrated"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sheets_of_several_raters_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let first = write("anna.csv", "key,knowledge,fluency,rater\na,yes,NO,\nb,,,\nc,1,,Ben\n");
        let sheets = ReviewSheets::read(&[&first]).unwrap();
        assert_eq!(sheets.points, ["knowledge", "fluency"]);
        let found: Vec<_> = sheets.rows.iter().map(|row| (&*row.key, &*row.rater)).collect();
        assert_eq!(found, [("a", "anna"), ("c", "Ben")]);
        assert_eq!(sheets.rows[0].answers, [Some(true), Some(false)]);
        let other = write("other.csv", "key,fluency\na,yes\n");
        let error = format!("{:#}", ReviewSheets::read(&[&first, &other]).unwrap_err());
        assert!(error.contains("expected knowledge, fluency"), "{error}");
        let wrong = write("wrong.csv", "key,fluency\na,maybe\n");
        let error = format!("{:#}", ReviewSheets::read(&[&wrong]).unwrap_err());
        assert!(error.contains("wrong.csv: line 2, fluency: the answer is `maybe`"), "{error}");
        let excel = write("excel.csv", "\u{feff}key;fluency\r\na;yes\r\nb;maybe\r\n");
        let error = format!("{:#}", ReviewSheets::read(&[&excel]).unwrap_err());
        assert!(error.contains("excel.csv: line 3, fluency: the answer is `maybe`"), "{error}");
        let empty = write("empty.csv", "key,fluency\na,\n");
        assert!(ReviewSheets::read(&[&empty]).is_err());
        let foreign = write("foreign.csv", "a;b\n1;2\n");
        let error = format!("{:#}", ReviewSheets::read(&[&foreign]).unwrap_err());
        assert!(error.contains("no column `key`"), "{error}");
    }
}
