//! `acem3 data quality`: predicted qualities of evaluations.

use anyhow::Context;

use crate::cli::args::{OutputFormat, QualityArgs};
use crate::cli::commands::output::write_stdout;
use crate::statistics::Bootstrap;
use crate::support::files::out_file::OutFile;
use crate::support::terminal::exit::Exit;
use crate::support::text::format_count;
use crate::training::preferences::{RATED_FORM, predict_quality, read_evaluations, write_rated};

/// Runs the command.
pub(super) fn run(args: &QualityArgs) -> anyhow::Result<Exit> {
    let out = OutFile::check(&args.out, RATED_FORM, &[&args.path])?;
    let evaluations = read_evaluations(&args.path)?.items;
    let bootstrap = Bootstrap { seed: args.seed, ..Bootstrap::default() };
    let quality = predict_quality(&evaluations, bootstrap)
        .with_context(|| args.path.display().to_string())?;
    write_rated(&args.path, &out, &quality.probabilities)?;
    let accuracy = quality.accuracy.value?;
    let majority_accuracy =
        quality.better.max(quality.rated - quality.better) as f64 / quality.rated as f64;
    write_stdout(&match args.format {
        OutputFormat::Json => {
            let output = serde_json::json!({
                "evaluations": evaluations.len(),
                "rated": quality.rated,
                "better": quality.better,
                "better_from": quality.better_from,
                "right": accuracy,
                "interval": quality.accuracy.interval.ok(),
                "right_by_the_larger_class": majority_accuracy,
            });
            output.to_string() + "\n"
        }
        OutputFormat::Text => {
            let [low, high] = quality.accuracy.interval.unwrap_or([0.0, 1.0]);
            format!(
                "{} of {} rated, {} of them {} or better\n\
                 held-out accuracy: {:.1} % (95 % CI {:.1} to {:.1}); majority class {:.1} %\n",
                quality.rated,
                format_count(evaluations.len() as u64, "evaluation"),
                quality.better,
                quality.better_from,
                100.0 * accuracy,
                100.0 * low,
                100.0 * high,
                100.0 * majority_accuracy
            )
        }
    })?;
    Ok(Exit::Done)
}
