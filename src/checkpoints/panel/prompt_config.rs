//! How the members of a panel are prompted.

use acem3_experts::prompt::{PromptLayout, RubricDetail};

/// Prompt configuration of a panel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PromptConfig {
    /// The panel's name in tables and records.
    pub name: String,
    /// The prompt layout.
    pub layout: PromptLayout,
    /// Level of detail of the rubric in prompts.
    pub rubric: RubricDetail,
    /// Token budget of one analysis.
    pub analysis_tokens: usize,
    /// Prefix of the text of each member: a reward token, or nothing.
    pub completion_prefixes: [String; 4],
}

/// The names of the four members, in order.
pub const MEMBERS: [&str; 4] =
    ["expression", "medical_knowledge", "patient_relevance", "conclusion"];
