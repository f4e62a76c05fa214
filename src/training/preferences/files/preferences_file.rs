//! Preference pairs from a JSON lines file in the format of TRL's DPO trainer.

use std::path::{Path, PathBuf};

use acem3_experts::prompt::PromptPiece;
use anyhow::{Context, Result, bail};
use clap::ValueEnum as _;
use serde::Deserialize;

use super::jsonl_line::{JsonlLine, ParsedFile, image_path, parse_lines, parse_prompt};
use crate::training::config::stage::negative::Negative;

/// Prompt with a chosen and a rejected completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreferencePair {
    /// Line number, counted from one.
    pub line: usize,
    /// Name of the member that trains on the pair; `None` for all members.
    pub member: Option<String>,
    /// Pieces of the prompt.
    pub prompt: Vec<PromptPiece>,
    /// Chosen and rejected completion.
    pub completions: [String; 2],
    /// Path of the image, if any.
    pub image: Option<PathBuf>,
    /// Names of the changes that the rejected completion comes from; `None` if the line has none.
    pub negatives: Option<Vec<String>>,
}

impl PreferencePair {
    /// Returns true if a member trains on this pair.
    pub(crate) fn is_for(&self, member: &str) -> bool {
        self.member.as_deref().is_none_or(|only| only == member)
    }

    /// Returns true if the rejected completion comes from these changes only.
    ///
    /// # Errors
    /// If the line does not state where it comes from.
    pub(crate) fn is_of_negatives(&self, negatives: &[Negative]) -> Result<bool> {
        let names = self.negatives.as_ref().with_context(|| {
            format!(
                "line {} has no `negatives`, the changes that its rejected evaluation comes from\n\
                 hint: `acem3 data preferences` writes them; without them, the pairs cannot be selected by negative",
                self.line
            )
        })?;
        let is_selected = |name: &String| {
            Negative::from_str(name, false).is_ok_and(|negative| negatives.contains(&negative))
        };
        Ok(!names.is_empty() && names.iter().all(is_selected))
    }
}

/// Keeps the pairs whose rejected completions come from these changes only. If the changes are all
/// that there are, keeps every pair, also those of unknown origin.
///
/// # Errors
/// If a line does not state where its rejected completion comes from.
pub(crate) fn select_negatives(
    pairs: Vec<PreferencePair>,
    negatives: &[Negative],
) -> Result<Vec<PreferencePair>> {
    if Negative::ALL.iter().all(|negative| negatives.contains(negative)) {
        return Ok(pairs);
    }
    let mut selected = Vec::new();
    for pair in pairs {
        if pair.is_of_negatives(negatives)? {
            selected.push(pair);
        }
    }
    Ok(selected)
}

/// Fields of a line. Other fields (`id`) are ignored.
#[derive(Deserialize)]
struct PreferenceLine {
    prompt: String,
    chosen: String,
    rejected: String,
    #[serde(default)]
    images: Vec<PathBuf>,
    member: Option<String>,
    negatives: Option<Vec<String>>,
}

/// Reads the preference pairs of a file. Image paths are relative to the file.
///
/// # Errors
/// If a line is malformed, has a wrong number of images, or two equal completions. Errors name the file and the line.
pub fn read_preferences(path: &Path) -> Result<ParsedFile<PreferencePair>> {
    parse_lines(path, "preference", parse_pair)
}

/// Parses and checks a line.
fn parse_pair(line: JsonlLine) -> Result<PreferencePair> {
    let parsed: PreferenceLine = serde_json::from_str(line.text).context(
        "malformed preference\n\
         hint: `prompt`, `chosen` and `rejected` must be strings, not lists of messages; `images` is a list of files",
    )?;
    let prompt = parse_prompt(&parsed.prompt, parsed.images.len())?;
    if parsed.chosen == parsed.rejected {
        bail!("`chosen` and `rejected` are equal");
    }
    if parsed.prompt.is_empty() || parsed.chosen.is_empty() || parsed.rejected.is_empty() {
        bail!("`prompt`, `chosen` and `rejected` must not be empty");
    }
    Ok(PreferencePair {
        line: line.number,
        member: parsed.member,
        prompt,
        completions: [parsed.chosen, parsed.rejected],
        image: image_path(&parsed.images, line.base),
        negatives: parsed.negatives,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::terminal::interrupt::Interrupt;
    use crate::training::preferences::{PreferenceFolderConfig, write_phantom_preferences};

    #[test]
    fn written_pairs_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let config = PreferenceFolderConfig::of_phantoms(dir.path().join("pairs"), 5);
        let counts = write_phantom_preferences(&config, &Interrupt::default()).unwrap();
        let pairs = read_preferences(&config.out.join("preferences.jsonl")).unwrap();
        let pairs = pairs.items;
        assert_eq!(pairs.len() as u64, counts.pairs);
        // Some pairs combine two changes.
        let count = |negatives: &[Negative]| {
            select_negatives(pairs.clone(), negatives).map(|selected| selected.len())
        };
        let single = Negative::ALL.map(|negative| count(&[negative]).unwrap());
        assert!(single.iter().sum::<usize>() <= pairs.len() && single[0] > 0, "{single:?}");
        assert_eq!(count(&Negative::ALL).unwrap(), pairs.len());
        let unnamed = vec![PreferencePair { negatives: None, ..pairs[0].clone() }];
        let error = select_negatives(unnamed, &[Negative::ScoreSwap]).unwrap_err().to_string();
        assert!(error.contains("line 1 has no `negatives`"), "{error}");
        assert!(pairs.iter().all(|p| p.image.as_ref().is_some_and(|i| i.is_file())));
        assert_eq!((pairs[0].line, pairs[0].member.as_deref()), (1, Some("expression")));
        assert_eq!(pairs[0].prompt.iter().filter(|p| **p == PromptPiece::Image).count(), 1);
    }

    #[test]
    fn error_names_malformed_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pairs.jsonl");
        let valid = r#"{"prompt": "a", "chosen": "b", "rejected": "c"}"#;
        for (line, problem) in [
            ("{", "malformed preference"),
            (
                r#"{"prompt": [{"role": "user"}], "chosen": [], "rejected": []}"#,
                "lists of messages",
            ),
            (r#"{"prompt": "a", "chosen": "b", "rejected": "b"}"#, "are equal"),
            (r#"{"prompt": "<image>a", "chosen": "b", "rejected": "c"}"#, "`images` has 0 entries"),
            (r#"{"prompt": "a", "chosen": "", "rejected": "c"}"#, "empty"),
        ] {
            std::fs::write(&path, format!("{valid}\n\n{line}\n")).unwrap();
            let error = format!("{:#}", read_preferences(&path).unwrap_err());
            assert!(error.contains("line 3") && error.contains(problem), "{error}");
        }
        std::fs::write(&path, "\n").unwrap();
        let error = read_preferences(&path).unwrap_err().to_string();
        assert!(error.contains("no preference\nhint: write at least one"), "{error}");
        let error = read_preferences(&dir.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("hint: check the path"), "{error}");
    }
}
