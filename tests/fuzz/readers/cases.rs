//! Cases, answers and labels.

use std::path::Path;

use acem3::data::cases::{self, Lang, SourceOptions};
use acem3::data::labels::{self, LabelOptions};
use acem3::judging::run::record::{AffectedResponses, Record, RecordOutcome, RecordSubject};
use acem3::support::digest::Digest;
use acem3_experts::prompt::Form;

use super::bundle::Bundle;

/// Questions for the answers files.
const QUESTIONS: &[u8] = b"id,image,question\n1,,what?\n2,a.png,where?\n3,,why?\n";

/// Reads a JSONL file of cases.
pub fn read_lines(bytes: &[u8]) -> bool {
    Bundle::of_file("cases.jsonl", bytes).read("cases.jsonl", |path| read_cases(path, &[]))
}

/// Reads a table of questions, separated by commas or tabs.
pub fn read_table(bytes: &[u8]) -> bool {
    let bundle = Bundle::of_file("a.csv", bytes).with_file("b.tsv", bytes);
    let names = ["a.csv", "b.tsv"];
    names.map(|name| bundle.read(name, |path| read_cases(path, &[]))).contains(&true)
}

/// Reads SLAKE or VQA-RAD: one JSON array.
pub fn read_array(bytes: &[u8]) -> bool {
    Bundle::of_file("a.json", bytes).read("a.json", |path| read_cases(path, &[]))
}

/// Reads a Parquet file of questions with images.
pub fn read_parquet(bytes: &[u8]) -> bool {
    Bundle::of_file("a.parquet", bytes).read("a.parquet", |path| read_cases(path, &[]))
}

/// Reads a file of another program: lines, an array, or a table of text.
pub fn read_import_rows(bytes: &[u8]) -> bool {
    let names = ["a.jsonl", "b.json", "c.tsv"];
    let bundle = Bundle::of_file(names[0], bytes).with_file(names[1], bytes);
    let bundle = bundle.with_file(names[2], bytes);
    names.map(|name| bundle.read(name, |path| read_cases(path, &[]))).contains(&true)
}

/// Reads a workbook or a Parquet file with answers.
pub fn read_import_table(bytes: &[u8]) -> bool {
    let names = ["a.xlsx", "b.parquet"];
    let bundle = Bundle::of_file(names[0], bytes).with_file(names[1], bytes);
    names.map(|name| bundle.read(name, |path| read_cases(path, &[]))).contains(&true)
}

/// Reads two answers files.
pub fn read_answers(bytes: &[u8]) -> bool {
    let bundle = Bundle::of_parts(&["a.jsonl", "b.jsonl"], bytes);
    let answers: Vec<&Path> = vec![bundle.folder()];
    let bundle_of_questions = Bundle::of_file("questions.csv", QUESTIONS);
    bundle_of_questions.read("questions.csv", |path| read_cases(path, &answers))
}

/// Reads all cases of a file, and writes each and each problem as a record. Returns true if a case
/// could be read.
fn read_cases(path: &Path, answers: &[&Path]) -> bool {
    let options = SourceOptions {
        answers: answers.iter().map(|path| path.to_path_buf()).collect(),
        lang: Lang::All,
        with_reference: true,
        min_responses: 0,
        ..SourceOptions::default()
    };
    let Ok(mut source) = cases::open(path, &options) else {
        return false;
    };
    let judge = Digest::sha256(b"judge");
    let mut is_any_readable = !source.take_field_notes().is_empty();
    for case in source.by_ref() {
        match case {
            Ok(case) => {
                is_any_readable = true;
                RecordSubject::for_case(&case, Form::Pair, &judge);
                if case.responses.len() > 1 {
                    RecordSubject::for_responses(&case, Form::Pair, &[0, 1], &judge);
                }
            }
            Err(problem) => {
                problem.scope.affected_pairs();
                problem.scope.unlisted_pairs();
                let affected = AffectedResponses::Case;
                let file = "cases".to_owned();
                let subject = RecordSubject::from_problem(&problem, affected, file, &judge);
                let outcome = RecordOutcome::from_problem(&problem);
                Record::new(subject, outcome).to_line().unwrap();
            }
        }
    }
    source.unmatched_answers();
    source.answers_beyond_last_row();
    is_any_readable
}

/// Reads a table or JSONL file of labels.
pub fn read_labels(bytes: &[u8]) -> bool {
    let bundle = Bundle::of_file("a.csv", bytes).with_file("b.jsonl", bytes);
    let plain = LabelOptions::default();
    let scaled = LabelOptions {
        rater_columns: vec!["anna".to_owned(), "bert".to_owned()],
        scale: Some([1.0, 10.0]),
    };
    let read = |name, options| match bundle.read(name, |path| labels::read(path, options)) {
        Ok(labels) => {
            labels.out_of_range_note();
            true
        }
        Err(_) => false,
    };
    let files = [("a.csv", &plain), ("a.csv", &scaled), ("b.jsonl", &plain)];
    files.map(|(name, options)| read(name, options)).contains(&true)
}
