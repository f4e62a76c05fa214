//! Evaluations of any form and rubric from a JSON lines file, from which preference pairs are made.

use std::path::{Path, PathBuf};

use acem3_experts::prompt::PromptPiece;
use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::asked_questions::{remove_offer, without_questions};
use super::jsonl_line::{JsonlLine, ParsedFile, image_path, parse_lines, parse_prompt};

/// Prompt with an evaluation as its completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceEvaluation {
    /// Line number, counted from one.
    pub(crate) line: usize,
    /// Name of the member or aspect that writes the evaluation.
    pub(crate) member: Option<String>,
    /// Pieces of the prompt.
    pub(crate) prompt: Vec<PromptPiece>,
    /// Text of the completion.
    pub(crate) text: String,
    /// Path of the image, if any.
    pub(crate) image: Option<PathBuf>,
    /// Reference answer, if the line states it.
    pub(crate) reference: Option<String>,
}

/// Fields of a line. Other fields are ignored.
#[derive(Deserialize)]
struct SourceLine {
    prompt: String,
    #[serde(alias = "chosen")]
    completion: String,
    #[serde(default)]
    images: Vec<PathBuf>,
    member: Option<String>,
    reference: Option<String>,
}

/// Reads the evaluations of a file, without the questions that members asked and their evidence: a
/// preference is about what the member concluded. In a file of preference pairs, the chosen completions are the
/// evaluations. Image paths are relative to the file.
///
/// # Errors
/// If a line is malformed or has a wrong number of images. Errors name the file and the line.
pub(crate) fn read_source_evaluations(path: &Path) -> Result<ParsedFile<SourceEvaluation>> {
    parse_lines(path, "evaluation", parse_source)
}

fn parse_source(line: JsonlLine) -> Result<SourceEvaluation> {
    let parsed: SourceLine = serde_json::from_str(line.text).context(
        "malformed evaluation\n\
         hint: `prompt` and `completion` must be strings, not lists of messages; `images` is a list of files",
    )?;
    let mut prompt = parse_prompt(&parsed.prompt, parsed.images.len())?;
    remove_offer(&mut prompt)?;
    if parsed.prompt.is_empty() || parsed.completion.trim().is_empty() {
        bail!("`prompt` and `completion` must not be empty");
    }
    Ok(SourceEvaluation {
        line: line.number,
        member: parsed.member,
        prompt,
        text: without_questions(&parsed.completion)?,
        image: image_path(&parsed.images, line.base),
        reference: parsed.reference,
    })
}
