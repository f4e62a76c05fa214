//! Evaluations from a JSON lines file in the format of TRL's SFT trainer.

use std::path::{Path, PathBuf};

use acem3_experts::prompt::PromptPiece;
use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::jsonl_line::{JsonlLine, ParsedFile, image_path, parse_lines, parse_prompt};

/// Prompt with an evaluation as its completion.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationExample {
    /// Line number, counted from one.
    pub line: usize,
    /// Name of the member that trains on the evaluation; `None` for all members.
    pub member: Option<String>,
    /// Pieces of the prompt.
    pub prompt: Vec<PromptPiece>,
    /// Text of the completion.
    pub text: String,
    /// Path of the image, if any.
    pub image: Option<PathBuf>,
    /// Quality on any scale; higher is better.
    pub quality: Option<f64>,
}

/// Fields of a line. Other fields are ignored.
#[derive(Deserialize)]
struct EvaluationLine {
    prompt: String,
    #[serde(alias = "chosen")]
    completion: String,
    #[serde(default)]
    images: Vec<PathBuf>,
    member: Option<String>,
    quality: Option<f64>,
}

/// Reads the evaluations of a file. In a file of preference pairs, the chosen completions are the
/// evaluations. Image paths are relative to the file.
///
/// # Errors
/// If a line is malformed, has a wrong number of images, or a quality that is not finite. Errors name the file and the line.
pub fn read_evaluations(path: &Path) -> Result<ParsedFile<EvaluationExample>> {
    parse_lines(path, "evaluation", parse_evaluation)
}

/// Returns the first score in a text that is not from 0 to 5.
fn out_of_range_score(text: &str) -> Option<f64> {
    let text = text.to_ascii_lowercase();
    let is_delimiter = |c: char| c.is_whitespace() || [',', '/', ';'].contains(&c);
    let mut scores = text.split("score:").skip(1).filter_map(|after| {
        let word = after.trim_start().split(is_delimiter).next()?;
        word.trim_end_matches('.').parse::<f64>().ok()
    });
    scores.find(|score| !(0.0..=5.0).contains(score))
}

/// Parses and checks a line.
fn parse_evaluation(line: JsonlLine) -> Result<EvaluationExample> {
    let parsed: EvaluationLine = serde_json::from_str(line.text).context(
        "malformed evaluation\n\
         hint: `prompt` and `completion` must be strings, not lists of messages; `images` is a list of files",
    )?;
    let prompt = parse_prompt(&parsed.prompt, parsed.images.len())?;
    if parsed.prompt.is_empty() || parsed.completion.is_empty() {
        bail!("`prompt` and `completion` must not be empty");
    }
    if let Some(score) = out_of_range_score(&parsed.completion) {
        bail!("`completion`: score {score} is out of range, expected 0 to 5");
    }
    if let Some(quality) = parsed.quality.filter(|quality| !quality.is_finite()) {
        bail!("`quality` must be a finite number, found {quality}");
    }
    Ok(EvaluationExample {
        line: line.number,
        member: parsed.member,
        prompt,
        text: parsed.completion,
        image: image_path(&parsed.images, line.base),
        quality: parsed.quality,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_parsed_and_checked() {
        let text = r#"{"prompt": "A<image>b", "chosen": "Right.", "rejected": "Wrong.",
            "images": ["a.png"], "member": "conclusion", "quality": 0.5}"#;
        let evaluation =
            parse_evaluation(JsonlLine { text, number: 3, base: Path::new("data") }).unwrap();
        assert_eq!(evaluation.text, "Right.");
        assert_eq!(
            (evaluation.member.as_deref(), evaluation.quality),
            (Some("conclusion"), Some(0.5))
        );
        assert_eq!(evaluation.image, Some(PathBuf::from("data/a.png")));
        let error = |text: &str| {
            let line = JsonlLine { text, number: 1, base: Path::new("") };
            format!("{:#}", parse_evaluation(line).unwrap_err())
        };
        for score in ["9", "-1.", "6/5"] {
            let text =
                format!(r#"{{"prompt": "A", "completion": "Analysis: Right. Score: {score}"}}"#);
            assert!(error(&text).contains("out of range"), "{text}");
        }
        for score in ["5", "4/5", "0.", "high"] {
            assert_eq!(out_of_range_score(&format!("Analysis: Right.\nScore: {score}\n")), None);
        }
        let empty = error(r#"{"prompt": "A", "completion": ""}"#);
        assert!(empty.contains("must not be empty"), "{empty}");
        assert!(error(r#"{"prompt": "A"}"#).contains("hint:"));
    }
}
