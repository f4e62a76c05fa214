//! `acem3 metrics`: text metrics of answers against references, as baselines for the judge.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rayon::prelude::*;

use crate::analysis::metrics::{
    AnswerScores, AnswerSet, BartSettings, BertSettings, LearnedMetrics, LexicalSettings, Metric,
    MetricTable, lines, score,
};
use crate::cli::args::{MetricsArgs, TableFormat};
use crate::cli::commands::ignored_flags::ignored_flags;
use crate::cli::commands::output::{print, render_tables};
use crate::data::cases;
use crate::judging::run::record_reader::find_records;
use crate::support::device;
use crate::support::device::Placement;
use crate::support::files::atomic_file;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::say;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::printable;

/// Time between two progress messages of a model.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Runs the command.
pub(crate) fn run(args: &MetricsArgs, verbosity: Verbosity) -> Result<Exit> {
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
    how.extend(score_with_models(
        args,
        &found,
        &mut scores,
        verbosity,
        &say,
    )?);
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

/// Returns the metrics of the flags, with those of the models.
fn metrics(args: &MetricsArgs) -> Result<Vec<Metric>> {
    let mut metrics: Vec<Metric> = Vec::new();
    let implied = [
        (args.models.bert.is_some(), Metric::Bertscore),
        (
            args.models.bert_baseline.is_some(),
            Metric::BertscoreRescaled,
        ),
        (args.models.bart.is_some(), Metric::Bartscore),
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
            args.models.bert.is_none(),
            "--bert MODEL",
        ),
        (
            Metric::BertscoreRescaled,
            "bertscore-rescaled",
            args.models.bert_baseline.is_none(),
            "--bert MODEL and --bert-baseline FILE",
        ),
        (
            Metric::Bartscore,
            "bartscore",
            args.models.bart.is_none(),
            "--bart MODEL",
        ),
    ];
    for (metric, name, lacks, flags) in lacking {
        if lacks && metrics.contains(&metric) {
            bail!("--metrics {name}: no model\nhint: pass {flags}");
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
                "{}: no records\nhint: --rationales compares the records of two runs",
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
                "--answers has no effect on the records {}, which contain their answers\n\
                 hint: pass the data set instead of the records",
                records.display()
            );
        }
        return AnswerSet::of_records(&records, args.limit);
    }
    let mut source = cases::open(path, &args.source.options(1))?;
    for warning in ignored_flags(&args.source, source.kind) {
        say(&warning);
    }
    let found = AnswerSet::of_source(&mut source, args.limit);
    if found.answers.is_empty() {
        let why = found.missing.first().map(|lost| lost.message.clone());
        let why = why.or_else(|| found.unreadable.first().cloned());
        bail!(
            "{}: no answer to score{}",
            path.display(),
            why.map_or_else(String::new, |why| format!(": {why}"))
        );
    }
    Ok(found)
}

/// Adds the scores of models; returns their settings by name.
fn score_with_models(
    args: &MetricsArgs,
    found: &AnswerSet,
    scores: &mut [AnswerScores],
    verbosity: Verbosity,
    say: &dyn Fn(&str),
) -> Result<BTreeMap<String, String>> {
    if args.models.bert.is_none() && args.models.bart.is_none() {
        return Ok(BTreeMap::new());
    }
    let mut last = Instant::now();
    let mut learned = LearnedMetrics {
        place: Placement {
            device: device::open(args.models.device)?,
            ..Placement::cpu()
        },
        batch: args.models.batch_size as usize,
        hub: args.models.hub,
        quiet: verbosity.quiet,
        progress: &mut |what, done, of| {
            if last.elapsed() >= PROGRESS_INTERVAL {
                last = Instant::now();
                say(&format!("{what}: {done} of {of}"));
            }
        },
        settings: BTreeMap::new(),
        notes: Vec::new(),
    };
    if let Some(model) = &args.models.bert {
        let settings = BertSettings {
            model: model.clone(),
            layer: args.models.bert_layer,
            idf: args.models.idf,
            baseline: args.models.bert_baseline.clone(),
        };
        learned.bert(&found.answers, scores, &settings)?;
    }
    if let Some(model) = &args.models.bart {
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
