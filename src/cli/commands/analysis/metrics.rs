//! `acem3 metrics`: text metrics of answers against references, as baselines for the judge.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rayon::prelude::*;

use super::run_notices::RunNotices;
use crate::analysis::metrics::{
    AnswerScores, AnswerSet, BartSettings, BertSettings, LearnedMetrics, LexicalSettings, Metric,
    MetricTable, SCORES_FORM, score_answer, to_json_lines,
};
use crate::cli::args::{MetricsArgs, TableFormat};
use crate::cli::commands::ignored_flags::ignored_flags;
use crate::cli::commands::output::write_stdout;
use crate::data::cases;
use crate::judging::run::record::find_records::find_records;
use crate::support::device;
use crate::support::device::Placement;
use crate::support::files::out_file::OutFile;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::escape_control_chars;

/// Time between two progress messages of a model.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Runs the command.
pub(crate) fn run(args: &MetricsArgs, verbosity: Verbosity) -> Result<Exit> {
    let out = check_out(args)?;
    let metrics = selected_metrics(args)?;
    let print_note = |text: &str| {
        if !verbosity.quiet {
            print_lines(text);
        }
    };
    let answer_set = read_answers(args, &print_note)?;
    let notices = RunNotices::new(answer_set.runs.iter().cloned(), args.run)?;
    if verbosity.verbose {
        answer_set.unreadable.iter().for_each(|line| print_note(&escape_control_chars(line)));
    }
    let settings = LexicalSettings { uses_stems: args.stem, is_chinese: args.chinese };
    let score = |answer| score_answer(answer, &metrics, settings);
    let mut scores: Vec<AnswerScores> = answer_set.answers.par_iter().map(score).collect();
    let mut settings_by_name = settings.describe(&metrics);
    settings_by_name.extend(score_with_models(
        args,
        &answer_set,
        &mut scores,
        verbosity,
        &print_note,
    )?);
    let table = MetricTable {
        source: args.source.path.display().to_string(),
        settings: settings_by_name,
        ..MetricTable::new(&answer_set, &scores, &metrics)
    };
    if let Some(out) = out {
        out.write(to_json_lines(&answer_set, &scores)?.as_bytes())?;
    }
    notices.print_unless_in(args.format);
    write_stdout(&match args.format {
        TableFormat::Text | TableFormat::Markdown => {
            notices.render(&table.intro(), &table.tables(), args.format)
        }
        TableFormat::Csv => table.csv_table().to_csv()?,
        TableFormat::Json => notices.to_json(&table)?,
    })?;
    Ok(Exit::Done)
}

/// Checks the output file, which must not be an input.
fn check_out(args: &MetricsArgs) -> Result<Option<OutFile>> {
    let records = [Some(&args.source.path), args.rationales.as_ref()].into_iter().flatten();
    let records: Vec<PathBuf> = records.filter_map(|path| find_records(path)).collect();
    let mut inputs = args.source.files();
    inputs.extend(records.iter().map(PathBuf::as_path));
    inputs.extend(args.models.bert_baseline.as_deref());
    let out = args.out.as_ref().map(|path| OutFile::check(path, SCORES_FORM, &inputs));
    out.transpose()
}

/// Returns the selected metrics, including those that model flags imply.
fn selected_metrics(args: &MetricsArgs) -> Result<Vec<Metric>> {
    let mut metrics: Vec<Metric> = Vec::new();
    let implied = [
        (args.models.bert.is_some(), Metric::Bertscore),
        (args.models.bert_baseline.is_some(), Metric::BertscoreRescaled),
        (args.models.bart.is_some(), Metric::Bartscore),
    ];
    let implied =
        implied.into_iter().filter_map(|(is_implied, metric)| is_implied.then_some(metric));
    for metric in args.metrics.iter().copied().chain(implied) {
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    let required_models = [
        (Metric::Bertscore, "bertscore", args.models.bert.is_none(), "--bert MODEL"),
        (
            Metric::BertscoreRescaled,
            "bertscore-rescaled",
            args.models.bert_baseline.is_none(),
            "--bert MODEL and --bert-baseline FILE",
        ),
        (Metric::Bartscore, "bartscore", args.models.bart.is_none(), "--bart MODEL"),
    ];
    for (metric, name, is_missing, flags) in required_models {
        if is_missing && metrics.contains(&metric) {
            bail!("--metrics {name}: no model\nhint: pass {flags}");
        }
    }
    Ok(metrics)
}

fn read_answers(args: &MetricsArgs, print_note: &dyn Fn(&str)) -> Result<AnswerSet> {
    let path = &args.source.path;
    let records = find_records(path);
    if let Some(reference) = &args.rationales {
        let no_records = |path: &std::path::Path| {
            format!(
                "{}: no records\nhint: --rationales compares the records of two runs",
                path.display()
            )
        };
        let own_records = records.with_context(|| no_records(path))?;
        let other_records = find_records(reference).with_context(|| no_records(reference))?;
        return AnswerSet::from_rationales(&own_records, &other_records, args.limit);
    }
    if let Some(records) = records {
        if !args.source.answers.is_empty() {
            bail!(
                "--answers has no effect on the records {}, which contain their answers\n\
                 hint: pass the data set instead of the records",
                records.display()
            );
        }
        return AnswerSet::from_records(&records, args.limit);
    }
    let mut source = cases::open(path, &args.source.to_options(1))?;
    source.take_field_notes().iter().for_each(|note| print_note(note));
    for warning in ignored_flags(&args.source, source.kind) {
        print_note(&warning);
    }
    let answer_set = AnswerSet::from_source(&mut source, args.limit);
    if answer_set.answers.is_empty() {
        let reason = answer_set.missing.first().map(|missing| missing.message.clone());
        let reason = reason.or_else(|| answer_set.unreadable.first().cloned());
        bail!(
            "{}: no answer to score{}",
            path.display(),
            reason.map_or_else(String::new, |reason| format!(": {reason}"))
        );
    }
    Ok(answer_set)
}

/// Adds the scores of learned metrics. Returns their settings by name.
fn score_with_models(
    args: &MetricsArgs,
    answer_set: &AnswerSet,
    scores: &mut [AnswerScores],
    verbosity: Verbosity,
    print_note: &dyn Fn(&str),
) -> Result<BTreeMap<String, String>> {
    if args.models.bert.is_none() && args.models.bart.is_none() {
        return Ok(BTreeMap::new());
    }
    let mut last = Instant::now();
    let mut learned = LearnedMetrics {
        placement: Placement {
            device: device::open_device(&args.models.device)?,
            ..Placement::cpu()
        },
        batch_size: args.models.batch_size as usize,
        hub: args.models.hub,
        quiet: verbosity.quiet,
        progress: &mut |task, completed, total| {
            if last.elapsed() >= PROGRESS_INTERVAL {
                last = Instant::now();
                print_note(&format!("{task}: {completed} of {total}"));
            }
        },
        settings: BTreeMap::new(),
        notes: Vec::new(),
    };
    if let Some(model) = &args.models.bert {
        let settings = BertSettings {
            model: model.clone(),
            layer: args.models.bert_layer,
            uses_idf: args.models.idf,
            baseline: args.models.bert_baseline.clone(),
        };
        learned.add_bert_score(&answer_set.answers, scores, &settings)?;
    }
    if let Some(model) = &args.models.bart {
        let settings = BartSettings { model: model.clone() };
        learned.add_bart_score(&answer_set.answers, scores, &settings)?;
    }
    for note in &learned.notes {
        print_note(note);
    }
    Ok(learned.settings)
}
