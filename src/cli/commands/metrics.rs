//! `acem3 metrics`: metrics of text against the references, as baselines beside the judge.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rayon::prelude::*;

use super::{print, render_tables, unheeded};
use crate::analysis::metrics::{
    AnswerScores, AnswerSet, BartSettings, BertSettings, LearnedMetrics, LexicalSettings, Metric,
    MetricTable, lines, score,
};
use crate::cli::args::{MetricsArgs, TableFormat};
use crate::data::cases;
use crate::judging::run::record_reader::find_records;
use crate::support::device;
use crate::support::device::Placement;
use crate::support::files::atomic_file;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::say;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::printable;

/// How often it is said how far a model is.
const PAUSE: Duration = Duration::from_secs(10);

/// Runs the command.
pub(super) fn run(args: &MetricsArgs, verbosity: Verbosity) -> Result<Exit> {
    let metrics = metrics(args)?;
    let say = |text: &str| {
        if !verbosity.quiet {
            say(text);
        }
    };
    let found = collect(args, &say)?;
    if verbosity.verbose {
        found
            .unreadable
            .iter()
            .for_each(|line| say(&printable(line)));
    }
    let settings = LexicalSettings {
        stemmed: args.stem,
        chinese: args.chinese,
    };
    let score = |answer| score(answer, &metrics, settings);
    let mut scores: Vec<AnswerScores> = found.answers.par_iter().map(score).collect();
    let mut how = settings.told(&metrics);
    how.extend(learn(args, &found, &mut scores, verbosity, &say)?);
    let table = MetricTable {
        source: args.source.path.display().to_string(),
        settings: how,
        ..MetricTable::new(&found, &scores, &metrics)
    };
    if let Some(out) = &args.out {
        atomic_file::write(out, lines(&found, &scores)?.as_bytes())
            .with_context(|| format!("--out {}", out.display()))?;
    }
    print(&match args.format {
        TableFormat::Text | TableFormat::Markdown => {
            render_tables(&table.intro(), &table.tables(), args.format)
        }
        TableFormat::Csv => table.csv_table().csv()?,
        TableFormat::Json => serde_json::to_string_pretty(&table)? + "\n",
    })?;
    Ok(Exit::Done)
}

/// The metrics asked for, with those of the models that are named.
fn metrics(args: &MetricsArgs) -> Result<Vec<Metric>> {
    let mut metrics: Vec<Metric> = Vec::new();
    let implied = [
        (args.bert.is_some(), Metric::Bertscore),
        (args.bert_baseline.is_some(), Metric::BertscoreRescaled),
        (args.bart.is_some(), Metric::Bartscore),
    ];
    let implied = implied
        .into_iter()
        .filter_map(|(is, metric)| is.then_some(metric));
    for metric in args.metrics.iter().copied().chain(implied) {
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    let lacking = [
        (
            Metric::Bertscore,
            "bertscore",
            args.bert.is_none(),
            "--bert MODEL",
        ),
        (
            Metric::BertscoreRescaled,
            "bertscore-rescaled",
            args.bert_baseline.is_none(),
            "--bert MODEL and --bert-baseline FILE",
        ),
        (
            Metric::Bartscore,
            "bartscore",
            args.bart.is_none(),
            "--bart MODEL",
        ),
    ];
    for (metric, name, lacks, flags) in lacking {
        if lacks && metrics.contains(&metric) {
            bail!("--metrics {name}: it needs a model\nhint: name one with {flags}");
        }
    }
    Ok(metrics)
}

fn collect(args: &MetricsArgs, say: &dyn Fn(&str)) -> Result<AnswerSet> {
    let path = &args.source.path;
    let records = find_records(path);
    if let Some(reference) = &args.rationales {
        let no_records = |path: &std::path::Path| {
            format!(
                "{}: there are no records\nhint: --rationales compares the records of two runs",
                path.display()
            )
        };
        let ours = records.with_context(|| no_records(path))?;
        let theirs = find_records(reference).with_context(|| no_records(reference))?;
        return AnswerSet::of_rationales(&ours, &theirs, args.limit);
    }
    if let Some(records) = records {
        if !args.source.answers.is_empty() {
            bail!(
                "--answers: {} are records, which hold their answers\n\
                 hint: give the data set instead of the records",
                records.display()
            );
        }
        return AnswerSet::of_records(&records, args.limit);
    }
    let mut source = cases::open(path, &args.source.options(1))?;
    for note in unheeded(&args.source, source.kind) {
        say(&note);
    }
    let found = AnswerSet::of_source(&mut source, args.limit);
    if found.answers.is_empty() {
        let why = found.missing.first().map(|lost| lost.message.clone());
        let why = why.or_else(|| found.unreadable.first().cloned());
        bail!(
            "{}: there is no answer to score in it{}",
            path.display(),
            why.map_or_else(String::new, |why| format!(": {why}"))
        );
    }
    Ok(found)
}

/// Adds what models say; gives the settings that were used, by name.
fn learn(
    args: &MetricsArgs,
    found: &AnswerSet,
    scores: &mut [AnswerScores],
    verbosity: Verbosity,
    say: &dyn Fn(&str),
) -> Result<BTreeMap<String, String>> {
    if args.bert.is_none() && args.bart.is_none() {
        return Ok(BTreeMap::new());
    }
    let mut last = Instant::now();
    let mut learned = LearnedMetrics {
        place: Placement {
            device: device::open(args.device)?,
            ..Placement::cpu()
        },
        batch: args.batch_size as usize,
        hub: args.hub,
        quiet: verbosity.quiet,
        progress: &mut |what, done, of| {
            if last.elapsed() >= PAUSE {
                last = Instant::now();
                say(&format!("{what}: {done} of {of}"));
            }
        },
        settings: BTreeMap::new(),
        notes: Vec::new(),
    };
    if let Some(model) = &args.bert {
        let settings = BertSettings {
            model: model.clone(),
            layer: args.bert_layer,
            idf: args.idf,
            baseline: args.bert_baseline.clone(),
        };
        learned.bert(&found.answers, scores, &settings)?;
    }
    if let Some(model) = &args.bart {
        let settings = BartSettings {
            model: model.clone(),
        };
        learned.bart(&found.answers, scores, &settings)?;
    }
    for note in &learned.notes {
        say(note);
    }
    Ok(learned.settings)
}
