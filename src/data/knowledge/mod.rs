//! Knowledge: text corpora, a BM25 index of their passages on disk, and questions in evaluations.
//!
//! A judge or teacher that writes `[Question]: …` gets the best passages for its question, as in
//! Algorithm 1 of AutoMedEval. This module finds the question and the passages; who asks decides
//! what follows.

mod analyzer;
mod build;
mod corpus;
mod index;
mod manifest;
mod passages;
mod question;
mod read_only_directory;

pub use build::{IndexOptions, UnreadRow, build_index};
pub use index::{KnowledgeIndex, Passage};
pub use manifest::{CorpusCounts, IndexManifest, IndexSettings};
pub use question::{QUESTION, first_question};

#[cfg(test)]
mod tests;
