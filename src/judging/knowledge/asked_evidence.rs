//! The questions of a judge inside its evaluations, with the evidence that it read.

use std::path::Path;

use acem3_experts::prompt::{AnsweredQuestion, KnowledgePrompt};
use anyhow::{Result, bail};

use super::judge_knowledge::JudgeKnowledge;
use crate::judging::judge::recorded_verdict::RecordedLookup;
use crate::judging::provenance::Provenance;

/// Writes questions and evidence into evaluations.
#[derive(Clone, Debug)]
pub struct AskedEvidence {
    knowledge: JudgeKnowledge,
    prompt: KnowledgePrompt,
}

impl AskedEvidence {
    /// Prepares the questions that are looked up in an index.
    ///
    /// # Errors
    ///
    /// The texts around evidence are damaged.
    pub fn new(knowledge: JudgeKnowledge) -> Result<Self> {
        Ok(Self { knowledge, prompt: KnowledgePrompt::built_in()? })
    }

    /// Prepares the questions of a run, whose judge looked up the documents of an index.
    ///
    /// # Errors
    ///
    /// The judge of the run had no knowledge, other documents or other limits.
    pub fn of_run(knowledge: JudgeKnowledge, run: &Path, provenance: &Provenance) -> Result<Self> {
        let run = run.display();
        match JudgeKnowledge::identity_in(provenance) {
            None => bail!("{run}: judged without --knowledge\nhint: omit --knowledge"),
            Some(found) if found != knowledge.identity() => bail!(
                "{run}: judged with the knowledge {found}, got --knowledge with {}\n\
                 hint: pass the index and the limits (--knowledge-rounds, --knowledge-passages, \
                 --knowledge-tokens) of the run",
                knowledge.identity()
            ),
            Some(_) => Self::new(knowledge),
        }
    }

    /// Returns the index with its limits.
    pub(crate) fn knowledge(&self) -> &JudgeKnowledge {
        &self.knowledge
    }

    /// Returns an analysis with its questions and the evidence for them, as a member writes it.
    ///
    /// # Errors
    ///
    /// The index cannot be read.
    pub(crate) fn render(&self, analysis: &str, lookups: &[RecordedLookup]) -> Result<String> {
        let answer = |lookup: &RecordedLookup| {
            let passages = self.knowledge.find_text(&lookup.question)?.text;
            let RecordedLookup { question, position, .. } = lookup.clone();
            Ok(AnsweredQuestion { position, question, passages })
        };
        let questions = lookups.iter().map(answer).collect::<Result<Vec<_>>>()?;
        Ok(self.prompt.render_analysis(analysis, &questions))
    }
}
