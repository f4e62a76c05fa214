//! An open index with the limits of a judge.

use std::path::Path;
use std::sync::Arc;

use acem3_experts::generate::{
    EvidencePassage, KnowledgeCompletion, KnowledgeLimits, KnowledgeSource,
};
use acem3_experts::prompt::KnowledgePrompt;
use acem3_experts::{Error, TextTokenizer};
use anyhow::{Context as _, Result};

use crate::data::knowledge::KnowledgeIndex;
use crate::judging::provenance::Provenance;
use crate::support::digest::Digest;

/// How many questions a judge may ask, and what it reads about each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnowledgeSettings {
    /// Maximum number of questions in one evaluation.
    pub rounds: usize,
    /// Maximum number of passages for one question.
    pub passages: usize,
    /// Maximum number of tokens of these passages.
    pub evidence_tokens: usize,
}

impl Default for KnowledgeSettings {
    fn default() -> Self {
        Self { rounds: 3, passages: 3, evidence_tokens: 384 }
    }
}

/// Characters of evidence for each token of its limit. Used where the model's tokenizer is not known.
const CHARACTERS_PER_TOKEN: usize = 4;

/// The evidence for a question as one text, for a model whose tokenizer is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EvidenceText {
    /// Ids of the passages.
    pub(crate) ids: Vec<String>,
    /// The passages, on one line; empty if none was found.
    pub(crate) text: String,
}

/// Entry of a provenance with the hash of the documents.
const DOCUMENTS: &str = "knowledge";
/// Entry of a provenance with the settings.
const LIMITS: &str = "knowledge limits";

/// An open index with the settings of a judge. Clones share the index.
#[derive(Clone, Debug)]
pub struct JudgeKnowledge {
    index: Arc<KnowledgeIndex>,
    settings: KnowledgeSettings,
}

impl PartialEq for JudgeKnowledge {
    /// Equal documents and settings give equal evidence.
    fn eq(&self, other: &Self) -> bool {
        self.index.digest() == other.index.digest() && self.settings == other.settings
    }
}

impl Eq for JudgeKnowledge {}

impl JudgeKnowledge {
    /// Opens an index.
    ///
    /// # Errors
    ///
    /// The folder is no index, or is damaged.
    pub fn open(folder: &Path, settings: KnowledgeSettings) -> Result<Self> {
        let index = KnowledgeIndex::open(folder).context("--knowledge")?;
        Ok(Self { index: Arc::new(index), settings })
    }

    /// Returns the settings.
    pub fn settings(&self) -> KnowledgeSettings {
        self.settings
    }

    /// Returns the evidence for a question.
    ///
    /// # Errors
    ///
    /// The index cannot be read.
    pub fn find(&self, question: &str) -> Result<Vec<EvidencePassage>> {
        let passages = self.index.search(question, self.settings.passages)?;
        let evidence = passages.into_iter().map(|passage| {
            let text = passage.to_evidence();
            EvidencePassage { id: passage.id, text }
        });
        Ok(evidence.collect())
    }

    /// Returns the evidence for a question as one text.
    ///
    /// # Errors
    ///
    /// The index cannot be read.
    pub(crate) fn find_text(&self, question: &str) -> Result<EvidenceText> {
        let mut room = self.settings.evidence_tokens * CHARACTERS_PER_TOKEN;
        let (mut ids, mut texts) = (Vec::new(), Vec::new());
        for passage in self.find(question)? {
            if room == 0 {
                break;
            }
            let text: String = passage.text.chars().take(room).collect();
            room -= text.chars().count();
            ids.push(passage.id);
            texts.push(text);
        }
        Ok(EvidenceText { ids, text: texts.join(" ") })
    }

    /// Returns the completion for members with a tokenizer.
    pub(in crate::judging) fn to_completion(
        &self,
        tokenizer: &TextTokenizer,
    ) -> Result<KnowledgeCompletion, Error> {
        let KnowledgeSettings { rounds, evidence_tokens, .. } = self.settings;
        let limits = KnowledgeLimits { rounds, evidence_tokens };
        KnowledgeCompletion::new(Arc::new(self.clone()), limits, tokenizer)
    }

    /// Returns the hash of the documents and the settings: everything that can change the evidence.
    pub(crate) fn identity(&self) -> String {
        format!("{}, {}", self.index.digest(), self.describe_limits())
    }

    /// Returns the same text for the knowledge of a judge with this provenance; `None` without
    /// knowledge.
    pub(crate) fn identity_in(provenance: &Provenance) -> Option<String> {
        let [documents, limits] = [DOCUMENTS, LIMITS].map(|name| provenance.get(name));
        Some(format!("{}, {}", documents?, limits?))
    }

    /// Returns the settings in a short form, so that messages about differences show all of it.
    fn describe_limits(&self) -> String {
        let KnowledgeSettings { rounds, passages, evidence_tokens } = self.settings;
        format!("T={rounds} K={passages}, {evidence_tokens} tokens")
    }

    /// Adds the documents of the index, the settings and the texts around evidence to what can
    /// change a verdict.
    pub(crate) fn add_to(&self, provenance: &mut Provenance) {
        let prompt = Digest::sha256(KnowledgePrompt::SOURCE.as_bytes());
        let entries = [
            (DOCUMENTS, self.index.digest().to_string()),
            (LIMITS, self.describe_limits()),
            ("knowledge prompt", prompt.to_string()),
        ];
        provenance.extend(entries.map(|(name, value)| (name.to_owned(), value)));
    }
}

impl KnowledgeSource for JudgeKnowledge {
    fn find(&self, question: &str) -> Result<Vec<EvidencePassage>, String> {
        self.find(question).map_err(|error| format!("{error:#}"))
    }
}
