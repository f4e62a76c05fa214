//! `acem3 metrics`: metrics of text against the references, as baselines beside the judge.

use anyhow::{Result, bail};
use rayon::prelude::*;

use super::{print, unheeded};
use crate::cases;
use crate::cli::{MetricsArgs, TableFormat, Verbosity};
use crate::exit::Exit;
use crate::progress::say;
use crate::text_metrics::{Collected, Settings, Table, score};

/// Runs the command.
pub(super) fn run(args: &MetricsArgs, verbosity: Verbosity) -> Result<Exit> {
    let path = &args.source.path;
    let mut source = cases::open(path, &args.source.options(1))?;
    if !verbosity.quiet {
        for note in unheeded(&args.source, source.kind) {
            say(&note);
        }
    }
    let found = Collected::of_source(&mut source, args.limit);
    if found.answers.is_empty() {
        bail!("{}: there is no answer to score in it", path.display());
    }
    let settings = Settings { stemmed: args.stem };
    let score = |answer| score(answer, &args.metrics, settings);
    let scores: Vec<_> = found.answers.par_iter().map(score).collect();
    let table = Table {
        source: path.display().to_string(),
        ..Table::new(&found, &scores, &args.metrics)
    };
    let text = match args.format {
        TableFormat::Text => table.text(),
        TableFormat::Json => serde_json::to_string_pretty(&table)? + "\n",
        TableFormat::Markdown => table.markdown(),
        TableFormat::Csv => table.csv()?,
    };
    print(&text)?;
    Ok(Exit::Done)
}
