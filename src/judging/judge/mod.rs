//! What the run asks of a judge, whoever it is: the panel, or the scripted one of the tests.

pub mod recorded_verdict;
pub mod scripted;

use std::sync::Arc;

use acem3_conclusion::Verdict;
use serde::{Deserialize, Serialize};

use crate::data::cases::{Case, UnscoredReason};
use crate::data::images::LoadedImage;
use crate::judging::provenance::Provenance;

/// One pair of responses of a case, ready for the judge.
#[derive(Clone, Debug)]
pub struct PairJob {
    /// The case.
    pub case: Arc<Case>,
    /// Which two of its responses.
    pub pair: [usize; 2],
    /// Its image, decoded; `None` for a case that is judged as text.
    pub image: Option<Arc<LoadedImage>>,
}

impl PairJob {
    /// The question.
    pub fn question(&self) -> &str {
        &self.case.question
    }

    /// The texts of the two responses, in the order of the pair.
    pub fn responses(&self) -> [&str; 2] {
        self.pair.map(|i| {
            self.case
                .responses
                .get(i)
                .map_or("", |response| &response.text)
        })
    }
}

/// Why a pair or case has no verdict, in a word and in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unscored {
    /// The kind of failure.
    pub reason: UnscoredReason,
    /// What was expected and what was found.
    pub message: String,
}

/// Gives verdicts on pairs.
///
/// A verdict depends on its own job alone, never on the others of the call, their number or order.
pub trait Judge {
    /// What it is called in tables: one line, with its version or hash.
    fn name(&self) -> String;

    /// Where it computes, as the manifest says it.
    fn device(&self) -> String;

    /// Everything about it that can move a verdict: hashes of weights, tokenizer, rubric and
    /// layout, decoding settings, presentation orders. It is part of every verdict's key.
    fn provenance(&self) -> Provenance;

    /// Judges some pairs, one result per job in their order.
    ///
    /// # Errors
    ///
    /// An error of the whole call ends the run; what concerns one pair is its [`Unscored`].
    fn judge(&mut self, jobs: &[PairJob]) -> anyhow::Result<Vec<Result<Verdict, Unscored>>>;
}
