//! The layout of prompts, and the amount of the rubric in them.

use acem3_experts::prompt::{PromptLayout, RubricDetail};
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

/// The amount of the rubric in prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RubricDetailArg {
    /// Names, definitions and the meaning of each score
    Full,
    /// Names of the criteria
    Names,
}

impl From<RubricDetailArg> for RubricDetail {
    fn from(detail: RubricDetailArg) -> Self {
        match detail {
            RubricDetailArg::Full => Self::Full,
            RubricDetailArg::Names => Self::Names,
        }
    }
}
