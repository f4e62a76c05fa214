//! `questions.csv`: a table with the columns `id`, `image`, `question` and optionally `reference`.
//!
//! Other columns become fields of `meta`. The responses come from answers files.

use std::path::Path;
use std::sync::Arc;

use ::csv::ByteRecord;
use anyhow::{Result, anyhow, bail};
use serde_json::{Map, Value};

use crate::data::cases::case::InputProblem;
use crate::data::cases::draft::{Draft, Drafts, QuestionRow};
use crate::data::cases::formats::csv_rows::CsvSheet;
use crate::data::cases::formats::encoding::UTF8_HINT;
use crate::data::cases::misspelt_fields::check_local_only_spelling;
use crate::data::imports::image_value::{ImageFolders, image_of};

/// Column names and the indices of the known columns.
struct QuestionColumns {
    names: Vec<String>,
    id: usize,
    image: usize,
    question: usize,
    reference: Option<usize>,
    /// The delimiter.
    delimiter: char,
}

/// Reads the cases of a table. Image paths are relative to it.
///
/// # Errors
/// The file cannot be opened, or a column is missing.
pub(crate) fn read_drafts(path: &Path) -> Result<Drafts> {
    let mut sheet = CsvSheet::open(path)?;
    let columns = match find_columns(&sheet, path) {
        Err(_) if sheet.rows.next().is_none() => bail!(
            "{}: no rows below the header {}\nhint: write one row per question",
            path.display(),
            sheet.names.join(", ")
        ),
        columns => columns?,
    };
    let file: Arc<Path> = path.into();
    Ok(Box::new(sheet.rows.map(move |(line, row)| {
        let draft = match row {
            Ok(row) => parse_draft(&row, &columns, &file, line),
            Err(message) => Err((None, message)),
        };
        draft.map_err(|(id, message)| InputProblem::parse_error(&file, line, id, message))
    })))
}

/// Returns the number of rows.
pub(crate) fn count_rows(path: &Path) -> Result<u64> {
    Ok(CsvSheet::open(path)?.rows.count() as u64)
}

fn find_columns(sheet: &CsvSheet, path: &Path) -> Result<QuestionColumns> {
    let names = &sheet.names;
    let find = |column: &str| names.iter().position(|n| n.eq_ignore_ascii_case(column));
    let (Some(id), Some(image), Some(question)) = (find("id"), find("image"), find("question"))
    else {
        let all = ["id", "image", "question"];
        let missing: Vec<_> = all.into_iter().filter(|n| find(n).is_none()).collect();
        bail!(
            "{}: no column {}, found {}\nhint: the first line must contain the columns \
             id,image,question (and optionally reference), with an empty `image` for cases without images; \
             or name the columns with --columns question=COLUMN,answer:MODEL=COLUMN",
            path.display(),
            missing.join(", "),
            names.join(", ")
        );
    };
    for name in names {
        check_local_only_spelling(name)
            .map_err(|message| anyhow!("{}: {message}", path.display()))?;
    }
    Ok(QuestionColumns {
        id,
        image,
        question,
        reference: find("reference"),
        names: names.clone(),
        delimiter: sheet.delimiter,
    })
}

/// Id of the row, if readable, and the error message.
type RowError = (Option<String>, String);

fn parse_draft(
    row: &ByteRecord,
    columns: &QuestionColumns,
    file: &Arc<Path>,
    line: u64,
) -> Result<Draft, RowError> {
    let cell = |index: usize| cell_text(row, index, columns);
    let id = cell(columns.id).map_err(|e| (None, e))?.trim().to_owned();
    if id.is_empty() {
        return Err((None, "the id is empty".into()));
    }
    let with_id = |message: String| (Some(id.clone()), message);
    if row.len() != columns.names.len() {
        let (found, expected) = (row.len(), columns.names.len());
        let message = format!(
            "the row has {found} columns, expected {expected}\n\
             hint: quote texts that contain `{}` or quotes, and double the quotes inside",
            columns.delimiter
        );
        return Err(with_id(message));
    }
    let own = file.parent().unwrap_or(Path::new("")).to_owned();
    let folders = ImageFolders { own, ..ImageFolders::default() };
    let image = Value::from(cell(columns.image).map_err(with_id)?);
    let image = image_of(&image, &id, &folders).map_err(with_id)?;
    let question = cell(columns.question).map_err(with_id)?.to_owned();
    let reference = columns.reference.map(cell).transpose().map_err(with_id)?;
    let reference = reference.filter(|r| !r.trim().is_empty()).map(str::to_owned);
    let mut meta = Map::new();
    for (index, name) in columns.names.iter().enumerate() {
        let known = [Some(columns.id), Some(columns.image), Some(columns.question)];
        if !known.contains(&Some(index)) && columns.reference != Some(index) {
            let value = cell(index).map_err(with_id)?;
            meta.insert(name.clone(), Value::from(value));
        }
    }
    let row = QuestionRow { id, other_keys: Vec::new(), image, question, reference, meta, line };
    Ok(Draft::from_question(row, file))
}

fn cell_text<'r>(
    row: &'r ByteRecord,
    index: usize,
    columns: &QuestionColumns,
) -> Result<&'r str, String> {
    let bytes = row.get(index).unwrap_or_default();
    std::str::from_utf8(bytes).map_err(|_| {
        let name = columns.names.get(index).map_or("", String::as_str);
        format!("column `{name}` is not UTF-8{UTF8_HINT}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::ImageSource;

    fn read(bytes: &[u8]) -> Result<Vec<Result<Draft, InputProblem>>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("questions.csv");
        std::fs::write(&path, bytes)?;
        let drafts: Vec<_> = read_drafts(&path)?.collect();
        assert_eq!(count_rows(&path)?, drafts.len() as u64);
        Ok(drafts)
    }

    #[test]
    fn quotes_newlines_and_other_columns_are_read() {
        let table = "\u{feff}ID, question ,organ,image,reference\r\n\
            1,\"Is it, \"\"here\"\",\nor there?\",lung,images/a.png,here\r\n\r\n,,,,\r\n2,Why?,,,\r\n";
        let drafts = read(table.as_bytes()).unwrap();
        let first = &drafts[0].as_ref().unwrap().case;
        assert_eq!(first.question, "Is it, \"here\",\nor there?");
        assert_eq!((first.id.as_str(), first.line), ("1", 2));
        assert_eq!(first.meta["organ"], "lung");
        assert_eq!(first.meta.len(), 1);
        assert_eq!(first.reference.as_deref(), Some("here"));
        assert!(matches!(&first.image, Some(ImageSource::File(p)) if p.ends_with("images/a.png")));
        let second = &drafts[1].as_ref().unwrap().case;
        assert_eq!((&second.image, &second.reference, second.line), (&None, &None, 6));
    }

    #[test]
    fn missing_column_is_named() {
        let error = read(b"id,picture,question\n1,a.png,q\n").err().unwrap().to_string();
        assert!(error.contains("no column image") && error.contains("hint:"), "{error}");
        assert!(read(b"").is_err());
    }

    #[test]
    fn misspelt_local_only_is_an_error() {
        let read =
            |column: &str| read(format!("id,image,question,{column}\n1,,q,yes\n").as_bytes());
        let error = read("Local-Only").err().unwrap().to_string();
        assert!(error.contains("did you mean `local_only`?"), "{error}");
        let drafts = read("local_only").unwrap();
        assert!(drafts[0].as_ref().unwrap().case.is_local_only());
        assert!(read("locality").is_ok());
    }

    #[test]
    fn most_frequent_delimiter_is_used() {
        let text = "id;image;question;\"left, right, or both\"\n1;;q, r?;l\n2;;q\n";
        let drafts = read(text.as_bytes()).unwrap();
        let first = &drafts[0].as_ref().unwrap().case;
        assert_eq!(first.question, "q, r?");
        assert_eq!(first.meta["left, right, or both"], "l");
        let short = drafts[1].as_ref().err().unwrap();
        assert!(short.message.contains("contain `;`"), "{short}");
    }

    #[test]
    fn wrong_encodings_and_repeated_columns_are_rejected() {
        let utf16: Vec<u8> =
            "\u{feff}id,image,question\n1,,q\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (bytes, expected) in [
            (utf16.as_slice(), "UTF-16"),
            (b"id,image,question\n1,,q\0\n", "bytes of value 0"),
            (b"id,image,question\r1,,q\r", "carriage returns"),
            (b"id,image,question,Question\n1,,q,r\n", "the column `Question` appears twice"),
        ] {
            let error = read(bytes).err().unwrap().to_string();
            assert!(error.contains(expected) && error.contains("hint:"), "{error}");
        }
        assert_eq!(read(b"id,image,question,,\n1,,q,,\n").unwrap().len(), 1);
    }

    #[test]
    fn unclosed_quote_affects_only_its_row() {
        let table = "id,image,question\n1,,\"is\nit?\"\n\n2,,\"open\n3,,Q\n4,,\"open, too\n5,,Q";
        for end in ["", "\n", "\r\n\n"] {
            let drafts = read(format!("{table}{end}").as_bytes()).unwrap();
            let rows: Vec<(u64, Option<&str>)> = drafts
                .iter()
                .map(|draft| match draft {
                    Ok(draft) => (draft.case.line, Some(draft.case.id.as_str())),
                    Err(problem) => {
                        assert!(problem.message.contains("quote"), "{problem}");
                        (problem.line, None)
                    }
                })
                .collect();
            assert_eq!(rows[0], (2, Some("1")), "{rows:?}");
            // The two unclosed quotes close each other, so that the row has a wrong number of
            // columns.
            assert_eq!(rows.last(), Some(&(8, Some("5"))), "{rows:?}");
        }
        let drafts = read(b"id,image,question\n1,,\"open\n2,,Q\n3,,Q\n").unwrap();
        let lines: Vec<_> = drafts
            .iter()
            .map(|draft| draft.as_ref().map_or_else(|p| (p.line, false), |d| (d.case.line, true)))
            .collect();
        assert_eq!(lines, [(2, false), (3, true), (4, true)]);
    }

    #[test]
    fn malformed_row_is_one_problem() {
        let table = b"id;image;question\n1;;q\n2;a.png\n;a.png;q\n4;a.png;\xFF\n5;a.png;q\n";
        let drafts = read(table).unwrap();
        let lines: Vec<_> = drafts
            .iter()
            .filter_map(|d| d.as_ref().err())
            .map(|p| (p.line, p.id.as_deref().map(str::to_owned)))
            .collect();
        assert_eq!(lines, [(3, Some("2".into())), (4, None), (5, Some("4".into()))]);
        assert_eq!(drafts.iter().filter(|d| d.is_ok()).count(), 2);
    }
}
