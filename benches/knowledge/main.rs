//! Recall and time per query of the knowledge index on held-back questions of MedQuAD.
//!
//! `cargo bench --bench knowledge -- CORPUS [FOLDER]`, where CORPUS is a JSONL file (also .gz) with
//! `id`, `source`, `focus`, `question` and `answer`. The questions are not in the index. FOLDER gets
//! the terms of all passages and questions, for `reference.py` beside this file.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use acem3::data::knowledge::{IndexOptions, IndexSettings, KnowledgeIndex, build_index};
use acem3::support::terminal::interrupt::Interrupt;
use anyhow::{Context as _, Result};
use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};

/// Number of held-back questions.
const QUESTIONS: usize = 500;
/// Numbers of passages that a question may get.
const CUTOFFS: [usize; 4] = [1, 3, 5, 10];

/// A question and the id of the document with its answer.
struct Question {
    text: String,
    document: String,
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(corpus) = args.next().map(PathBuf::from) else {
        println!("skipped: pass a corpus, see the first comment of this file");
        return Ok(());
    };
    let dump = args.next().map(PathBuf::from);
    let questions = held_back_questions(&corpus)?;
    let folder = tempfile::tempdir()?;
    println!("{} questions of {}", questions.len(), corpus.display());
    for (passage_words, overlap_words) in [(160, 32), (100, 20), (320, 64)] {
        for (stemming, keeps_stop_words) in
            [(true, false), (true, true), (false, false), (false, true)]
        {
            let settings =
                IndexSettings { passage_words, overlap_words, stemming, keeps_stop_words };
            let name = describe(&settings);
            let out = folder.path().join(&name);
            let options =
                IndexOptions { corpora: vec![corpus.clone()], out: out.clone(), settings };
            let start = Instant::now();
            build_index(&options, &Interrupt::default(), &mut |_| {}, &mut |_| {})?;
            let seconds = start.elapsed().as_secs_f64();
            let index = KnowledgeIndex::open(&out)?;
            measure(&name, &index, &questions, seconds)?;
            if let Some(dump) = dump.as_ref().filter(|_| passage_words == 160) {
                write_terms(&dump.join(&name), &index, &questions)?;
            }
        }
    }
    Ok(())
}

fn describe(settings: &IndexSettings) -> String {
    let stems = if settings.stemming { "stems" } else { "words" };
    let stops = if settings.keeps_stop_words { "all" } else { "no-stop" };
    format!("{}-{}-{stems}-{stops}", settings.passage_words, settings.overlap_words)
}

/// Reads evenly spaced questions.
fn held_back_questions(corpus: &Path) -> Result<Vec<Question>> {
    let file = File::open(corpus).with_context(|| corpus.display().to_string())?;
    let is_compressed = corpus.extension().is_some_and(|extension| extension == "gz");
    let reader: Box<dyn Read> =
        if is_compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut questions = Vec::new();
    for line in BufReader::new(reader).lines() {
        let row: Value = serde_json::from_str(&line?)?;
        let field = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().trim();
        if !field("answer").is_empty() {
            let document = format!("{}/{}", field("source"), field("id"));
            questions.push(Question { text: field("question").to_owned(), document });
        }
    }
    let step = (questions.len() / QUESTIONS).max(1);
    Ok(questions.into_iter().step_by(step).take(QUESTIONS).collect())
}

/// Returns the id of the document of a passage, without the numbers of passages and of equal ids.
fn document_id(passage: &str) -> &str {
    passage.split(['#', '~']).next().unwrap_or_default()
}

fn measure(name: &str, index: &KnowledgeIndex, questions: &[Question], seconds: f64) -> Result<()> {
    let mut found = [0_usize; CUTOFFS.len()];
    let start = Instant::now();
    for question in questions {
        let passages = index.search(&question.text, CUTOFFS[CUTOFFS.len() - 1])?;
        let rank = passages.iter().position(|p| document_id(&p.id) == question.document);
        for (count, cutoff) in found.iter_mut().zip(CUTOFFS) {
            *count += usize::from(rank.is_some_and(|rank| rank < cutoff));
        }
    }
    let milliseconds = 1e3 * start.elapsed().as_secs_f64() / questions.len() as f64;
    let values = found.iter().zip(CUTOFFS).map(|(count, cutoff)| {
        format!("@{cutoff} {:5.1}", 100.0 * *count as f64 / questions.len() as f64)
    });
    let values: Vec<String> = values.collect();
    println!(
        "{name:24} {}   {milliseconds:.2} ms per query, {} passages built in {seconds:.1} s",
        values.join("  "),
        index.manifest().counts.passages
    );
    Ok(())
}

/// Writes the terms of all passages and questions.
fn write_terms(folder: &Path, index: &KnowledgeIndex, questions: &[Question]) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = BufWriter::new(File::create(folder.join("passages.jsonl"))?);
    for number in 0..index.manifest().counts.passages {
        let passage = index.passage(number)?;
        let terms = index.terms(&format!("{}\n{}", passage.title, passage.text));
        let document = document_id(&passage.id);
        writeln!(file, "{}", json!({"id": passage.id, "document": document, "terms": terms}))?;
    }
    file.flush()?;
    let mut file = BufWriter::new(File::create(folder.join("questions.jsonl"))?);
    for question in questions {
        let terms = index.terms(&question.text);
        writeln!(file, "{}", json!({"document": question.document, "terms": terms}))?;
    }
    Ok(file.flush()?)
}
