//! Building of an index: reads the corpora document by document, writes the index to a temporary
//! folder and renames it when it is complete.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};
use tantivy::index::SegmentId;
use tantivy::indexer::NoMergePolicy;
use tantivy::schema::Value as _;
use tantivy::{DocAddress, Index, IndexWriter, TantivyDocument};

use super::corpus::{CorpusFile, CorpusRow, KnowledgeDocument, list_files, open_file};
use super::index::{ENGINE_FOLDER, IndexFields, create_schema, register_analyzer};
use super::manifest::{CorpusCounts, INDEX_MANIFEST, IndexManifest, IndexSettings, VERSION};
use super::passages::split_passages;
use crate::support::digest::Digest;
use crate::support::files::atomic_file::write_atomic;
use crate::support::files::folder::{FolderLock, free_sibling_name};
use crate::support::terminal::exit::RunFailure;
use crate::support::terminal::interrupt::Interrupt;

/// Memory of the postings before they are written to disk, in bytes.
const WRITER_BYTES: usize = 128 << 20;

/// What to index, and how.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// Files and folders with documents.
    pub corpora: Vec<PathBuf>,
    /// Folder of the index. It must not exist.
    pub out: PathBuf,
    /// Settings.
    pub settings: IndexSettings,
}

/// A row of a corpus that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadRow {
    /// File of the row.
    pub file: PathBuf,
    /// Line, or number of the row or pair, from 1.
    pub line: u64,
    /// Why it could not be read.
    pub message: String,
}

impl fmt::Display for UnreadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.message)
    }
}

/// Builds an index. `report` gets each row that could not be read, and `progress` the counts from
/// time to time.
///
/// # Errors
///
/// A corpus cannot be opened or has no text, the folder exists or cannot be written, or the user
/// interrupted the command.
pub fn build_index(
    options: &IndexOptions,
    interrupt: &Interrupt,
    report: &mut dyn FnMut(UnreadRow),
    progress: &mut dyn FnMut(&CorpusCounts),
) -> Result<IndexManifest> {
    check_out(&options.out)?;
    let mut files = Vec::new();
    for corpus in &options.corpora {
        files.extend(list_files(corpus)?);
    }
    let folder = TemporaryFolder::create(&options.out)?;
    let mut builder = IndexBuilder::create(&folder.path, options.settings)?;
    for file in &files {
        builder.add_file(file, interrupt, report, progress)?;
    }
    if builder.counts.passages == 0 {
        let first = options.corpora.first().map_or(Path::new(""), PathBuf::as_path);
        bail!(
            "{}: no document with text ({} without text, {} malformed)\n\
             hint: each row needs a field `text`, `content` or `answer`",
            first.display(),
            builder.counts.without_text,
            builder.counts.malformed
        );
    }
    let (digest, counts) = builder.finish()?;
    let manifest = IndexManifest {
        version: VERSION,
        digest,
        settings: options.settings,
        corpora: options.corpora.iter().map(|corpus| corpus.display().to_string()).collect(),
        counts,
    };
    let json = serde_json::to_string_pretty(&manifest).context("cannot write a manifest")?;
    write_atomic(&folder.path.join(INDEX_MANIFEST), (json + "\n").as_bytes())?;
    folder.rename(&options.out)?;
    Ok(manifest)
}

fn check_out(out: &Path) -> Result<()> {
    if fs::symlink_metadata(out).is_ok() {
        bail!(
            "--out {}: exists already\nhint: choose another name, for example --out {}, or remove it",
            out.display(),
            free_sibling_name(out).display()
        );
    }
    Ok(())
}

/// The folder in which an index is built, next to its final place. It is removed if the build fails. A
/// killed build leaves it, and the next build of the same index replaces it.
struct TemporaryFolder {
    path: PathBuf,
    lock: Option<FolderLock>,
}

impl TemporaryFolder {
    fn create(out: &Path) -> Result<Self> {
        let name = out.file_name();
        let name =
            name.with_context(|| format!("--out {}: not the name of a folder", out.display()))?;
        let mut name = name.to_owned();
        name.push(".building");
        let path = out.with_file_name(name);
        let cannot = || {
            let (out, path) = (out.display(), path.display());
            format!("--out {out}: cannot create {path}\nhint: choose a writable folder")
        };
        if path.exists() && !path.join(FolderLock::FILE).exists() {
            bail!(
                "{}: not a folder of an interrupted build\nhint: move it, or choose another --out",
                path.display()
            );
        }
        fs::create_dir_all(&path).with_context(cannot)?;
        let lock = FolderLock::acquire(&path)?;
        let engine = path.join(ENGINE_FOLDER);
        if engine.exists() {
            fs::remove_dir_all(&engine).with_context(cannot)?;
        }
        Ok(Self { path, lock: Some(lock) })
    }

    fn rename(mut self, out: &Path) -> Result<()> {
        let (from, to) = (self.path.display(), out.display());
        fs::rename(&self.path, out)
            .with_context(|| RunFailure(format!("cannot rename {from} to {to}")))?;
        // Readers of a finished index need no lock.
        self.lock = None;
        let _ = fs::remove_file(out.join(FolderLock::FILE));
        Ok(())
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // The error of the build matters more than a folder that cannot be removed.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// An index in the making.
struct IndexBuilder {
    index: Index,
    writer: IndexWriter,
    fields: IndexFields,
    settings: IndexSettings,
    /// Hash of the settings and the documents so far.
    hasher: Sha256,
    /// Hashes of the ids so far, 8 bytes each.
    ids: HashSet<u64>,
    counts: CorpusCounts,
}

impl IndexBuilder {
    fn create(folder: &Path, settings: IndexSettings) -> Result<Self> {
        let engine = folder.join(ENGINE_FOLDER);
        let create = || -> Result<(Index, IndexWriter, IndexFields)> {
            fs::create_dir(&engine)?;
            let (schema, fields) = create_schema();
            let index = Index::create_in_dir(&engine, schema)?;
            register_analyzer(&index, &settings);
            // One thread keeps the order of the documents, and so the numbers of the passages.
            let writer: IndexWriter = index.writer_with_num_threads(1, WRITER_BYTES)?;
            writer.set_merge_policy(Box::new(NoMergePolicy));
            Ok((index, writer, fields))
        };
        let (index, writer, fields) =
            create().with_context(|| format!("cannot write {}", engine.display()))?;
        let mut hasher = Sha256::new();
        add_field(&mut hasher, b"acem3 knowledge index");
        add_field(&mut hasher, &VERSION.to_le_bytes());
        let settings_text =
            serde_json::to_string(&settings).context("cannot write the settings")?;
        add_field(&mut hasher, settings_text.as_bytes());
        let (ids, counts) = (HashSet::new(), CorpusCounts::default());
        Ok(Self { index, writer, fields, settings, hasher, ids, counts })
    }

    fn add_file(
        &mut self,
        file: &CorpusFile,
        interrupt: &Interrupt,
        report: &mut dyn FnMut(UnreadRow),
        progress: &mut dyn FnMut(&CorpusCounts),
    ) -> Result<()> {
        self.counts.files += 1;
        for (line, row) in open_file(file)? {
            interrupt.bail_if_requested("nothing was written; run the same command again")?;
            match row {
                Ok(CorpusRow::Document(document)) => self.add_document(document)?,
                Ok(CorpusRow::WithoutText) => self.counts.without_text += 1,
                Err(message) => {
                    self.counts.malformed += 1;
                    report(UnreadRow { file: file.path.clone(), line, message });
                }
            }
            progress(&self.counts);
        }
        Ok(())
    }

    /// Adds a document, passage by passage.
    fn add_document(&mut self, mut document: KnowledgeDocument) -> Result<()> {
        let passages = split_passages(&document.text, &self.settings);
        document.title = document.title.split_whitespace().collect::<Vec<_>>().join(" ");
        document.id = self.unused_id(&document.id);
        for field in [&document.id, &document.title] {
            add_field(&mut self.hasher, field.as_bytes());
        }
        add_field(&mut self.hasher, &(passages.len() as u64).to_le_bytes());
        let count = passages.len();
        for (i, text) in passages.into_iter().enumerate() {
            add_field(&mut self.hasher, text.as_bytes());
            let id =
                if count > 1 { format!("{}#{}", document.id, i + 1) } else { document.id.clone() };
            let mut passage = TantivyDocument::default();
            passage.add_text(self.fields.terms, format!("{}\n{text}", document.title));
            passage.add_u64(self.fields.number, self.counts.passages);
            passage.add_text(self.fields.id, id);
            passage.add_text(self.fields.title, &document.title);
            passage.add_text(self.fields.text, text);
            self.writer.add_document(passage).with_context(write_failure)?;
            self.counts.passages += 1;
        }
        self.counts.documents += u64::from(count > 0);
        Ok(())
    }

    /// Returns the id, with a number if an earlier document has it.
    fn unused_id(&mut self, id: &str) -> String {
        let hash = |id: &str| {
            let mut hasher = DefaultHasher::new();
            id.hash(&mut hasher);
            hasher.finish()
        };
        let mut unused = id.to_owned();
        let mut number = 1_u64;
        while !self.ids.insert(hash(&unused)) {
            number += 1;
            unused = format!("{id}~{number}");
        }
        unused
    }

    /// Writes the rest, and joins all parts to one in the order of the documents.
    fn finish(mut self) -> Result<(Digest, CorpusCounts)> {
        let mut join = || -> tantivy::Result<()> {
            self.writer.commit()?;
            let searcher = self.index.reader()?.searcher();
            let mut parts = Vec::new();
            for (ordinal, reader) in searcher.segment_readers().iter().enumerate() {
                // The number of the first passage of a part tells its place.
                let first: TantivyDocument = searcher.doc(DocAddress::new(ordinal as u32, 0))?;
                let number = first.get_first(self.fields.number).and_then(|value| value.as_u64());
                parts.push((number, reader.segment_id()));
            }
            drop(searcher);
            parts.sort_unstable_by_key(|(number, _)| *number);
            if parts.len() > 1 {
                let ids: Vec<SegmentId> = parts.into_iter().map(|(_, id)| id).collect();
                self.writer.merge(&ids).wait()?;
            }
            self.writer.garbage_collect_files().wait()?;
            Ok(())
        };
        join().with_context(write_failure)?;
        self.writer.wait_merging_threads().with_context(write_failure)?;
        Ok((Digest::from_bytes(self.hasher.finalize().into()), self.counts))
    }
}

fn write_failure() -> RunFailure {
    RunFailure(
        "cannot write the index\nhint: check free space and write permissions of --out".to_owned(),
    )
}

/// Hashes a length-prefixed field.
fn add_field(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}
