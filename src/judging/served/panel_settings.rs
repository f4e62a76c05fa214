//! Settings of a panel with served members: prompts, members and options.

use acem3_experts::TextTokenizer;
use acem3_experts::prompt::{PromptForm, PromptLayout, RubricDetail};
use anyhow::{Context as _, Result};

use super::endpoint::ServedModel;
use super::exchange::token_constraint::TokenConstraint;
use crate::judging::panel::{JudgeOptions, PanelOptions};

/// Prompts and members of a served panel.
#[derive(Clone, Debug)]
pub struct ServedPanelSettings {
    /// The panel's name in tables and records.
    pub name: String,
    /// The prompt layout.
    pub layout: PromptLayout,
    /// Level of detail of the rubric in prompts.
    pub detail: RubricDetail,
    /// True if the members were trained on the prompts of acem3.
    pub is_trained: bool,
    /// Token budget of one analysis.
    pub analysis_tokens: usize,
    /// The tokenizer of the members, if the server must write the tokens of a local member.
    pub tokenizer: Option<TextTokenizer>,
    /// Text at the start of each member's evaluation: a reward token, or nothing.
    pub completion_prefixes: Vec<String>,
    /// True to request the label mass of every score from servers that return probabilities after the
    /// constraint.
    pub requests_label_mass: bool,
    /// The members: the experts in the order of the aspects, then the conclusion model.
    pub members: Vec<PanelMember>,
    /// Form, rubric, and whether prompts show the reference.
    pub options: PanelOptions,
    /// Options of the run.
    pub run: JudgeOptions,
}

/// How a member of a panel runs.
#[derive(Clone, Debug, PartialEq)]
pub enum PanelMember {
    /// A server runs it.
    Served {
        /// The model.
        model: ServedModel,
        /// True if it sees no images: it judges from the texts alone.
        text_only: bool,
    },
    /// This process computes it.
    Local,
    /// It does not judge in this form.
    Unused,
}

impl ServedPanelSettings {
    /// Returns the constraint on tokens, if there is a tokenizer.
    pub(super) fn token_constraint(&self) -> Result<Option<TokenConstraint>> {
        let budget = if self.options.scores_only { 0 } else { self.analysis_tokens };
        let constraint = self.tokenizer.clone().map(|t| TokenConstraint::new(t, budget));
        constraint.transpose().context("the tokenizer cannot be used")
    }

    /// Returns the form of the prompts.
    pub(super) fn prompt_form(&self) -> PromptForm {
        PromptForm {
            form: self.options.form,
            layout: self.layout,
            shows_reference: self.options.shows_reference,
            is_trained: self.is_trained,
            offers_knowledge: self.options.knowledge.is_some(),
        }
        .for_rubric(self.options.rubric.as_deref())
    }
}
