//! Evaluations from a file: JSON lines as TRL's SFT trainer reads them, by whomever written.

use std::path::{Path, PathBuf};

use acem3_experts::prompt::Piece;
use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::support::digest::Digest;
use crate::training::preferences::data::jsonl_line::{image, member, prompt, read_lines};

/// A prompt with the evaluation that follows it.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationExample {
    /// The line it stands in, counted from one.
    pub line: usize,
    /// The place of the member that learns from it; every member where `None`.
    pub member: Option<usize>,
    /// What is read.
    pub prompt: Vec<Piece>,
    /// What is to be written.
    pub text: String,
    /// The image's file.
    pub image: Option<PathBuf>,
    /// How good it is, on any scale: more is better.
    pub quality: Option<f64>,
}

/// A line of the file. Other fields are somebody's notes.
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

/// Reads the evaluations of a file, which may be one of preferences: what they prefer is learned.
/// Images are named relative to it.
///
/// # Errors
/// Name the file and the line: not the form, an image too many or too few, an unknown member, a quality
/// that is no number.
pub fn evaluations(path: &Path) -> Result<(Vec<EvaluationExample>, Digest)> {
    read_lines(path, "evaluation", evaluation)
}

/// The first score of a text that is none.
fn beyond(text: &str) -> Option<f64> {
    let text = text.to_ascii_lowercase();
    let ends = |c: char| c.is_whitespace() || [',', '/', ';'].contains(&c);
    let mut numbers = text.split("score:").skip(1).filter_map(|after| {
        let word = after.trim_start().split(ends).next()?;
        word.trim_end_matches('.').parse::<f64>().ok()
    });
    numbers.find(|score| !(0.0..=5.0).contains(score))
}

fn evaluation(line: &str, number: usize, base: &Path) -> Result<EvaluationExample> {
    let line: EvaluationLine = serde_json::from_str(line).context(
        "it is no evaluation\n\
         hint: `prompt` and `completion` are texts, not lists of messages; `images` names files",
    )?;
    let pieces = prompt(&line.prompt, line.images.len())?;
    if line.prompt.is_empty() || line.completion.is_empty() {
        bail!("`prompt` and `completion` must not be empty");
    }
    if let Some(score) = beyond(&line.completion) {
        bail!("a score of {score} in `completion`, expected 0 to 5");
    }
    if line.quality.is_some_and(|quality| !quality.is_finite()) {
        bail!("`quality` is no finite number");
    }
    Ok(EvaluationExample {
        line: number,
        member: member(line.member)?,
        prompt: pieces,
        text: line.completion,
        image: image(&line.images, base),
        quality: line.quality,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_what_is_read_written_and_worth() {
        let text = r#"{"prompt": "A<image>b", "chosen": "Right.", "rejected": "Wrong.",
            "images": ["a.png"], "member": "conclusion", "quality": 0.5}"#;
        let read = evaluation(text, 3, Path::new("data")).unwrap();
        assert_eq!(read.text, "Right.");
        assert_eq!((read.member, read.quality), (Some(3), Some(0.5)));
        assert_eq!(read.image, Some(PathBuf::from("data/a.png")));
        let refused = |text: &str| format!("{:#}", evaluation(text, 1, Path::new("")).unwrap_err());
        for score in ["9", "-1.", "6/5"] {
            let text =
                format!(r#"{{"prompt": "A", "completion": "Analysis: Right. Score: {score}"}}"#);
            assert!(refused(&text).contains("a score of"), "{text}");
        }
        for score in ["5", "4/5", "0.", "high"] {
            assert_eq!(beyond(&format!("Analysis: Right.\nScore: {score}\n")), None);
        }
        let empty = refused(r#"{"prompt": "A", "completion": ""}"#);
        assert!(empty.contains("must not be empty"), "{empty}");
        assert!(refused(r#"{"prompt": "A"}"#).contains("hint:"));
    }
}
