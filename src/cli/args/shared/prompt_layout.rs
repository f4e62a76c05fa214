//! The layout of prompts.

use acem3_experts::prompt::PromptLayout;
use clap::ValueEnum;

/// The layout of prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PromptLayoutArg {
    /// Criteria first, as in the training of the ACE-M³ paper
    Paper,
    /// Image, question and responses first, as in the embedded panel's training
    CaseFirst,
}

impl From<PromptLayoutArg> for PromptLayout {
    fn from(layout: PromptLayoutArg) -> Self {
        match layout {
            PromptLayoutArg::Paper => Self::Paper,
            PromptLayoutArg::CaseFirst => Self::CaseFirst,
        }
    }
}
