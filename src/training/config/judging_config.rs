//! What the trained panel judges: the table `[judging]`.

use std::path::Path;

use acem3_experts::prompt::{Form, Rubric};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::checkpoints::panel::member_names::MemberNames;
use crate::checkpoints::panel::sample_count::SampleCount;
use crate::checkpoints::panel::spec::{check_analysis_tokens, check_finding_end};
use crate::checkpoints::panel::trained_forms::TrainedForms;
use crate::checkpoints::panel::trained_rubrics::declare_rubric;
use crate::support::files::regular_file;

/// Key of the rubric of generated examples.
const ACE_M3: &str = "ace_m3";

/// Words in the names of training files, such as `STAGE.best.safetensors`. Files of members have the form
/// `STAGE.MEMBER.safetensors`, so no member may have such a name.
const FILE_WORDS: [&str; 6] = ["adapters", "best", "own", "panel", "reference", "running"];

/// Rubric and forms of judging that a panel is trained for. Generated examples are pairs without a
/// reference answer, by the rubric of ACE-M³; for others, all stages read files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JudgingConfig {
    /// Key of a built-in rubric, or a rubric file, relative to the configuration.
    pub rubric: String,
    /// Hash of the content of the rubric. The program sets it when it reads the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rubric_sha256: Option<String>,
    /// Forms of judging.
    pub forms: Vec<Form>,
    /// True if the prompts show the reference answer.
    #[serde(rename = "reference")]
    pub shows_reference: bool,
    /// Token budget of an analysis; by default that of the initial model if a stage trains on a file
    /// of evaluations (128 for a published model), else 48, which is enough for generated ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis_tokens: Option<usize>,
    /// Number of samples of each analysis, unless a run asks for another; by default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleCount>,
    /// Text that ends the finding at the start of the first analysis of medical knowledge. If it is set, both
    /// presentation orders of a pair share this finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding_end: Option<String>,
}

impl Default for JudgingConfig {
    fn default() -> Self {
        let TrainedForms { forms, shows_reference } = TrainedForms::default();
        Self {
            rubric: ACE_M3.to_owned(),
            rubric_sha256: None,
            forms,
            shows_reference,
            analysis_tokens: None,
            samples: None,
            finding_end: None,
        }
    }
}

impl JudgingConfig {
    /// Returns true if a configuration without the table has these values.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true for the rubric of ACE-M³.
    pub(crate) fn has_rubric_of_ace_m3(&self) -> bool {
        self.rubric == ACE_M3
    }

    /// Returns true if generated examples have this rubric and these forms.
    pub(crate) fn takes_generated_examples(&self) -> bool {
        self.has_rubric_of_ace_m3() && self.trained_forms() == TrainedForms::default()
    }

    /// Returns the forms of judging.
    pub(crate) fn trained_forms(&self) -> TrainedForms {
        TrainedForms { forms: self.forms.clone(), shows_reference: self.shows_reference }
    }

    /// Reads the rubric.
    ///
    /// # Errors
    /// There is no such rubric, or the file contains no rubric.
    pub fn to_rubric(&self) -> Result<Rubric> {
        if let Some(rubric) = Rubric::by_key(&self.rubric)? {
            return Ok(rubric);
        }
        let name = || format!("[judging]: rubric {}", self.rubric);
        if !Path::new(&self.rubric).is_file() {
            bail!(
                "{}: no such file and no built-in rubric, expected {} or a TOML file\n\
                 hint: assets/guide/forms.md shows a rubric file",
                name(),
                Rubric::built_in_keys()?.join(", ")
            );
        }
        let text = regular_file::read_to_string(Path::new(&self.rubric)).with_context(name)?;
        Rubric::parse(&text).with_context(|| {
            format!("{}: not a rubric\nhint: assets/guide/forms.md shows a rubric file", name())
        })
    }

    /// Returns the names of the members.
    ///
    /// # Errors
    /// The rubric cannot be read, or does not fit a panel.
    pub(crate) fn member_names(&self) -> Result<MemberNames> {
        let names = MemberNames::of_rubric(&self.to_rubric()?).context("[judging]")?;
        if let Some(name) = names.all().into_iter().find(|name| FILE_WORDS.contains(name)) {
            bail!(
                "[judging]: the rubric has the aspect `{name}`, a word in the names of training files\n\
                 hint: give the aspect another key in the rubric"
            );
        }
        Ok(names)
    }

    /// Resolves the path of the rubric against the folder of the configuration file, and records the
    /// hash of the rubric. Returns the names of the members.
    ///
    /// # Errors
    /// There is no such rubric, or it does not fit a panel, or another value is out of range.
    pub(super) fn resolve(&mut self, folder: &Path) -> Result<MemberNames> {
        if self.forms.is_empty() {
            bail!("[judging]: forms is empty, expected pair, single, list or correctness");
        }
        if let Some(tokens) = self.analysis_tokens {
            check_analysis_tokens(tokens).context("[judging]")?;
        }
        if let Some(end) = &self.finding_end {
            check_finding_end(end).context("[judging]")?;
        }
        if Rubric::by_key(&self.rubric)?.is_none() {
            self.rubric = folder.join(&self.rubric).display().to_string();
        }
        if !self.has_rubric_of_ace_m3() {
            self.rubric_sha256 = Some(declare_rubric(&self.to_rubric()?).1);
        }
        self.member_names()
    }
}
