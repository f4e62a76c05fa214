//! The specification of a panel: `panel.toml`.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use acem3_experts::ModelConfig;
use acem3_experts::prompt::{ChatTemplate, Form, PromptLayout, RubricDetail};
use acem3_vision::ImageProcessor;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::member_files::MemberFiles;
use super::prompt_config::{CONCLUSION, MEMBERS};
use super::sample_count::SampleCount;
use super::trained_forms::TrainedForms;
use crate::support::terminal::exit::with_hint;

/// Name of the specification file.
pub const PANEL_FILE: &str = "panel.toml";
/// Name of the tokenizer file.
pub const TOKENIZER_FILE: &str = "tokenizer.json";
/// Name of the file with the weights that all members of a trained panel share.
pub(crate) const TRUNK_FILE: &str = "trunk.safetensors";

/// Returns the names of the weight files of a member of a trained panel.
pub(crate) fn trained_weight_files(member: &str) -> Vec<String> {
    vec![TRUNK_FILE.to_owned(), format!("{member}.safetensors")]
}

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
    /// Number of samples of each analysis, unless a run asks for another (default: 1).
    #[serde(default, skip_serializing_if = "SampleCount::is_one")]
    pub samples: SampleCount,
    /// Text that ends the finding at the start of the first analysis of medical knowledge. If it is set, both
    /// presentation orders of a pair share this finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding_end: Option<String>,
    /// The rubrics that it was trained for: the hash of the content of each by its key. Empty in
    /// panels of earlier versions, which were trained for `ace_m3`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rubrics: BTreeMap<String, String>,
    /// The forms of judging that it was trained for (default: pairs).
    #[serde(default = "pairs_only", skip_serializing_if = "is_pairs_only")]
    pub forms: Vec<Form>,
    /// True if it was trained on prompts that show the reference answer.
    #[serde(default, rename = "reference", skip_serializing_if = "std::ops::Not::not")]
    pub shows_reference: bool,
    /// Keys of the aspects that the experts score, in order (default: those of the rubric `ace_m3`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<[String; 3]>,
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
    /// Weight files of each member by name; together they contain all its tensors.
    pub members: MemberFiles,
}

fn pairs_only() -> Vec<Form> {
    TrainedForms::default().forms
}

fn is_pairs_only(forms: &[Form]) -> bool {
    forms == pairs_only()
}

/// Maximum token budget of an analysis. Published judges write up to 512.
const MAX_ANALYSIS_TOKENS: usize = 8192;

/// Checks the token budget of an analysis.
///
/// # Errors
///
/// It is out of range.
pub(crate) fn check_analysis_tokens(tokens: usize) -> Result<()> {
    if (1..=MAX_ANALYSIS_TOKENS).contains(&tokens) {
        return Ok(());
    }
    bail!("analysis_tokens is {tokens}, expected 1 to {MAX_ANALYSIS_TOKENS}")
}

/// Checks the text that marks the end of a finding.
///
/// # Errors
///
/// It is empty or has a control character, such as a line break.
pub(crate) fn check_finding_end(end: &str) -> Result<()> {
    if end.trim().is_empty() || end.contains(char::is_control) {
        bail!("finding_end is {end:?}, expected a part of a line, such as \";\"");
    }
    Ok(())
}

impl PanelSpec {
    /// The schema version that acem3 writes.
    pub const SCHEMA: u32 = 1;

    /// Returns the names of the members: the experts in the order of the rubric, then the conclusion
    /// model.
    pub fn member_names(&self) -> [&str; 4] {
        match &self.experts {
            Some([first, second, third]) => [first, second, third, CONCLUSION],
            None => MEMBERS,
        }
    }

    /// Returns the names and files of the members, in order.
    pub fn members(&self) -> [(&str, &[String]); 4] {
        self.member_names().map(|name| (name, self.members.of(name)))
    }

    /// Returns the reward token of each member, in order; empty for none.
    pub fn completion_prefixes(&self) -> [String; 4] {
        self.member_names().map(|name| self.reward_tokens.get(name).cloned().unwrap_or_default())
    }

    /// Returns the forms of judging that the panel was trained for.
    pub(crate) fn trained_forms(&self) -> TrainedForms {
        TrainedForms { forms: self.forms.clone(), shows_reference: self.shows_reference }
    }

    /// Returns the token of rejected evaluations of each member, in order; empty if the panel does not
    /// state it.
    pub fn rejected_prefixes(&self) -> [String; 4] {
        let token = |name: &str| self.bad_reward_tokens.get(name).cloned().unwrap_or_default();
        self.member_names().map(token)
    }

    /// Reads and checks a specification.
    pub fn parse(text: &str) -> Result<Self> {
        let spec: Self = toml::from_str(text)
            .context("not a panel specification")
            .map_err(|error| with_hint(error, "correct the file, or write the panel again"))?;
        if spec.schema != Self::SCHEMA {
            bail!(
                "schema is {}, expected {}\n\
                 hint: a newer version of acem3 may have written the panel",
                spec.schema,
                Self::SCHEMA
            );
        }
        if let Err(problem) = spec.model.validate() {
            bail!("model.{problem}");
        }
        spec.members.check(spec.member_names()).context("members")?;
        for name in spec.members().into_iter().flat_map(|(_, files)| files) {
            let is_file_name = Path::new(name).components().eq([Component::Normal(name.as_ref())]);
            if !is_file_name {
                bail!("members: `{name}`, expected the name of a file in the panel's folder");
            }
        }
        let names = spec.member_names();
        let is_member = |name: &String| names.contains(&name.as_str());
        for (key, tokens) in
            [("reward_tokens", &spec.reward_tokens), ("bad_reward_tokens", &spec.bad_reward_tokens)]
        {
            if let Some(name) = tokens.keys().find(|name| !is_member(name)) {
                bail!("{key}: unknown member {name:?}");
            }
        }
        if spec.forms.is_empty() {
            bail!("forms is empty, expected the forms of judging that the panel was trained for");
        }
        check_analysis_tokens(spec.analysis_tokens)?;
        spec.finding_end.as_deref().map_or(Ok(()), check_finding_end)?;
        spec.processor.validate().context("processor")?;
        Ok(spec)
    }
}
