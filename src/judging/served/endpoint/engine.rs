//! Serving engines: how each takes a constraint and returns probabilities.

use clap::ValueEnum;

/// An engine that serves models over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServingEngine {
    /// vLLM, 0.11 or later
    #[value(name = "vllm")]
    Vllm,
    /// SGLang
    #[value(name = "sglang")]
    Sglang,
    /// llama-server of llama.cpp
    #[value(name = "llama.cpp")]
    LlamaCpp,
    /// Any other host with the interface of OpenAI: one JSON schema, no other constraint
    #[value(name = "openai")]
    OpenAi,
}

/// The notation in which an engine takes the format of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstraintNotation {
    /// A regular expression.
    Regex,
    /// A grammar in llama.cpp's GBNF.
    Grammar,
    /// A JSON schema.
    JsonSchema,
}

impl ServingEngine {
    /// Returns the engine with a name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|engine| engine.name() == name)
    }

    /// Returns the name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::LlamaCpp => "llama.cpp",
            Self::OpenAi => "openai",
        }
    }

    /// Returns the notation of constraints.
    pub fn notation(self) -> ConstraintNotation {
        match self {
            Self::Vllm | Self::Sglang => ConstraintNotation::Regex,
            Self::LlamaCpp => ConstraintNotation::Grammar,
            Self::OpenAi => ConstraintNotation::JsonSchema,
        }
    }

    /// Returns the number of alternatives per token to request. Servers of OpenAI's interface return at
    /// most 20; llama.cpp has no limit, and returns probabilities before the constraint, in which
    /// the scores may be improbable.
    pub fn alternatives(self) -> u32 {
        match self {
            Self::Vllm | Self::Sglang | Self::OpenAi => 20,
            Self::LlamaCpp => 64,
        }
    }
}
