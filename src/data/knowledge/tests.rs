//! Tests of indexes: scores against the reference, corpora in all layouts, and interrupted builds.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;

use super::{
    CorpusCounts, IndexManifest, IndexOptions, IndexSettings, KnowledgeIndex, UnreadRow,
    build_index,
};
use crate::support::terminal::interrupt::Interrupt;

/// Scores of `assets/golden/make_bm25.py`.
#[derive(Deserialize)]
struct Expected {
    queries: Vec<ExpectedQuery>,
    texts: Vec<ExpectedText>,
}

#[derive(Deserialize)]
struct ExpectedQuery {
    query: String,
    terms: Vec<String>,
    scores: BTreeMap<String, f32>,
}

#[derive(Deserialize)]
struct ExpectedText {
    text: String,
    terms: Vec<String>,
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/bm25").join(name)
}

/// Builds an index of these corpora. Returns its manifest and the rows that could not be read.
fn build(
    corpora: &[&Path],
    out: &Path,
    settings: IndexSettings,
) -> (IndexManifest, Vec<UnreadRow>) {
    let corpora = corpora.iter().map(|path| path.to_path_buf()).collect();
    let options = IndexOptions { corpora, out: out.to_owned(), settings };
    let mut unread = Vec::new();
    let manifest =
        build_index(&options, &Interrupt::default(), &mut |row| unread.push(row), &mut |_| {});
    (manifest.unwrap(), unread)
}

#[test]
fn scores_equal_those_of_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("index");
    let (manifest, unread) = build(&[&golden("corpus.jsonl")], &out, IndexSettings::default());
    assert_eq!((manifest.counts.passages, unread.len()), (60, 0));
    let index = KnowledgeIndex::open(&out).unwrap();
    let expected: Expected =
        serde_json::from_slice(&fs::read(golden("expected.json")).unwrap()).unwrap();
    for ExpectedText { text, terms } in expected.texts {
        assert_eq!(index.terms(&text), terms, "{text}");
    }
    for ExpectedQuery { query, terms, scores } in expected.queries {
        assert_eq!(index.terms(&query), terms, "{query}");
        let found = index.search(&query, 100).unwrap();
        assert!(found.is_sorted_by(|a, b| a.score >= b.score), "{query}");
        let found: BTreeMap<String, f32> = found.into_iter().map(|p| (p.id, p.score)).collect();
        assert!(found.keys().eq(scores.keys()), "{query}");
        for (id, score) in scores {
            // The index computes in f32.
            assert!((found[&id] - score).abs() < 1e-4 * score.max(1.0), "{query} {id} {score}");
        }
    }
}

#[test]
fn best_passages_do_not_depend_on_the_limit_and_ties_keep_the_order_of_the_corpus() {
    let folder = tempfile::tempdir().unwrap();
    let [corpus, out] = ["a.jsonl", "index"].map(|name| folder.path().join(name));
    let rows = (0..50).map(|i| format!("{{\"id\": \"{i:02}\", \"text\": \"the same lesion\"}}\n"));
    fs::write(&corpus, rows.collect::<String>()).unwrap();
    build(&[&corpus], &out, IndexSettings::default());
    let index = KnowledgeIndex::open(&out).unwrap();
    let ids = |limit| {
        let found = index.search("lesion", limit).unwrap();
        found.into_iter().map(|passage| passage.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(3), ["00", "01", "02"]);
    assert_eq!(ids(100).len(), 50);
    assert_eq!(ids(0).len(), 0);
    assert_eq!(index.passage(7).unwrap().id, "07");
    assert!(index.passage(50).is_err());
    assert!(index.search("of the", 3).unwrap().is_empty());
}

/// Documents, not files or layouts, identify an index.
#[test]
fn digest_is_that_of_documents_and_settings() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let rows = fs::read(golden("corpus.jsonl")).unwrap();
    let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
    compressed.write_all(&rows).unwrap();
    fs::write(path("corpus.jsonl.gz"), compressed.finish().unwrap()).unwrap();
    let digest =
        |corpus: &Path, out: &str, settings| build(&[corpus], &path(out), settings).0.digest;
    let plain = digest(&golden("corpus.jsonl"), "1", IndexSettings::default());
    assert_eq!(digest(&path("corpus.jsonl.gz"), "2", IndexSettings::default()), plain);
    let stemming = IndexSettings { stemming: false, ..IndexSettings::default() };
    assert_ne!(digest(&golden("corpus.jsonl"), "3", stemming), plain);
    let changed = String::from_utf8(rows).unwrap().replacen("lesion", "lesions", 1);
    fs::write(path("changed.jsonl"), changed).unwrap();
    assert_ne!(digest(&path("changed.jsonl"), "4", IndexSettings::default()), plain);
}

#[test]
fn long_documents_have_numbered_passages_and_equal_ids_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let [corpus, out] = ["a.jsonl", "index"].map(|name| folder.path().join(name));
    let long: Vec<String> = (0..10).map(|i| format!("word{i}")).collect();
    let rows = format!(
        "{{\"id\": \"a\", \"title\": \"T\", \"text\": \"{}\"}}\n{{\"id\": \"a\", \"text\": \"x\"}}\n",
        long.join(" ")
    );
    fs::write(&corpus, rows).unwrap();
    let settings = IndexSettings { passage_words: 4, overlap_words: 1, ..IndexSettings::default() };
    build(&[&corpus], &out, settings);
    let index = KnowledgeIndex::open(&out).unwrap();
    let passages: Vec<_> = (0..4).map(|number| index.passage(number).unwrap()).collect();
    let ids: Vec<&str> = passages.iter().map(|passage| passage.id.as_str()).collect();
    assert_eq!(ids, ["a#1", "a#2", "a#3", "a~2"]);
    assert_eq!(passages[1].to_evidence(), "T: word3 word4 word5 word6");
    assert_eq!(passages[3].to_evidence(), "x");
    // Both passages with the shared word are found, and the title is a term of each passage.
    assert_eq!(index.search("word3", 9).unwrap().len(), 2);
    assert_eq!(index.search("T", 9).unwrap().len(), 3);
}

#[test]
fn rows_without_text_and_malformed_rows_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("corpus/2_GHR")).unwrap();
    let document = |answer: &str| {
        format!(
            "<Document id=\"1\" source=\"GHR\"><Focus>Gout</Focus><QAPairs><QAPair pid=\"1\">\
             <Question qid=\"1-1\">What is gout?</Question><Answer>{answer}</Answer></QAPair>\
             </QAPairs></Document>"
        )
    };
    fs::write(path("corpus/2_GHR/1.xml"), document("A form of arthritis.")).unwrap();
    fs::write(path("corpus/2_GHR/2.xml"), document("")).unwrap();
    fs::write(path("corpus/2_GHR/3.xml"), "<Document>").unwrap();
    let rows = "{\"id\": \"x\", \"contents\": \"Uric acid.\"}\nnot json\n{\"id\": \"y\"}\n{\"text\": null}\n";
    fs::write(path("corpus/a.jsonl"), rows).unwrap();
    fs::write(path("corpus/readme.txt"), "not a corpus").unwrap();
    let (manifest, unread) = build(&[&path("corpus")], &path("index"), IndexSettings::default());
    let expected =
        CorpusCounts { files: 4, documents: 2, passages: 2, without_text: 2, malformed: 3 };
    assert_eq!(manifest.counts, expected);
    let unread: Vec<String> = unread.iter().map(ToString::to_string).collect();
    assert!(unread[0].contains("3.xml:1: malformed XML"), "{unread:?}");
    assert!(unread[1].contains("a.jsonl:2: malformed JSON"), "{unread:?}");
    assert!(unread[2].contains("a.jsonl:3: no text: expected a field `text`"), "{unread:?}");
    let index = KnowledgeIndex::open(&path("index")).unwrap();
    let found = index.search("arthritis gout", 1).unwrap();
    assert_eq!((found[0].id.as_str(), found[0].title.as_str()), ("GHR/1-1", "Gout"));
    // The question is not part of the passage.
    assert!(index.search("what", 1).unwrap().is_empty());
}

#[test]
fn interrupted_build_leaves_no_index_and_the_next_one_replaces_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("index");
    let options = IndexOptions {
        corpora: vec![golden("corpus.jsonl")],
        out: out.clone(),
        settings: IndexSettings::default(),
    };
    let interrupt = Interrupt::default();
    let build = || {
        let stop = interrupt.clone();
        build_index(&options, &interrupt, &mut |_| {}, &mut |counts| {
            if counts.documents == 7 {
                stop.request();
            }
        })
    };
    assert!(build().unwrap_err().to_string().contains("interrupted"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    // What a killed build leaves.
    let left = folder.path().join("index.building");
    fs::create_dir_all(left.join("bm25")).unwrap();
    fs::write(left.join("bm25/meta.json"), "torn").unwrap();
    let error = build_index(&options, &Interrupt::default(), &mut |_| {}, &mut |_| {});
    assert!(error.unwrap_err().to_string().contains("not a folder of an interrupted build"));
    fs::write(left.join(".lock"), "123\n").unwrap();
    self::build(&[&golden("corpus.jsonl")], &out, IndexSettings::default());
    assert!(!folder.path().join("index.building").exists());
    assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
    let error = build_index(&options, &Interrupt::default(), &mut |_| {}, &mut |_| {});
    assert!(error.unwrap_err().to_string().contains("exists already"));
}

#[cfg(unix)]
#[test]
fn index_is_read_without_permission_to_write() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("index");
    build(&[&golden("corpus.jsonl")], &out, IndexSettings::default());
    let listed = || {
        let mut names: Vec<_> = fs::read_dir(out.join("bm25"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let before = listed();
    let set = |mode| {
        for path in [out.join("bm25"), out.clone()] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set(0o555);
    let index = KnowledgeIndex::open(&out);
    let found = index.unwrap().search("lesion", 1).unwrap().len();
    set(0o755);
    assert_eq!((found, listed()), (1, before));
}

#[test]
fn damaged_indexes_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("index");
    let error = |path: &Path| format!("{:#}", KnowledgeIndex::open(path).unwrap_err());
    assert!(error(folder.path()).contains("not a knowledge index"));
    build(&[&golden("corpus.jsonl")], &out, IndexSettings::default());
    let manifest = fs::read_to_string(out.join("index.json")).unwrap();
    let changed = [
        (manifest.replace("\"version\": 1", "\"version\": 9"), "version 9, expected 1"),
        (manifest.replace("\"passages\": 60", "\"passages\": 61"), "a damaged index"),
        (manifest[..manifest.len() / 2].to_owned(), "not the manifest of an index"),
    ];
    for (text, expected) in changed {
        fs::write(out.join("index.json"), text).unwrap();
        assert!(error(&out).contains(expected), "{}", error(&out));
    }
    fs::write(out.join("index.json"), manifest).unwrap();
    KnowledgeIndex::open(&out).unwrap();
    let files = fs::read_dir(out.join("bm25")).unwrap().map(|entry| entry.unwrap().path());
    let segments =
        files.filter(|path| path.extension().is_some_and(|e| e != "json" && e != "lock"));
    let segments: Vec<_> = segments.collect();
    assert!(segments.len() >= 5, "{segments:?}");
    // The engine lists its files in a hidden file, which copies may lack.
    fs::remove_file(out.join("bm25/.managed.json")).unwrap();
    for path in segments {
        let bytes = fs::read(&path).unwrap();
        let mut changed = bytes.clone();
        changed[0] ^= 1;
        for damaged in [&changed[..], &bytes[..bytes.len() / 2], &bytes[..5], &[]] {
            fs::write(&path, damaged).unwrap();
            assert!(error(&out).contains("a damaged index"), "{}: {}", path.display(), error(&out));
        }
        fs::write(&path, bytes).unwrap();
    }
    KnowledgeIndex::open(&out).unwrap();
    fs::remove_file(out.join("bm25/meta.json")).unwrap();
    assert!(error(&out).contains("a damaged index"), "{}", error(&out));
}
