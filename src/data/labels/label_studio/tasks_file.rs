//! Reads a JSON export of Label Studio: an array of tasks with annotations.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::path::Path;

use anyhow::{Result, bail};
use serde_json::Value;

use super::annotation_results::{read_rater, read_ratings};
use super::rating_collector::{RatingCollector, RatingSource};
use super::studio_task::StudioTask;
use crate::data::cases::Elements;
use crate::data::labels::label_file::{LabelFile, LabelOptions, line_error};

/// Number of bytes that show whether a file is an array of objects.
const START_BYTES: u64 = 4096;

/// Returns true if a file starts as an array of objects, which no other format of labels does. The file
/// is then at its start again.
///
/// # Errors
/// If the file cannot be read.
pub(in crate::data::labels) fn starts_as_array(file: &mut File) -> std::io::Result<bool> {
    let mut start = Vec::new();
    file.by_ref().take(START_BYTES).read_to_end(&mut start)?;
    file.rewind()?;
    let start = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&start);
    let mut bytes = start.iter().filter(|byte| !byte.is_ascii_whitespace());
    Ok(bytes.next() == Some(&b'[') && matches!(bytes.next(), Some(b'{' | b']')))
}

/// Reads the tasks of a file.
///
/// # Errors
/// If an element is not a task, or a rating cannot be matched. The message names the line, the task and
/// the control. Nothing is skipped silently.
pub(in crate::data::labels) fn read(
    path: &Path,
    opened: File,
    options: &LabelOptions,
) -> Result<LabelFile> {
    if !options.rater_columns.is_empty() {
        bail!(
            "{}: an export of Label Studio has no columns\nhint: omit --rater-columns; each annotation names its rater",
            path.display()
        );
    }
    let mut reader = TaskReader::default();
    for (line, bytes) in Elements::new(BufReader::new(opened)) {
        let malformed = |error: String| {
            let hint = "hint: export the project again, as JSON";
            line_error(path, line, &format!("malformed JSON: {error}\n{hint}"))
        };
        let bytes = bytes.map_err(malformed)?;
        let element: Value =
            serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        reader.add(line, &element).map_err(|error| line_error(path, line, &error))?;
    }
    reader.file.entries = reader.collector.into_entries();
    Ok(reader.file)
}

/// What was read so far.
#[derive(Default)]
struct TaskReader {
    collector: RatingCollector,
    file: LabelFile,
}

impl TaskReader {
    fn add(&mut self, line: u64, element: &Value) -> Result<(), String> {
        let task = StudioTask::new(element)?;
        let name = task.name();
        self.add_task(line, &task, &name).map_err(|error| format!("{name}, {error}"))
    }

    fn add_task(&mut self, line: u64, task: &StudioTask, name: &str) -> Result<(), String> {
        let annotations = task.annotations()?;
        if annotations.is_empty() {
            return Ok(());
        }
        let rated = task.rated_case()?;
        for annotation in annotations {
            let rater = read_rater(annotation)?;
            let unused = &mut self.file.unused_controls;
            let ratings = read_ratings(annotation, &rated.models, unused)?;
            let source = RatingSource { line, task: name, rated: &rated, rater: &rater };
            for rating in ratings {
                self.collector.add(&source, rating)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::data::labels::entry::LabelValue;
    use crate::data::labels::read as read_labels;
    use crate::data::labels::vote::Vote;

    fn read_text(text: &str) -> Result<LabelFile> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("export.json");
        std::fs::write(&path, text).unwrap();
        read_labels(&path, &LabelOptions::default())
    }

    /// Returns a task about the models m and n with these annotations.
    fn task(id: u64, annotations: &Value) -> Value {
        let meta = json!({"case": format!("c{id}"), "models": ["m", "n"]});
        json!({"id": id, "data": {}, "meta": meta, "annotations": annotations})
    }

    fn result(name: &str, to_name: &str, kind: &str, value: &Value) -> Value {
        json!({"id": name, "from_name": name, "to_name": to_name, "type": kind, "value": value})
    }

    /// Reads a file with one annotation of one result.
    fn read_result(name: &str, to_name: &str, kind: &str, value: &Value) -> Result<LabelFile> {
        let results = [result(name, to_name, kind, value)];
        let annotation = json!({"completed_by": 7, "result": results});
        read_text(&json!([task(1, &json!([annotation]))]).to_string())
    }

    fn only_entry(file: LabelFile) -> (String, LabelValue) {
        let [entry] = file.entries.try_into().unwrap();
        (entry.rater, entry.value)
    }

    #[test]
    fn scores_of_every_control_are_read() {
        let score = |model: &str, value| LabelValue::Score { model: model.into(), value };
        for (name, to_name, kind, value, expected) in [
            ("final-b", "response_b", "choices", json!({"choices": ["0"]}), score("n", 0.0)),
            ("final", "Answer 2", "number", json!({"number": 3.5}), score("n", 3.5)),
            ("FA_1", "text", "number", json!({"number": "4,5"}), score("m", 4.5)),
            ("rating", "response_a", "rating", json!({"rating": 5}), score("m", 5.0)),
        ] {
            let file = read_result(name, to_name, kind, &value).unwrap();
            assert_eq!(only_entry(file), ("7".to_owned(), expected), "{name}");
        }
    }

    #[test]
    fn preferences_of_every_control_are_read() {
        use std::cmp::Ordering::{Equal, Greater, Less};
        for (name, kind, value, expected) in [
            ("pairwise", "pairwise", json!({"selected": "right"}), Less),
            ("factual_accuracy", "pairwise", json!({"selected": "left"}), Greater),
            ("preference", "choices", json!({"choices": ["Equal"]}), Equal),
            ("better", "choices", json!({"choices": ["n"]}), Less),
        ] {
            let (_, found) = only_entry(read_result(name, name, kind, &value).unwrap());
            let models = Some(["m".to_owned(), "n".to_owned()]);
            let vote = Vote::Order(expected);
            assert_eq!(found, LabelValue::Preference { models, vote }, "{name}");
        }
    }

    #[test]
    fn only_finished_annotations_count() {
        let score =
            |value: u64| result("final-a", "response_a", "number", &json!({"number": value}));
        let region = json!({"x": 1.0, "y": 2.0, "rectanglelabels": ["lesion"]});
        let severity = json!({"x": 1.0, "y": 2.0, "choices": ["mild"]});
        let note = result("note", "question", "textarea", &json!({"text": ["t"]}));
        let named = result("rater", "question", "textarea", &json!({"text": ["dr-roy"]}));
        let tasks = json!([
            task(1, &json!([])),
            {"id": 2, "data": {"text": "not annotated"}},
            task(3, &json!([{"was_cancelled": true, "completed_by": 7, "result": [score(1)]}])),
            task(4, &json!([
                {"completed_by": {"id": 3, "email": "lee@clinic.example"}, "result": [score(2)]},
                {"completed_by": {"id": 9}, "result": [
                    score(3),
                    result("box", "image", "rectanglelabels", &region),
                    result("severity", "image", "choices", &severity),
                    {"type": "relation", "from_id": "x", "to_id": "y", "direction": "right"},
                ]},
                {"completed_by": 1, "result": [score(4), note, named]},
                {"completed_by": null, "result": [score(5)]},
            ])),
        ]);
        let file = read_text(&format!("\u{feff}\n {tasks}")).unwrap();
        let raters: Vec<&str> = file.entries.iter().map(|entry| entry.rater.as_str()).collect();
        assert_eq!(raters, ["9", "dr-roy", "labels", "lee@clinic.example"]);
        assert!(file.entries.iter().all(|entry| entry.case == "c4" && entry.line == 2));
        let unused: Vec<&str> = file.unused_controls.iter().map(String::as_str).collect();
        let expected =
            ["(relation)", "box (rectanglelabels)", "note (textarea)", "severity (region)"];
        assert_eq!(unused, expected);
        let empty = read_text("[]").unwrap_err().to_string();
        assert!(empty.contains("no labels found"), "{empty}");
    }

    #[test]
    fn controls_that_match_nothing_are_rejected() {
        for (name, to_name, kind, value, expected) in [
            ("quality", "response_a", "rating", json!({"rating": 3}), "`factual_accuracy-a`"),
            ("final", "text", "rating", json!({"rating": 3}), "which response is scored"),
            ("final-a", "response_b", "rating", json!({"rating": 3}), "is the other"),
            ("final-a", "a", "choices", json!({"choices": ["good"]}), "found `good`"),
            ("final-a", "a", "choices", json!({"choices": ["1", "2"]}), "2 choices, expected one"),
            ("final-a", "a", "number", json!({}), "no `number`"),
            ("final-a", "a", "number", json!({"number": 3, "start": 0}), "rating of a region"),
            ("preference", "q", "rating", json!({"rating": 3}), "expected `pairwise`"),
            ("preference", "q", "choices", json!({"choices": ["o"]}), "one of m and n"),
        ] {
            let error = read_result(name, to_name, kind, &value).unwrap_err().to_string();
            let start = format!("export.json line 1: task 1, `{name}`: ");
            assert!(error.contains(&start) && error.contains(expected), "{error}");
            assert!(error.contains("\nhint: "), "{error}");
        }
    }

    #[test]
    fn tasks_that_cannot_be_joined_are_rejected() {
        let score = result("final-a", "response_a", "number", &json!({"number": 3}));
        let by = |rater: Value| json!({"completed_by": rater, "result": [score]});
        let with_meta = |meta: Value| json!({"id": 4, "meta": meta, "annotations": [by(json!(1))]});
        let same = |id: u64| {
            let mut task = task(id, &json!([by(json!(1))]));
            task["meta"]["case"] = json!("same");
            task
        };
        for (tasks, expected) in [
            (json!([task(1, &json!([by(json!(1)), by(json!(1))]))]), "rated it already in task 1"),
            (
                json!([same(1), same(2)]),
                "task 2, case same, model m, `final`: `1` rated it already in task 1",
            ),
            (json!([task(1, &json!([by(json!({"name": "x"}))]))]), "neither `email` nor `id`"),
            (json!([task(1, &json!([31, 32]))]), "whole annotations"),
            (json!([with_meta(json!({"models": ["m", "n"]}))]), "task 4, the case id is missing"),
            (json!([with_meta(json!({"case": "c"}))]), "the models are missing"),
            (
                json!([with_meta(json!({"case": "c", "models": ["m", "m"]}))]),
                "two different models",
            ),
            (json!([with_meta(json!({"case": "c", "models": []}))]), "0 models"),
            (json!([{"id": 1, "final-a": "3", "annotator": 1}]), "not as JSON-MIN"),
            (json!([{"data": {}}, 5]), "found a number, expected a task"),
        ] {
            let error = read_text(&tasks.to_string()).unwrap_err().to_string();
            assert!(error.contains("export.json line 1: ") && error.contains(expected), "{error}");
            assert!(error.contains("\nhint: "), "{error}");
        }
        let error = read_text("[{\"id\": 1, \"data\": {}},\n{\"id\"").unwrap_err().to_string();
        assert!(
            error.contains("line 2") && error.contains("ends within") && error.contains("hint:"),
            "{error}"
        );
    }

    #[test]
    fn case_and_models_may_be_in_the_data() {
        let rated = json!({"result": [result("final", "text", "rating", &json!({"rating": 2}))]});
        let data = json!({"case_id": 12, "model": "m", "text": "an answer"});
        let tasks = json!([{"id": 1, "data": data, "meta": {}, "annotations": [rated]}]);
        let file = read_text(&tasks.to_string()).unwrap();
        assert_eq!((file.entries[0].case.as_str(), file.entries[0].line), ("12", 1));
        assert_eq!(only_entry(file).1, LabelValue::Score { model: "m".into(), value: 2.0 });
    }
}
