//! How the members of a panel are prompted.

use acem3_experts::prompt::{Form, PromptLayout, RubricDetail};
use anyhow::Result;

use super::sample_count::SampleCount;
use super::trained_forms::TrainedForms;

/// Prompt configuration of a panel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PromptConfig {
    /// The panel's name in tables and records.
    pub name: String,
    /// The forms that the members were trained for, on the prompts of acem3. `None` for published models,
    /// which have not seen these prompts and take any form.
    pub trained_forms: Option<TrainedForms>,
    /// The prompt layout.
    pub layout: PromptLayout,
    /// Level of detail of the rubric in prompts.
    pub rubric: RubricDetail,
    /// Token budget of one analysis.
    pub analysis_tokens: usize,
    /// Number of samples of each analysis, unless a run asks for another.
    pub samples: SampleCount,
    /// Text that ends the finding at the start of the first analysis of medical knowledge.
    pub finding_end: Option<String>,
    /// Prefix of the text of each member: a reward token, or nothing.
    pub completion_prefixes: Vec<String>,
    /// Reward token of rejected evaluations of each member, for a training that starts from the
    /// panel; empty if unknown.
    pub rejected_prefixes: Vec<String>,
}

impl PromptConfig {
    /// Checks that the panel can judge in a form.
    ///
    /// # Errors
    ///
    /// The panel was trained for others.
    pub(crate) fn check_form(&self, form: Form, shows_reference: bool) -> Result<()> {
        match &self.trained_forms {
            Some(trained) => trained.check(form, shows_reference, &self.name),
            None => Ok(()),
        }
    }

    /// Returns true if the members were trained on the prompts of acem3.
    pub(crate) fn is_trained(&self) -> bool {
        self.trained_forms.is_some()
    }
}

/// Name of the conclusion model.
pub const CONCLUSION: &str = "conclusion";

/// The names of the four members of the rubric of ACE-M³, in order.
pub const MEMBERS: [&str; 4] = ["expression", "medical_knowledge", "patient_relevance", CONCLUSION];
