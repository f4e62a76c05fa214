//! An index of passages on disk, and searches in it.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use tantivy::collector::TopDocs;
use tantivy::directory::MmapDirectory;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{
    Field, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions, Value as _,
};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{DocAddress, Index, ReloadPolicy, Searcher, TantivyDocument, Term};

use super::analyzer::{analyze, create_analyzer};
use super::manifest::{IndexManifest, IndexSettings};
use super::read_only_directory::ReadOnlyDirectory;
use crate::support::digest::Digest;

/// Message of an index that was damaged after it was opened.
const UNREADABLE: &str = "the index cannot be read\nhint: build it again with `acem3 data index`";
/// Folder of the files of the search engine in the folder of an index.
pub(super) const ENGINE_FOLDER: &str = "bm25";
/// Name of the analyzer in the schema.
const ANALYZER: &str = "acem3";
/// Length of the end of a file of the search engine: the length and version of its footer.
const MIN_FILE_BYTES: u64 = 8;
/// Terms of a query; further ones are ignored. A question is much shorter.
const MAX_QUERY_TERMS: usize = 256;

/// A passage that a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Passage {
    /// Id of its document, followed by `#` and the number of the passage if there are several.
    pub id: String,
    /// Title of its document; empty if it has none.
    pub title: String,
    /// Its text, on one line.
    pub text: String,
    /// BM25 score, the higher the better.
    pub score: f32,
}

impl Passage {
    /// Returns the passage as a judge reads it: its title, if it has one, and its text.
    pub fn to_evidence(&self) -> String {
        match self.title.as_str() {
            "" => self.text.clone(),
            title => format!("{title}: {}", self.text),
        }
    }
}

/// The fields of an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexFields {
    /// Number of the passage in the index, from 0.
    pub(super) number: Field,
    pub(super) id: Field,
    pub(super) title: Field,
    pub(super) text: Field,
    /// Title and text as terms.
    pub(super) terms: Field,
}

/// Returns the schema of an index.
pub(super) fn create_schema() -> (Schema, IndexFields) {
    let mut schema = Schema::builder();
    let [id, title, text] =
        ["id", "title", "text"].map(|name| schema.add_text_field(name, TextOptions::from(STORED)));
    let number = schema.add_u64_field("number", STORED);
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(ANALYZER)
        .set_index_option(IndexRecordOption::WithFreqs);
    let options = TextOptions::default().set_indexing_options(indexing);
    let terms = schema.add_text_field("terms", options);
    (schema.build(), IndexFields { number, id, title, text, terms })
}

/// Gives an index the analyzer of its settings.
pub(super) fn register_analyzer(index: &Index, settings: &IndexSettings) {
    index.tokenizers().register(ANALYZER, create_analyzer(settings));
}

/// An open index. Searches need no lock: several threads may search.
pub struct KnowledgeIndex {
    manifest: IndexManifest,
    searcher: Searcher,
    analyzer: TextAnalyzer,
    fields: IndexFields,
}

impl KnowledgeIndex {
    /// Opens an index that `acem3 data index` built.
    ///
    /// # Errors
    ///
    /// The folder is no index, another version made it, or its files are damaged.
    pub fn open(folder: &Path) -> Result<Self> {
        let manifest = IndexManifest::read(folder)?;
        let damaged = || {
            format!(
                "{}: a damaged index\nhint: build the index again with `acem3 data index`",
                folder.display()
            )
        };
        let (schema, fields) = create_schema();
        let engine = folder.join(ENGINE_FOLDER);
        let directory = MmapDirectory::open(&engine).with_context(damaged)?;
        let index = Index::open(ReadOnlyDirectory(directory)).with_context(damaged)?;
        check_files(&engine, &index).with_context(damaged)?;
        if index.schema() != schema {
            bail!("{}", damaged());
        }
        register_analyzer(&index, &manifest.settings);
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
        let reader = reader.try_into().with_context(damaged)?;
        let searcher: Searcher = tantivy::IndexReader::searcher(&reader);
        if searcher.num_docs() != manifest.counts.passages {
            bail!("{}", damaged());
        }
        let analyzer = create_analyzer(&manifest.settings);
        Ok(Self { manifest, searcher, analyzer, fields })
    }

    /// Returns the SHA-256 of the settings and documents of the index.
    pub fn digest(&self) -> Digest {
        self.manifest.digest
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &IndexManifest {
        &self.manifest
    }

    /// Returns the passage with a number, from 0 in the order of the corpora; its score is 0.
    ///
    /// # Errors
    ///
    /// There is no passage with this number, or the files of the index cannot be read.
    pub fn passage(&self, number: u64) -> Result<Passage> {
        let is_known = number < self.manifest.counts.passages;
        let number = u32::try_from(number).ok().filter(|_| is_known);
        let number = number.context("the index has fewer passages")?;
        let document = self.searcher.doc(DocAddress::new(0, number)).context(UNREADABLE)?;
        Ok(self.to_passage(&document, 0.0))
    }

    fn to_passage(&self, document: &TantivyDocument, score: f32) -> Passage {
        let text = |field: Field| {
            let value = document.get_first(field);
            value.and_then(|value| value.as_str()).unwrap_or_default().to_owned()
        };
        let IndexFields { id, title, text: body, .. } = self.fields;
        Passage { id: text(id), title: text(title), text: text(body), score }
    }

    /// Returns the terms of a text, as documents and queries have them.
    pub fn terms(&self, text: &str) -> Vec<String> {
        analyze(&self.analyzer, text)
    }

    /// Returns the at most `limit` passages with the highest BM25 scores (k1 = 1.2, b = 0.75),
    /// best first; of equal scores, the earlier passage of the corpus first. A term that the query
    /// repeats counts each time.
    ///
    /// # Errors
    ///
    /// The files of the index cannot be read.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<Passage>> {
        let terms = self.terms(query);
        if terms.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let clauses = terms.iter().take(MAX_QUERY_TERMS).map(|term| {
            let term = Term::from_field_text(self.fields.terms, term);
            let query: Box<dyn Query> =
                Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
            (Occur::Should, query)
        });
        let query = BooleanQuery::new(clauses.collect());
        let best = self.searcher.search(&query, &TopDocs::with_limit(limit).order_by_score());
        let best = best.context(UNREADABLE)?.into_iter();
        let passages = best.map(|(score, address)| {
            let document = self.searcher.doc(address).context(UNREADABLE)?;
            Ok(self.to_passage(&document, score))
        });
        passages.collect()
    }
}

/// Compares the files of the search engine with the checksums in their footers. The engine panics on files that are
/// shorter than a footer.
fn check_files(engine: &Path, index: &Index) -> Result<()> {
    for entry in std::fs::read_dir(engine)? {
        let entry = entry?;
        let (name, length) = (entry.file_name(), entry.metadata()?.len());
        let name = Path::new(&name);
        if name.extension().is_none_or(|e| e == "json" || e == "lock") {
            continue;
        }
        if length < MIN_FILE_BYTES {
            bail!("{} has only {length} bytes", name.display());
        }
        if !index.directory().validate_checksum(name)? {
            bail!("{} changed after it was written", name.display());
        }
    }
    Ok(())
}

impl std::fmt::Debug for KnowledgeIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnowledgeIndex").field("manifest", &self.manifest).finish_non_exhaustive()
    }
}
