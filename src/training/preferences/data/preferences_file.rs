//! Preferences from a file: JSON lines as TRL's DPO trainer reads them, by whomever written.

use std::path::{Path, PathBuf};

use acem3_experts::prompt::Piece;
use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::support::digest::Digest;
use crate::training::preferences::data::jsonl_line::{image, member, prompt, read_lines};

/// A prompt with a preferred and a rejected continuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreferencePair {
    /// The line it stands in, counted from one.
    pub line: usize,
    /// The place of the member that learns from it; every member where `None`.
    pub member: Option<usize>,
    /// What is read.
    pub prompt: Vec<Piece>,
    /// The preferred and the rejected continuation.
    pub texts: [String; 2],
    /// The image's file.
    pub image: Option<PathBuf>,
}

/// A line of the file. Other fields (`id`, `negatives`) are somebody's notes.
#[derive(Deserialize)]
struct PreferenceLine {
    prompt: String,
    chosen: String,
    rejected: String,
    #[serde(default)]
    images: Vec<PathBuf>,
    member: Option<String>,
}

/// Reads the preferences of a file. Images are named relative to it.
///
/// # Errors
/// Name the file and the line: not the form, an image too many or too few, an unknown member, two
/// equal continuations.
pub fn read(path: &Path) -> Result<(Vec<PreferencePair>, Digest)> {
    read_lines(path, "preference", pair)
}

fn pair(line: &str, number: usize, base: &Path) -> Result<PreferencePair> {
    let line: PreferenceLine = serde_json::from_str(line).context(
        "it is no preference\n\
         hint: `prompt`, `chosen` and `rejected` are texts, not lists of messages; `images` names files",
    )?;
    let pieces = prompt(&line.prompt, line.images.len())?;
    let member = member(line.member)?;
    if line.chosen == line.rejected {
        bail!("`chosen` and `rejected` are the same");
    }
    if line.prompt.is_empty() || line.chosen.is_empty() || line.rejected.is_empty() {
        bail!("`prompt`, `chosen` and `rejected` must not be empty");
    }
    Ok(PreferencePair {
        line: number,
        member,
        prompt: pieces,
        texts: [line.chosen, line.rejected],
        image: image(&line.images, base),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::terminal::interrupt::Interrupt;
    use crate::training::preferences::data::{Negative, PreferenceFolderConfig, drawn};
    use acem3_experts::prompt::Layout;

    #[test]
    fn what_is_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let plan = PreferenceFolderConfig {
            out: dir.path().join("pairs"),
            n: 2,
            seed: 3,
            ways: Negative::ALL.to_vec(),
            layout: Layout::CaseFirst,
            reward_tokens: false,
        };
        let written = drawn(&plan, &Interrupt::default()).unwrap();
        let (pairs, _) = read(&plan.out.join("preferences.jsonl")).unwrap();
        assert_eq!(pairs.len() as u64, written.pairs);
        assert!(
            pairs
                .iter()
                .all(|p| p.image.as_ref().is_some_and(|i| i.is_file()))
        );
        assert_eq!((pairs[0].line, pairs[0].member), (1, Some(0)));
        assert_eq!(
            pairs[0]
                .prompt
                .iter()
                .filter(|p| **p == Piece::Image)
                .count(),
            1
        );
    }

    #[test]
    fn a_broken_line_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pairs.jsonl");
        let good = r#"{"prompt": "a", "chosen": "b", "rejected": "c"}"#;
        for (line, problem) in [
            ("{", "it is no preference"),
            (
                r#"{"prompt": [{"role": "user"}], "chosen": [], "rejected": []}"#,
                "lists of messages",
            ),
            (
                r#"{"prompt": "a", "chosen": "b", "rejected": "b"}"#,
                "the same",
            ),
            (
                r#"{"prompt": "<image>a", "chosen": "b", "rejected": "c"}"#,
                "`images` names 0",
            ),
            (
                r#"{"prompt": "a", "chosen": "b", "rejected": "c", "member": "x"}"#,
                "\"x\"",
            ),
            (r#"{"prompt": "a", "chosen": "", "rejected": "c"}"#, "empty"),
        ] {
            std::fs::write(&path, format!("{good}\n\n{line}\n")).unwrap();
            let error = format!("{:#}", read(&path).unwrap_err());
            assert!(
                error.contains("line 3") && error.contains(problem),
                "{error}"
            );
        }
        std::fs::write(&path, "\n").unwrap();
        assert!(
            read(&path)
                .unwrap_err()
                .to_string()
                .contains("no preference")
        );
    }
}
