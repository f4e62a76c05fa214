//! Cases from Parquet files of the Hugging Face Hub: Path-VQA and VQA-RAD with embedded images.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use serde_json::Map;

use crate::data::cases::case::{ImageSource, InputProblem};
use crate::data::cases::draft::{Draft, Drafts, QuestionRow};
use crate::data::cases::formats::parquet::{VqaRow, VqaRows};
use crate::data::cases::layout::file_stem;

/// Reads the cases of the shards of a split, in order.
///
/// Answers files use the row number, from 0, as `question_id`. Row numbers continue from one shard
/// to the next.
pub(crate) fn read_drafts(shards: &[PathBuf]) -> Result<Drafts> {
    let mut first_row = 0;
    let mut opened = Vec::new();
    for path in shards {
        let rows = VqaRows::open(path)?;
        let total = rows.row_count();
        opened.push((first_row, rows, ParquetShard::new(path)));
        first_row += total;
    }
    Ok(Box::new(opened.into_iter().flat_map(|(first_row, rows, shard)| {
        rows.map(move |(index, row)| shard.parse_draft(first_row + index, row))
    })))
}

/// Returns the number of rows of all shards.
pub(crate) fn count_rows(shards: &[PathBuf]) -> Result<u64> {
    shards.iter().map(|path| Ok(VqaRows::open(path)?.row_count())).sum()
}

struct ParquetShard {
    file: Arc<Path>,
    stem: String,
    dataset: String,
}

impl ParquetShard {
    fn new(path: &Path) -> Self {
        Self { file: path.into(), stem: file_stem(path), dataset: dataset_name(path) }
    }

    fn parse_draft(&self, index: u64, row: Result<VqaRow, String>) -> Result<Draft, InputProblem> {
        let id = format!("{}-{index}", self.stem);
        let problem =
            |message| InputProblem::parse_error(&self.file, index + 1, Some(id.clone()), message);
        let row = row.map_err(problem)?;
        let name = row.path.unwrap_or_else(|| id.clone());
        let image = row.image.map(|bytes| ImageSource::Bytes { name: name.clone(), bytes });
        let image = image.ok_or_else(|| problem("the image is null or empty".into()))?;
        let mut meta = Map::new();
        meta.insert("dataset".into(), self.dataset.as_str().into());
        if let Some(answer) = &row.answer {
            let kind = if is_yes_no(answer) { "closed" } else { "open" };
            meta.insert("answer_type".into(), kind.into());
        }
        meta.insert("image".into(), name.into());
        let row = QuestionRow {
            id,
            other_keys: vec![index.to_string()],
            image: Some(image),
            question: row.question,
            reference: row.answer.map(|a| a.trim().to_owned()),
            meta,
            line: index + 1,
        };
        Ok(Draft::from_question(row, &self.file))
    }
}

/// Returns true if an answer is yes or no.
fn is_yes_no(answer: &str) -> bool {
    let word = answer.trim().trim_end_matches('.');
    word.eq_ignore_ascii_case("yes") || word.eq_ignore_ascii_case("no")
}

/// Returns the name of the data set: `path_vqa` or `vqa_rad` if a folder has that name, otherwise
/// the folder of the shards.
fn dataset_name(path: &Path) -> String {
    let full = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let names: Vec<String> =
        full.iter().rev().map(|part| part.to_string_lossy().to_lowercase()).collect();
    for name in &names {
        let alphanumeric: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        if alphanumeric.contains("pathvqa") {
            return "path_vqa".into();
        }
        if alphanumeric.contains("vqarad") {
            return "vqa_rad".into();
        }
    }
    let folder = names.iter().skip(1).find(|name| *name != "data");
    folder.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::formats::parquet::tests::{ParquetCells, write_parquet};

    #[test]
    fn row_numbers_continue_across_shards() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("Path-VQA").join("data");
        std::fs::create_dir_all(&folder).unwrap();
        let complete: ParquetCells =
            [Some(b"jpeg"), Some(b"a.jpg"), Some(b"is it?"), Some(b"Yes.")];
        let without_name: ParquetCells = [Some(b"jpeg"), None, Some(b"what?"), Some(b" liver ")];
        let without_image: ParquetCells = [None, None, Some(b"what?"), None];
        let shards = [folder.join("test-0.parquet"), folder.join("test-1.parquet")];
        write_parquet(&shards[0], &[&[complete, without_name]]);
        write_parquet(&shards[1], &[&[without_name, without_image]]);
        assert_eq!(count_rows(&shards).unwrap(), 4);
        let found: Vec<_> = read_drafts(&shards).unwrap().collect();
        let first = found[0].as_ref().unwrap();
        assert_eq!(first.case.meta["dataset"], "path_vqa");
        assert_eq!(first.case.meta["answer_type"], "closed");
        assert_eq!(first.case.meta["image"], "a.jpg");
        let third = found[2].as_ref().unwrap();
        assert_eq!(third.keys, ["2", "test-1-2"]);
        assert_eq!((third.case.id.as_str(), third.case.line), ("test-1-2", 3));
        assert_eq!(third.case.reference.as_deref(), Some("liver"));
        assert_eq!(third.case.meta["answer_type"], "open");
        let problem = found[3].as_ref().err().unwrap();
        assert_eq!((problem.line, problem.id.as_deref()), (4, Some("test-1-3")));
    }

    #[test]
    fn data_set_name_comes_from_folders() {
        assert_eq!(dataset_name(Path::new("/x/vqa_rad/data/train.parquet")), "vqa_rad");
        assert_eq!(dataset_name(Path::new("/x/path-vqa/train/0000.parquet")), "path_vqa");
        assert_eq!(dataset_name(Path::new("/x/Mine/data/train.parquet")), "mine");
    }
}
