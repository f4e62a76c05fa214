//! `acem3 data index` and `acem3 data search`: the index of a corpus, and searches in it.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::cli::args::{IndexArgs, OutputFormat, SearchArgs};
use crate::cli::commands::output::write_stdout;
use crate::data::knowledge::{IndexManifest, KnowledgeIndex, Passage, build_index};
use crate::support::tables::wrap;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::number::format_thousands;
use crate::support::terminal::progress::{Progress, format_duration};
use crate::support::terminal::verbosity::Verbosity;
use crate::support::terminal::width::terminal_width;
use crate::support::text::{escape_control_chars, format_count};

/// Number of rows that cannot be read that are printed.
const LISTED_PROBLEMS: u64 = 10;
/// Documents between two updates of the progress.
const PROGRESS_STEP: u64 = 64;

/// Builds an index and prints its counts. Rows that cannot be read are left out, and the first ones
/// printed.
pub(super) fn index_corpora(args: &IndexArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    if args.overlap_words >= args.passage_words {
        bail!(
            "--overlap-words {}: expected fewer words than a passage has ({})\n\
             hint: pass a smaller --overlap-words or a larger --passage-words",
            args.overlap_words,
            args.passage_words
        );
    }
    let interrupt = Interrupt::listen()?;
    let start = Instant::now();
    let progress = Progress::with_items(args.progress, verbosity, None, "documents");
    let progress = std::cell::RefCell::new(progress);
    let mut problems = 0_u64;
    let result = build_index(
        &args.to_options(),
        &interrupt,
        &mut |problem| {
            problems += 1;
            if problems <= LISTED_PROBLEMS {
                let text = format!("{problem}");
                progress.borrow().warn(&text);
            }
        },
        &mut |counts| {
            if counts.documents % PROGRESS_STEP == 0 {
                let passages = format_count(counts.passages, "passage");
                progress.borrow_mut().advance(counts.documents, &passages);
            }
        },
    );
    progress.borrow().finish();
    if problems > LISTED_PROBLEMS {
        let more = format_count(problems - LISTED_PROBLEMS, "more problem");
        progress.borrow().warn(&format!("and {more}"));
    }
    let manifest = result?;
    write_stdout(&match args.format {
        OutputFormat::Json => {
            serde_json::to_string(&manifest).context("cannot write counts")? + "\n"
        }
        OutputFormat::Text if verbosity.quiet => String::new(),
        OutputFormat::Text => describe_index(args, &manifest, start.elapsed().as_secs_f64()),
    })?;
    Ok(Exit::Done)
}

/// Describes a new index.
fn describe_index(args: &IndexArgs, manifest: &IndexManifest, seconds: f64) -> String {
    let counts = manifest.counts;
    let thousands = |n: u64| format_thousands(usize::try_from(n).unwrap_or(usize::MAX));
    let mut text = format!(
        "{} passages of {} documents in {}, {}\n",
        thousands(counts.passages),
        thousands(counts.documents),
        args.out.display(),
        format_duration(seconds)
    );
    if counts.without_text > 0 {
        let _ = writeln!(text, "without text  {}", thousands(counts.without_text));
    }
    if counts.malformed > 0 {
        let _ = writeln!(text, "malformed     {}", thousands(counts.malformed));
    }
    let _ = writeln!(text, "sha256        {}", manifest.digest);
    text
}

/// Prints the best passages for a query.
pub(super) fn search_index(args: &SearchArgs) -> anyhow::Result<Exit> {
    let index = KnowledgeIndex::open(&args.index)?;
    let terms = index.terms(&args.query);
    let passages = index.search(&args.query, usize::from(args.count))?;
    if args.format == OutputFormat::Json {
        let output = serde_json::json!({
            "index": index.digest(),
            "query": args.query,
            "terms": terms,
            "passages": passages,
        });
        write_stdout(&format!("{output}\n"))?;
        return Ok(Exit::Done);
    }
    if passages.is_empty() {
        write_stdout(&match terms.as_slice() {
            [] => "no passage: the query has no word that the index knows\n".to_owned(),
            terms => format!("no passage with one of the terms {}\n", terms.join(", ")),
        })?;
        return Ok(Exit::Done);
    }
    let texts: Vec<String> = passages.iter().map(describe_passage).collect();
    write_stdout(&texts.join("\n"))?;
    Ok(Exit::Done)
}

/// Describes a passage in lines that fit the terminal.
fn describe_passage(passage: &Passage) -> String {
    let [id, title, text] =
        [&passage.id, &passage.title, &passage.text].map(|text| escape_control_chars(text));
    let heading = if title.is_empty() { String::new() } else { format!("  {title}") };
    let width = terminal_width().clamp(40, 100) - 4;
    let mut block = format!("{:8.4}  {id}{heading}\n", passage.score);
    for line in wrap(&text, width, 0) {
        let _ = writeln!(block, "    {line}");
    }
    block
}
