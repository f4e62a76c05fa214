//! How the members of a panel are prompted.

use acem3_experts::prompt::{Detail, Layout};

/// How the members are asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PromptConfig {
    /// The panel's name in tables and records.
    pub name: String,
    /// The prompt layout.
    pub layout: Layout,
    /// How much of the rubric prompts spell out.
    pub rubric: Detail,
    /// Most tokens of one analysis.
    pub analysis_tokens: usize,
    /// What the text of each member begins with: reward tokens, or nothing.
    pub leads: [String; 4],
}

/// The names of the four members, in order.
pub const MEMBERS: [&str; 4] = [
    "expression",
    "medical_knowledge",
    "patient_relevance",
    "conclusion",
];
