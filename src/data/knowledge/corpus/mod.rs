//! Corpora: files and folders with documents, as their publishers release them.

mod corpus_files;
mod corpus_row;
mod document_row;
mod medquad_xml;
mod open_file;

pub(super) use corpus_files::{CorpusFile, list_files};
pub(super) use corpus_row::{CorpusRow, KnowledgeDocument};
pub(super) use open_file::open_file;
