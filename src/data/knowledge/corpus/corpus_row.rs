//! Rows of corpora.

/// A document: a title, which may be empty, and a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::data::knowledge) struct KnowledgeDocument {
    /// Its id in the corpus, after the name of its source if it has one.
    pub(in crate::data::knowledge) id: String,
    pub(in crate::data::knowledge) title: String,
    pub(in crate::data::knowledge) text: String,
}

/// One row of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::data::knowledge) enum CorpusRow {
    Document(KnowledgeDocument),
    /// A row without text, such as an answer that was removed for copyright.
    WithoutText,
}

/// A row with its line or row number, from 1, or why it cannot be read.
pub(in crate::data::knowledge) type NumberedCorpusRow = (u64, Result<CorpusRow, String>);

/// The rows of a file.
pub(in crate::data::knowledge) type CorpusRows = Box<dyn Iterator<Item = NumberedCorpusRow>>;
