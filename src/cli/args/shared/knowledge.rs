//! Knowledge completion of a judge.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use super::value_parsers::parse_at_least_one;
use crate::judging::knowledge::{JudgeKnowledge, KnowledgeSettings};

/// Arguments of knowledge completion.
#[derive(Args, Clone, Debug)]
pub struct KnowledgeArgs {
    /// Let the judge look up what it asks: a member that ends a line of an analysis with
    /// `[Question]: ...` reads the best passages of this index and continues; `acem3 data index`
    /// builds one
    #[arg(long, value_name = "INDEX", env = "ACEM3_KNOWLEDGE")]
    pub knowledge: Option<PathBuf>,
    /// Answer at most N questions in one evaluation
    #[arg(
        long,
        value_name = "N",
        default_value_t = KnowledgeSettings::default().rounds as u16,
        env = "ACEM3_KNOWLEDGE_ROUNDS",
        value_parser = parse_at_least_one::<u16>
    )]
    pub knowledge_rounds: u16,
    /// Show at most N passages for a question
    #[arg(
        long,
        value_name = "N",
        default_value_t = KnowledgeSettings::default().passages as u16,
        env = "ACEM3_KNOWLEDGE_PASSAGES",
        value_parser = parse_at_least_one::<u16>
    )]
    pub knowledge_passages: u16,
    /// Show at most N tokens of the passages for a question, and fewer if the context is full
    #[arg(
        long,
        value_name = "N",
        default_value_t = KnowledgeSettings::default().evidence_tokens as u32,
        env = "ACEM3_KNOWLEDGE_TOKENS"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    pub knowledge_tokens: u32,
}

impl KnowledgeArgs {
    /// Opens the index, if there is one.
    ///
    /// # Errors
    ///
    /// The folder is no index, or limits are set without an index.
    pub fn open(&self) -> Result<Option<JudgeKnowledge>> {
        if self.has_unused_limits() {
            bail!(
                "--knowledge-rounds, --knowledge-passages and --knowledge-tokens have no effect without an \
                 index\nhint: pass --knowledge with the folder of an index"
            );
        }
        let settings = KnowledgeSettings {
            rounds: usize::from(self.knowledge_rounds),
            passages: usize::from(self.knowledge_passages),
            evidence_tokens: self.knowledge_tokens as usize,
        };
        self.knowledge.as_ref().map(|folder| JudgeKnowledge::open(folder, settings)).transpose()
    }

    /// Returns true if limits are set and no index, so that they have no effect.
    fn has_unused_limits(&self) -> bool {
        let default = KnowledgeSettings::default();
        self.knowledge.is_none()
            && (usize::from(self.knowledge_rounds) != default.rounds
                || usize::from(self.knowledge_passages) != default.passages
                || self.knowledge_tokens as usize != default.evidence_tokens)
    }
}
