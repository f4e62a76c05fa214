//! `index.json`: what an index contains, how it was made, and its hash.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::support::digest::Digest;
use crate::support::files::regular_file;

/// File name of the manifest in the folder of an index.
pub(super) const INDEX_MANIFEST: &str = "index.json";
/// Version of the layout of an index, of its analyzer and of its hash.
pub(super) const VERSION: u32 = 1;

/// What decides which passages and terms an index has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexSettings {
    /// Length of a passage, in words.
    pub passage_words: usize,
    /// Number of words that a passage repeats from the one before.
    pub overlap_words: usize,
    /// True if words are reduced to their stems (Snowball's English stemmer).
    pub stemming: bool,
    /// True if frequent English words such as "the" are terms.
    pub keeps_stop_words: bool,
}

impl Default for IndexSettings {
    /// Settings chosen by recall on MedQuAD (the guide to knowledge has the figures).
    fn default() -> Self {
        Self { passage_words: 160, overlap_words: 32, stemming: true, keeps_stop_words: false }
    }
}

/// Counts of the documents of a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusCounts {
    /// Files read.
    pub files: u64,
    /// Documents with text.
    pub documents: u64,
    /// Passages of these documents.
    pub passages: u64,
    /// Rows without text, such as the answers that MedQuAD does not contain for copyright.
    pub without_text: u64,
    /// Rows that could not be read.
    pub malformed: u64,
}

/// The manifest of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexManifest {
    /// Version of the layout.
    pub version: u32,
    /// SHA-256 of the settings and of all documents in their order. It identifies the index in the
    /// keys of verdicts.
    pub digest: Digest,
    /// Settings.
    pub settings: IndexSettings,
    /// Names of the corpora as given on the command line.
    pub corpora: Vec<String>,
    /// Counts.
    pub counts: CorpusCounts,
}

impl IndexManifest {
    /// Reads the manifest of an index.
    ///
    /// # Errors
    ///
    /// The folder is no index, or another version of acem3 made it.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(INDEX_MANIFEST);
        let bytes = regular_file::read(&path).with_context(|| {
            format!(
                "{}: not a knowledge index: no {INDEX_MANIFEST}\n\
                 hint: build one with `acem3 data index CORPUS --out DIR`",
                folder.display()
            )
        })?;
        let manifest: Self = serde_json::from_slice(&bytes).with_context(|| {
            format!(
                "{}: damaged, or not the manifest of an index\n\
                 hint: build the index again with `acem3 data index`",
                path.display()
            )
        })?;
        if manifest.version != VERSION {
            bail!(
                "{}: an index of version {}, expected {VERSION}\n\
                 hint: build the index again with `acem3 data index`",
                folder.display(),
                manifest.version
            );
        }
        Ok(manifest)
    }
}
