//! Settings of a run, and the file next to the answers that contains them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::question_prompt::QuestionPrompt;
use crate::judging::judge::text_writer::{TextSampling, WriterSettings};
use crate::support::digest::Digest;
use crate::support::files::atomic_file::write_atomic;
use crate::support::files::regular_file;

/// Version of the file format.
const SCHEMA: u32 = 1;

/// Everything that can change an answer, apart from the question, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerSettings(BTreeMap<String, String>);

impl AnswerSettings {
    /// Joins the settings of a run. `writer`: those of the model; `shows_images`: false to ask the
    /// questions alone.
    pub fn new(
        model_id: &str,
        writer: WriterSettings,
        sampling: &TextSampling,
        prompt: &QuestionPrompt,
        shows_images: bool,
    ) -> Self {
        let mut settings = writer;
        let mut set = |name: &str, value: String| {
            settings.insert(name.to_owned(), value);
        };
        set("model_id", model_id.to_owned());
        set("prompt", prompt.text().to_owned());
        set("images", if shows_images { "shown" } else { "not shown" }.to_owned());
        set("max_tokens", sampling.max_tokens.to_string());
        set("temperature", sampling.temperature.to_string());
        if let Some(k) = sampling.top_k {
            set("top_k", k.to_string());
        }
        if let Some(seed) = sampling.seed {
            set("seed", seed.to_string());
        }
        Self(settings)
    }

    /// Returns the hash of the settings, as each line has it.
    pub fn hash(&self) -> String {
        let fields = self.0.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
        hash_fields("acem3 answers 1", fields).short_hex()
    }

    /// Returns the key of an answer. `image`: the key of the image.
    pub fn key(&self, question_id: &str, prompt: &str, image: Option<&Digest>) -> Digest {
        let hash = self.hash();
        let image = image.map_or(&[][..], |digest| digest.as_bytes());
        let fields = [hash.as_bytes(), question_id.as_bytes(), prompt.as_bytes(), image];
        hash_fields("acem3 answer 1", fields)
    }

    /// Describes the settings that differ from others, each on a line: now and there.
    pub fn describe_differences(&self, other: &Self) -> String {
        let names: std::collections::BTreeSet<&String> =
            self.0.keys().chain(other.0.keys()).collect();
        let value = |settings: &Self, name: &String| {
            settings.0.get(name).map_or("not set".to_owned(), |value| format!("`{value}`"))
        };
        let differences = names.into_iter().filter(|name| self.0.get(*name) != other.0.get(*name));
        let lines: Vec<String> = differences
            .map(|name| format!("{name} is {}, and was {}", value(self, name), value(other, name)))
            .collect();
        lines.join("; ")
    }
}

/// Hashes fields with their lengths, so that different lists never hash the same bytes.
fn hash_fields<'a>(domain: &'a str, fields: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let mut hasher = Sha256::new();
    for field in std::iter::once(domain.as_bytes()).chain(fields) {
        hasher.update((field.len() as u64).to_le_bytes());
        hasher.update(field);
    }
    Digest::from_bytes(hasher.finalize().into())
}

/// The file next to the answers: what made them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerManifest {
    /// Version of the file format.
    pub schema: u32,
    /// The source of the questions.
    pub questions: String,
    /// The model, as described before the first question.
    pub model: String,
    /// Hash of the settings.
    pub hash: String,
    /// The settings.
    pub settings: AnswerSettings,
}

impl AnswerManifest {
    /// Creates the manifest of a run.
    pub fn new(questions: String, model: String, settings: AnswerSettings) -> Self {
        Self { schema: SCHEMA, questions, model, hash: settings.hash(), settings }
    }

    /// Returns the path of the manifest of an answers file: `a.run.json` for `a.jsonl`.
    pub fn path_for(answers: &Path) -> PathBuf {
        answers.with_extension("run.json")
    }

    /// Reads the manifest of an answers file; `None` if there is none, or it is damaged.
    ///
    /// # Errors
    ///
    /// The file is of another program.
    pub fn read(answers: &Path) -> Result<Option<Self>> {
        let path = Self::path_for(answers);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = regular_file::read(&path).with_context(|| path.display().to_string())?;
        let manifest: Option<Self> = serde_json::from_slice(&bytes).ok();
        if manifest.is_none() && !answers.exists() {
            bail!(
                "{}: exists, and is not a file of this command\n\
                 hint: choose another --out, or move this file",
                path.display()
            );
        }
        Ok(manifest)
    }

    /// Writes the manifest.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, answers: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("cannot write the settings")? + "\n";
        write_atomic(&Self::path_for(answers), text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(temperature: f64, top_k: Option<u32>) -> AnswerSettings {
        let sampling = TextSampling { max_tokens: 200, temperature, top_k, seed: None };
        let prompt = QuestionPrompt::default();
        AnswerSettings::new("m", WriterSettings::new(), &sampling, &prompt, true)
    }

    #[test]
    fn differences_are_named_and_change_keys() {
        let (greedy, drawn) = (settings(0.0, None), settings(0.5, Some(50)));
        assert_eq!(
            drawn.describe_differences(&greedy),
            "temperature is `0.5`, and was `0`; top_k is `50`, and was not set"
        );
        let image = Digest::sha256(b"image");
        let keys = [
            greedy.key("1", "q", None),
            drawn.key("1", "q", None),
            greedy.key("2", "q", None),
            greedy.key("1", "r", None),
            greedy.key("1", "q", Some(&image)),
        ];
        assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), keys.len());
        assert_eq!(greedy.key("1", "q", None), settings(0.0, None).key("1", "q", None));
    }
}
