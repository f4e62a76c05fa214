//! `acem3 data quality`: predicted qualities of evaluations.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::analysis::metrics::{EncoderSummary, SentenceEncoder};
use crate::cli::args::{OutputFormat, QualityArgs, SentenceEncoderArgs};
use crate::cli::commands::output::write_stdout;
use crate::statistics::{Bootstrap, Estimate};
use crate::support::device::{Placement, open_device};
use crate::support::files::out_file::OutFile;
use crate::support::files::regular_file;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::format_count;
use crate::training::preferences::files::asked_questions::remove_questions;
use crate::training::preferences::{
    EvaluationExample, QualityReport, RATED_FORM, check_ratings, predict_quality, read_evaluations,
    write_rated,
};

/// Time between two progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Differences with a lower p-value are significant.
const SIGNIFICANCE: f64 = 0.05;

/// Embedded evaluations.
struct EmbeddedTexts {
    encoder: EncoderSummary,
    vectors: Vec<Vec<f64>>,
    truncated: usize,
}

/// Checks that a file is not an output of this command, whose predicted qualities would count as ratings.
fn check_unpredicted(path: &Path) -> anyhow::Result<()> {
    let unreadable = || format!("cannot read {}", path.display());
    let mut file = regular_file::open(path).with_context(unreadable)?;
    if (RATED_FORM.recognise)(&mut file).with_context(unreadable)? {
        bail!(
            "{}: its qualities were predicted by this command, expected ratings\n\
             hint: rate more lines in the file that you rated",
            path.display()
        );
    }
    Ok(())
}

/// Runs the command.
pub(super) fn run(args: &QualityArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let out = OutFile::check(&args.out, RATED_FORM, &[&args.path])?;
    check_unpredicted(&args.path)?;
    let mut evaluations = read_evaluations(&args.path)?.items;
    // Questions and evidence say nothing about the quality of what follows them.
    evaluations.iter_mut().try_for_each(remove_questions)?;
    let bootstrap = Bootstrap { seed: args.seed, ..Bootstrap::default() };
    let file = || args.path.display().to_string();
    let embedded = match &args.encoder.embeddings {
        None => None,
        Some(model) => {
            // Embedding takes long, so the ratings are checked first.
            check_ratings(&evaluations, bootstrap).with_context(file)?;
            Some(embed(model, &args.encoder, &evaluations, verbosity)?)
        }
    };
    let vectors = embedded.as_ref().map(|embedded| embedded.vectors.as_slice());
    let report = predict_quality(&evaluations, vectors, bootstrap).with_context(file)?;
    write_rated(&args.path, &out, report.probabilities())?;
    write_stdout(&match args.format {
        OutputFormat::Json => {
            format!("{}\n", report_to_json(&report, embedded.as_ref(), evaluations.len())?)
        }
        OutputFormat::Text => report_to_text(&report, embedded.as_ref(), evaluations.len())?,
    })?;
    Ok(Exit::Done)
}

/// Embeds the texts of all evaluations.
fn embed(
    model: &str,
    args: &SentenceEncoderArgs,
    evaluations: &[EvaluationExample],
    verbosity: Verbosity,
) -> anyhow::Result<EmbeddedTexts> {
    let placement = Placement { device: open_device(&args.device)?, ..Placement::cpu() };
    let encoder =
        SentenceEncoder::load("--embeddings", model, &placement, args.hub, verbosity.quiet)?;
    let texts: Vec<&str> = evaluations.iter().map(|evaluation| evaluation.text.as_str()).collect();
    let mut last = Instant::now();
    let embeddings = encoder.embed(&texts, &mut |completed| {
        if !verbosity.quiet && last.elapsed() >= PROGRESS_INTERVAL {
            last = Instant::now();
            print_lines(&format!("embeddings: {completed} of {}", texts.len()));
        }
    })?;
    Ok(EmbeddedTexts {
        encoder: encoder.summary,
        vectors: embeddings.vectors,
        truncated: embeddings.truncated,
    })
}

/// Returns the accuracy of the larger class.
fn majority_accuracy(report: &QualityReport) -> f64 {
    report.better.max(report.rated - report.better) as f64 / report.rated as f64
}

fn report_to_json(
    report: &QualityReport,
    embedded: Option<&EmbeddedTexts>,
    evaluations: usize,
) -> anyhow::Result<Value> {
    let mut output = json!({
        "evaluations": evaluations,
        "rated": report.rated,
        "better": report.better,
        "better_from": report.better_from,
        "right": report.text.accuracy.value?,
        "interval": report.text.accuracy.interval.ok(),
        "right_by_the_larger_class": majority_accuracy(report),
        "written": report.classifier(),
    });
    if let (Some(result), Some(embedded)) = (&report.embeddings, embedded) {
        let accuracy = &result.qualities.accuracy;
        output["embeddings"] = json!({
            "encoder": embedded.encoder,
            "truncated": embedded.truncated,
            "cost": result.cost,
            "right": accuracy.value?,
            "interval": accuracy.interval.ok(),
            "difference": {
                "value": result.difference.value,
                "interval": result.difference.interval,
                "p": result.difference.p,
            },
        });
    }
    Ok(output)
}

fn report_to_text(
    report: &QualityReport,
    embedded: Option<&EmbeddedTexts>,
    evaluations: usize,
) -> anyhow::Result<String> {
    let counts = format!(
        "{} of {} rated, {} of them {} or better\n",
        report.rated,
        format_count(evaluations as u64, "evaluation"),
        report.better,
        report.better_from
    );
    let majority = 100.0 * majority_accuracy(report);
    let text_accuracy = describe_accuracy(&report.text.accuracy)?;
    let (Some(result), Some(embedded)) = (&report.embeddings, embedded) else {
        return Ok(format!(
            "{counts}held-out accuracy: {text_accuracy}; majority class {majority:.1} %\n"
        ));
    };
    let EncoderSummary { model, weights, pooling, width, max_tokens } = &embedded.encoder;
    let difference = &result.difference;
    let [low, high] = difference.interval.unwrap_or([-1.0, 1.0]).map(|bound| 100.0 * bound);
    let conclusion = match (difference.p < SIGNIFICANCE, difference.value > 0.0) {
        (true, true) => "the embeddings help",
        (true, false) => {
            "the embeddings are worse; without --embeddings, `quality` comes from text statistics"
        }
        (false, _) if low > 0.0 || high < 0.0 => {
            "the two do not differ significantly: the test is exact, and the interval of so few images is too \
             narrow"
        }
        (false, _) => "the two do not differ significantly",
    };
    Ok(format!(
        "{counts}embeddings: {model}, weights {weights}, {width} components, {pooling}\n\
         truncated to {max_tokens} tokens: {} of {evaluations}\n\
         held-out accuracy:\n  \
         text statistics, logistic regression: {text_accuracy}\n  \
         embeddings, support vector machine (C = {}): {}\n  \
         majority class: {majority:.1} %\n\
         difference: {:+.1} percentage points (95 % CI {low:+.1} to {high:+.1}), p = {:.4}: {conclusion}\n\
         `quality` is the probability of the support vector machine\n",
        embedded.truncated,
        result.cost,
        describe_accuracy(&result.qualities.accuracy)?,
        100.0 * difference.value,
        difference.p,
    ))
}

fn describe_accuracy(accuracy: &Estimate) -> anyhow::Result<String> {
    let [low, high] = accuracy.interval.unwrap_or([0.0, 1.0]).map(|bound| 100.0 * bound);
    Ok(format!("{:.1} % (95 % CI {low:.1} to {high:.1})", 100.0 * accuracy.value?))
}
