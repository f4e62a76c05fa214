//! Knowledge completion: a member that asks a question in an analysis reads evidence and continues
//! (Algorithm 1 of AutoMedEval, where the teacher is asked again with what was found).

use std::fmt;
use std::sync::Arc;

use crate::evaluation::Lookup;
use crate::prompt::{KnowledgePrompt, STOP};
use crate::{Error, TextTokenizer};

/// Fewer tokens of evidence say nothing, so that a question stays without an answer.
const MIN_EVIDENCE_TOKENS: usize = 16;

/// A text that answers a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidencePassage {
    /// Its id, for the record.
    pub id: String,
    /// Its text.
    pub text: String,
}

/// Where evidence comes from. This crate reads no files.
pub trait KnowledgeSource: Send + Sync {
    /// Returns the best passages for a question, best first. Equal questions give equal passages.
    ///
    /// # Errors
    /// The message says why the passages cannot be read.
    fn find(&self, question: &str) -> Result<Vec<EvidencePassage>, String>;
}

/// Limits on questions and evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnowledgeLimits {
    /// Maximum number of questions in one evaluation.
    pub rounds: usize,
    /// Maximum number of tokens of the passages for one question.
    pub evidence_tokens: usize,
}

/// Knowledge completion of an engine.
#[derive(Clone)]
pub struct KnowledgeCompletion {
    source: Arc<dyn KnowledgeSource>,
    limits: KnowledgeLimits,
    prompt: KnowledgePrompt,
    /// Tokens before the passages.
    lead: Vec<u32>,
    /// Tokens after the passages.
    end: Vec<u32>,
}

/// Tokens that a member reads after its question.
pub(super) struct Evidence {
    pub(super) tokens: Vec<u32>,
    pub(super) lookup: Lookup,
}

impl KnowledgeCompletion {
    /// Creates the completion of members with a tokenizer.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the texts around the evidence.
    pub fn new(
        source: Arc<dyn KnowledgeSource>,
        limits: KnowledgeLimits,
        tokenizer: &TextTokenizer,
    ) -> Result<Self, Error> {
        let prompt = KnowledgePrompt::built_in()?;
        let lead = tokenizer.encode_trusted(&prompt.evidence)?;
        let mut end = tokenizer.encode_quoted(STOP)?;
        end.extend(tokenizer.encode_trusted(&prompt.resume)?);
        Ok(Self { source, limits, prompt, lead, end })
    }

    /// Returns the maximum number of questions in one evaluation.
    pub(super) fn rounds(&self) -> usize {
        self.limits.rounds
    }

    /// Returns the maximum number of tokens of all evidence in one evaluation.
    pub(super) fn max_tokens(&self) -> usize {
        let round = self.lead.len() + self.limits.evidence_tokens + self.end.len();
        self.limits.rounds.saturating_mul(round)
    }

    /// Looks a question up. Returns `None` if `room` tokens are too few for evidence.
    pub(super) fn find_evidence(
        &self,
        question: &str,
        room: usize,
        tokenizer: &TextTokenizer,
    ) -> Result<Option<Evidence>, Error> {
        let room = room.saturating_sub(self.lead.len() + self.end.len());
        let room = room.min(self.limits.evidence_tokens);
        if room < MIN_EVIDENCE_TOKENS {
            return Ok(None);
        }
        let passages = self.source.find(question).map_err(Error::Knowledge)?;
        let mut tokens = Vec::new();
        let mut lookup =
            Lookup { question: question.to_owned(), passages: Vec::new(), position: 0 };
        for EvidencePassage { id, text } in passages {
            if tokens.len() >= room {
                break;
            }
            tokens.extend(tokenizer.encode_quoted(&to_evidence_line(&text))?);
            lookup.passages.push(id);
        }
        if tokens.is_empty() {
            tokens = tokenizer.encode_quoted(&to_evidence_line(&self.prompt.nothing_found))?;
        }
        tokens.truncate(room);
        let tokens = [&self.lead, &tokens, &self.end].into_iter().flatten().copied().collect();
        Ok(Some(Evidence { tokens, lookup }))
    }
}

/// Returns a passage after a space, on one line: a line break ends the evidence.
fn to_evidence_line(text: &str) -> String {
    format!(" {}", crate::prompt::one_line(text))
}

impl fmt::Debug for KnowledgeCompletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnowledgeCompletion").field("limits", &self.limits).finish_non_exhaustive()
    }
}
