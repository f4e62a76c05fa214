//! The file that makes a folder a panel: `panel.toml`.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use acem3_experts::ModelConfig;
use acem3_experts::prompt::{Detail, Dialogue, Layout};
use acem3_vision::ImageProcessor;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// The name of the file.
pub const PANEL_FILE: &str = "panel.toml";
/// The name of the tokenizer's file.
pub const TOKENIZER_FILE: &str = "tokenizer.json";

/// What a panel is made of and how it was trained to be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelSpec {
    /// The version of this file's form.
    pub schema: u32,
    /// The panel's name in tables and records.
    pub name: String,
    /// The prompt layout it was trained with.
    pub layout: Layout,
    /// How much of the rubric its prompts spell out.
    pub rubric: Detail,
    /// Most tokens of one analysis.
    pub analysis_tokens: usize,
    /// What the texts of members begin with that were trained with reward tokens, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reward_tokens: BTreeMap<String, String>,
    /// How members are spoken to; as their prompts stand where nothing is said.
    #[serde(default, skip_serializing_if = "Dialogue::is_plain")]
    pub dialogue: Dialogue,
    /// How images are prepared.
    pub processor: ImageProcessor,
    /// The shape of its members.
    pub model: ModelConfig,
    /// The weight files of each member, which together are its whole checkpoint.
    pub members: MemberFiles,
}

/// The weight files (safetensors) of the four members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberFiles {
    /// The expression expert.
    pub expression: Vec<String>,
    /// The medical knowledge expert.
    pub medical_knowledge: Vec<String>,
    /// The patient relevance expert.
    pub patient_relevance: Vec<String>,
    /// The conclusion model.
    pub conclusion: Vec<String>,
}

impl MemberFiles {
    /// The four, in the order of an engine's heads, with their names.
    pub fn all(&self) -> [(&'static str, &[String]); 4] {
        [
            ("expression", &self.expression),
            ("medical_knowledge", &self.medical_knowledge),
            ("patient_relevance", &self.patient_relevance),
            ("conclusion", &self.conclusion),
        ]
    }
}

impl From<[Vec<String>; 4]> for MemberFiles {
    /// The four in the order of [`MemberFiles::all`].
    fn from(files: [Vec<String>; 4]) -> Self {
        let [expression, medical_knowledge, patient_relevance, conclusion] = files;
        Self {
            expression,
            medical_knowledge,
            patient_relevance,
            conclusion,
        }
    }
}

impl PanelSpec {
    /// The version this program writes.
    pub const SCHEMA: u32 = 1;

    /// What the text of each member begins with, in the order of [`MemberFiles::all`].
    pub fn leads(&self) -> [String; 4] {
        let lead = |(name, _)| self.reward_tokens.get(name).cloned().unwrap_or_default();
        self.members.all().map(lead)
    }

    /// Reads and checks a specification.
    pub fn parse(text: &str) -> Result<Self> {
        let spec: Self = toml::from_str(text).context("it is not a panel's file")?;
        if spec.schema != Self::SCHEMA {
            bail!("schema is {}, expected {}", spec.schema, Self::SCHEMA);
        }
        if let Err(problem) = spec.model.check() {
            bail!("model.{problem}");
        }
        for name in spec.members.all().into_iter().flat_map(|(_, files)| files) {
            let plain = Path::new(name)
                .components()
                .eq([Component::Normal(name.as_ref())]);
            if !plain {
                bail!("members: `{name}` is not the name of a file in the panel's folder");
            }
        }
        let members = spec.members.all();
        let known = |name: &String| members.iter().any(|(member, _)| member == name);
        if let Some(name) = spec.reward_tokens.keys().find(|name| !known(name)) {
            bail!("reward_tokens: no member is called {name:?}");
        }
        if spec.analysis_tokens == 0 {
            bail!("analysis_tokens is 0, expected at least 1");
        }
        Ok(spec)
    }
}
