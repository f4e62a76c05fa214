//! How the members of a panel are prompted.

use acem3_experts::prompt::{Form, PromptLayout, RubricDetail};
use anyhow::{Result, bail};

/// Prompt configuration of a panel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PromptConfig {
    /// The panel's name in tables and records.
    pub name: String,
    /// True if the members were trained on the prompts of acem3: they know pairs without a reference
    /// answer only. Published models have not seen these prompts and take any form.
    pub is_trained: bool,
    /// The prompt layout.
    pub layout: PromptLayout,
    /// Level of detail of the rubric in prompts.
    pub rubric: RubricDetail,
    /// Token budget of one analysis.
    pub analysis_tokens: usize,
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
    /// The panel was trained for pairs without a reference answer.
    pub(crate) fn check_form(&self, form: Form, shows_reference: bool) -> Result<()> {
        if !self.is_trained || (form.is_pair() && !shows_reference) {
            return Ok(());
        }
        let asked = if form.is_pair() {
            "--reference show".to_owned()
        } else {
            format!("--form {}", form.name())
        };
        bail!(
            "{asked}: the panel {} was trained for pairs of responses without the reference answer; \
             its other verdicts would mean nothing\n\
             hint: judge with a published model, such as --panel FOLDER of a LLaVA checkpoint, or \
             judge pairs",
            self.name
        )
    }
}

/// Name of the conclusion model.
pub const CONCLUSION: &str = "conclusion";

/// The names of the four members of the rubric of ACE-M³, in order.
pub const MEMBERS: [&str; 4] = ["expression", "medical_knowledge", "patient_relevance", CONCLUSION];
