//! Joins the rows of several files by id.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Result, bail};

use super::image_value::ImportedImageKey;
use super::import_file::ImportFile;
use super::imported_row::ImportedRow;
use crate::data::cases::case::Response;
use crate::data::cases::case::text_limits::MAX_RESPONSES;
use crate::support::text::{escape_control_chars, escape_start, format_count};

/// Number of characters of a question that are compared and shown.
const QUESTION_CHARS: usize = 400;
/// Number of files in messages.
const SHOWN_FILES: usize = 4;
/// Number of characters of a question in messages.
const SHOWN_CHARS: usize = 80;

/// A row: index of its file, and its line.
pub(super) type RowPosition = (usize, u64);

/// The answers of all files, by id.
#[derive(Debug, Default)]
pub(super) struct JoinedRows {
    /// Names of the models, in the order of their first answers.
    pub(super) models: Vec<String>,
    by_id: HashMap<String, JoinedCase>,
    /// Questions that two files share.
    common: u64,
    /// Questions, references and images that differ between rows with one id.
    differences: [Difference; 3],
    /// Further answers of a model to one question, which are left out.
    pub(super) repeated: u64,
    /// The first of them.
    pub(super) first_repeated: Option<String>,
    /// Answers that repeat the text of an earlier one of the model.
    pub(super) equal: u64,
    /// The first of them.
    pub(super) first_equal: Option<String>,
}

/// Rows that differ from the first row with their id.
#[derive(Debug, Default)]
struct Difference {
    count: u64,
    first: Option<String>,
}

/// What differs, in the order of [`JoinedRows::differences`].
const PARTS: [&str; 3] = ["question", "reference", "image"];

#[derive(Debug, Default)]
struct JoinedCase {
    /// The row with the question.
    question_row: Option<RowPosition>,
    /// The start of the question.
    question: Box<str>,
    /// The first reference and its row.
    reference: Option<(RowPosition, Box<str>)>,
    /// The first image and its row.
    image: Option<(RowPosition, ImportedImageKey)>,
    /// Index of the model and text, in order.
    answers: Vec<(usize, Box<str>)>,
}

impl Difference {
    fn add(
        &mut self,
        id: &str,
        texts: [&str; 2],
        positions: [RowPosition; 2],
        files: &[ImportFile],
    ) {
        self.count += 1;
        self.first.get_or_insert_with(|| {
            let place = |(index, line): RowPosition| {
                let path = files.get(index).map_or(Path::new(""), |file| &file.path);
                format!("{} line {line}", path.display())
            };
            let [one, two] = texts.map(shown);
            let [first, second] = positions.map(place);
            let id = escape_control_chars(id);
            format!("id {id}: `{one}` in {first}, `{two}` in {second}")
        });
    }
}

impl JoinedRows {
    /// Adds a row.
    ///
    /// # Errors
    /// The files have too many models.
    pub(super) fn add(
        &mut self,
        position: RowPosition,
        row: ImportedRow,
        model: &str,
        files: &[ImportFile],
    ) -> Result<()> {
        let id = row.id.unwrap_or_default();
        let file = |index: usize| files.get(index).map_or(Path::new(""), |file| &file.path);
        let [questions, references, images] = &mut self.differences;
        let case = self.by_id.entry(id.clone()).or_default();
        if let Some(question) = &row.question {
            let question = comparable(question);
            match case.question_row {
                None => {
                    case.question_row = Some(position);
                    case.question = question.into();
                }
                Some((other, line)) => {
                    self.common += u64::from(other != position.0);
                    if *case.question != *question {
                        questions.add(
                            &id,
                            [&case.question, &question],
                            [(other, line), position],
                            files,
                        );
                    }
                }
            }
        }
        if let Some(reference) = row.reference {
            match &case.reference {
                None => case.reference = Some((position, reference.into())),
                Some((first, known)) if comparable(known) != comparable(&reference) => {
                    references.add(&id, [known, &reference], [*first, position], files);
                }
                Some(_) => {}
            }
        }
        if let Some(image) = row.image_key {
            match &case.image {
                None => case.image = Some((position, image)),
                Some((first, known)) if known.differs(&image) => {
                    let texts = [known.to_string(), image.to_string()];
                    images.add(&id, [&texts[0], &texts[1]], [*first, position], files);
                }
                Some(_) => {}
            }
        }
        for answer in row.answers {
            let name = answer.model.as_deref().map_or(model, str::trim);
            let known = self.models.iter().position(|known| known == name);
            let index = known.unwrap_or_else(|| {
                self.models.push(name.to_owned());
                self.models.len() - 1
            });
            if index >= MAX_RESPONSES {
                bail!(
                    "{} line {}: more than {MAX_RESPONSES} models\n\
                     hint: check the column or field of the model",
                    file(position.0).display(),
                    position.1
                );
            }
            match case.answers.iter().find(|(known, _)| *known == index) {
                None => case.answers.push((index, answer.text.into())),
                Some((_, text)) => {
                    let (count, first) = match **text == *answer.text {
                        true if text.is_empty() => continue,
                        true => (&mut self.equal, &mut self.first_equal),
                        false => (&mut self.repeated, &mut self.first_repeated),
                    };
                    *count += 1;
                    first.get_or_insert_with(|| {
                        format!(
                            "model {name}, id {}, {} line {}",
                            escape_control_chars(&id),
                            file(position.0).display(),
                            position.1
                        )
                    });
                }
            }
        }
        Ok(())
    }

    /// Checks that the files belong together.
    ///
    /// # Errors
    /// Questions with one id differ, or there is no question.
    pub(super) fn check(&self, files: &[ImportFile]) -> Result<()> {
        let shown = files.iter().take(SHOWN_FILES).map(|file| file.path.display().to_string());
        let mut names: Vec<String> = shown.collect();
        let command_paths = names.join(" ");
        if files.len() > SHOWN_FILES {
            names.push(format!("and {} more", files.len() - SHOWN_FILES));
        }
        for (part, difference) in PARTS.iter().zip(&self.differences) {
            let (Some(first), count) = (&difference.first, difference.count) else {
                continue;
            };
            if let [file] = files {
                bail!(
                    "{}: {} with the id of another {part}; first {first}\n\
                     hint: name another column or none for the id, for example --columns \
                     question=COLUMN,answer=COLUMN",
                    file.path.display(),
                    format_count(count, "row")
                );
            }
            let of = match self.common {
                0 => format!("rows repeat an id with another {part}"),
                common => format!("of {common} common {part}s differ"),
            };
            bail!(
                "the files do not belong to one data set: {count} {of}; {first}\n\
                 hint: import files of one version of one data set; files: {}",
                names.join(", ")
            );
        }
        let has_question = self.by_id.values().any(|case| case.question_row.is_some());
        if !self.by_id.is_empty() && !has_question {
            bail!(
                "{}: answers without questions ({})\n\
                 hint: import the file of the questions too: `acem3 data import QUESTIONS {command_paths} \
                 --out cases.jsonl`, or pass the answers with --answers",
                names.join(", "),
                format_count(self.by_id.len() as u64, "id")
            );
        }
        Ok(())
    }

    /// Returns the number of cases.
    pub(super) fn case_count(&self) -> u64 {
        self.by_id.values().filter(|case| case.question_row.is_some()).count() as u64
    }

    /// Returns the number of ids with answers and without a question.
    pub(super) fn without_question(&self) -> u64 {
        self.by_id.len() as u64 - self.case_count()
    }

    /// Returns the number of answers of each model.
    pub(super) fn answer_counts(&self) -> Vec<(&str, u64)> {
        let mut counts = vec![0; self.models.len()];
        for (model, _) in self.by_id.values().flat_map(|case| &case.answers) {
            if let Some(count) = counts.get_mut(*model) {
                *count += 1;
            }
        }
        self.models.iter().map(String::as_str).zip(counts).collect()
    }

    /// Returns the reference of a case, from whichever row has one.
    pub(super) fn reference(&self, id: &str) -> Option<String> {
        let (_, reference) = self.by_id.get(id)?.reference.as_ref()?;
        Some(reference.to_string())
    }

    /// Returns the responses of a case: one of each model, empty if its answer is missing.
    pub(super) fn responses(&self, id: &str) -> Vec<Response> {
        let response = |model: &String| Response { model: model.clone(), text: String::new() };
        let mut responses: Vec<Response> = self.models.iter().map(response).collect();
        for (index, text) in self.by_id.get(id).map_or(&[][..], |case| &case.answers) {
            if let Some(response) = responses.get_mut(*index) {
                response.text = text.to_string();
            }
        }
        responses
    }

    /// Returns true if this row has the question of its id.
    pub(super) fn is_question_row(&self, id: &str, position: RowPosition) -> bool {
        self.by_id.get(id).is_some_and(|case| case.question_row == Some(position))
    }
}

/// Returns the start of a question in lower case with single blanks.
fn comparable(question: &str) -> String {
    let words: Vec<&str> = question.split_whitespace().collect();
    words.join(" ").to_lowercase().chars().take(QUESTION_CHARS).collect()
}

fn shown(question: &str) -> String {
    escape_start(question, SHOWN_CHARS)
}
