//! The specification of a panel: `panel.toml`.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use acem3_experts::ModelConfig;
use acem3_experts::prompt::{ChatTemplate, PromptLayout, RubricDetail};
use acem3_vision::ImageProcessor;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// Name of the specification file.
pub const PANEL_FILE: &str = "panel.toml";
/// Name of the tokenizer file.
pub const TOKENIZER_FILE: &str = "tokenizer.json";

/// Content of `panel.toml`: model, weight files and prompt configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelSpec {
    /// Schema version of the file.
    pub schema: u32,
    /// The panel's name in tables and records.
    pub name: String,
    /// The prompt layout that it was trained with.
    pub layout: PromptLayout,
    /// Level of detail of the rubric in prompts.
    pub rubric: RubricDetail,
    /// Token budget of one analysis.
    pub analysis_tokens: usize,
    /// The rubrics that it was trained for: the hash of the content of each by its key. Empty in
    /// panels of earlier versions, which were trained for `ace_m3`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rubrics: BTreeMap<String, String>,
    /// Reward tokens by member name, for members that were trained with one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reward_tokens: BTreeMap<String, String>,
    /// Tokens of rejected evaluations by member name, for a training that starts from the panel.
    /// Judging does not use them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bad_reward_tokens: BTreeMap<String, String>,
    /// Chat template of the members (default: none).
    #[serde(default, skip_serializing_if = "ChatTemplate::is_plain")]
    pub dialogue: ChatTemplate,
    /// Image preprocessing; unused by a text model.
    pub processor: ImageProcessor,
    /// Configuration of each member.
    pub model: ModelConfig,
    /// Weight files of each member; together they contain all its tensors.
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
    /// Returns the names and files of the four members, in the order of
    /// [`MEMBERS`](super::prompt_config::MEMBERS).
    pub fn members(&self) -> [(&'static str, &[String]); 4] {
        [
            ("expression", &self.expression),
            ("medical_knowledge", &self.medical_knowledge),
            ("patient_relevance", &self.patient_relevance),
            ("conclusion", &self.conclusion),
        ]
    }
}

impl From<[Vec<String>; 4]> for MemberFiles {
    /// Converts four lists in the order of [`MemberFiles::members`].
    fn from(files: [Vec<String>; 4]) -> Self {
        let [expression, medical_knowledge, patient_relevance, conclusion] = files;
        Self { expression, medical_knowledge, patient_relevance, conclusion }
    }
}

/// Maximum token budget of an analysis. Published judges write up to 512.
const MAX_ANALYSIS_TOKENS: usize = 8192;

/// Checks the token budget of an analysis.
///
/// # Errors
///
/// It is out of range.
pub(super) fn check_analysis_tokens(tokens: usize) -> Result<()> {
    if (1..=MAX_ANALYSIS_TOKENS).contains(&tokens) {
        return Ok(());
    }
    bail!("analysis_tokens is {tokens}, expected 1 to {MAX_ANALYSIS_TOKENS}")
}

impl PanelSpec {
    /// The schema version that acem3 writes.
    pub const SCHEMA: u32 = 1;

    /// Returns the reward token of each member in the order of
    /// [`MemberFiles::members`]; empty for none.
    pub fn completion_prefixes(&self) -> [String; 4] {
        let reward_token = |(name, _)| self.reward_tokens.get(name).cloned().unwrap_or_default();
        self.members.members().map(reward_token)
    }

    /// Returns the token of rejected evaluations of each member in the order of
    /// [`MemberFiles::members`]; empty if the panel does not state it.
    pub fn rejected_prefixes(&self) -> [String; 4] {
        let token = |(name, _)| self.bad_reward_tokens.get(name).cloned().unwrap_or_default();
        self.members.members().map(token)
    }

    /// Reads and checks a specification.
    pub fn parse(text: &str) -> Result<Self> {
        let spec: Self = toml::from_str(text).context("not a panel specification")?;
        if spec.schema != Self::SCHEMA {
            bail!("schema is {}, expected {}", spec.schema, Self::SCHEMA);
        }
        if let Err(problem) = spec.model.validate() {
            bail!("model.{problem}");
        }
        for name in spec.members.members().into_iter().flat_map(|(_, files)| files) {
            let is_file_name = Path::new(name).components().eq([Component::Normal(name.as_ref())]);
            if !is_file_name {
                bail!("members: `{name}`, expected the name of a file in the panel's folder");
            }
        }
        let members = spec.members.members();
        let is_member = |name: &String| members.iter().any(|(member, _)| member == name);
        for (key, tokens) in
            [("reward_tokens", &spec.reward_tokens), ("bad_reward_tokens", &spec.bad_reward_tokens)]
        {
            if let Some(name) = tokens.keys().find(|name| !is_member(name)) {
                bail!("{key}: unknown member {name:?}");
            }
        }
        check_analysis_tokens(spec.analysis_tokens)?;
        spec.processor.validate().context("processor")?;
        Ok(spec)
    }
}
