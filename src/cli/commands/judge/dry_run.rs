//! `acem3 judge --dry-run`: estimates requests, tokens, cost and time from a few verdicts.

use std::sync::Arc;
use std::time::Instant;

use acem3_vision::ImageLimits;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use crate::cli::args::{JudgeArgs, OutputFormat};
use crate::cli::commands::output::{NO_CASES, write_stdout};
use crate::data::cases::{self, Case, CaseResult};
use crate::data::images::ImageReader;
use crate::judging::judge::server_usage::ServerUsage;
use crate::judging::judge::{Judge, JudgeJob};
use crate::support::terminal::exit::Exit;
use crate::support::terminal::number::format_thousands;
use crate::support::terminal::progress::format_duration;

/// Number of verdicts that are timed.
const SAMPLE: usize = 3;

/// Estimated requests, tokens, cost and time of a run.
#[derive(Debug, Serialize)]
struct RunEstimate {
    /// Readable cases.
    cases: u64,
    /// Verdicts on them.
    verdicts: u64,
    /// Verdicts that were timed.
    timed: usize,
    /// Timed verdicts without a result, with the first reason.
    unscored: Option<String>,
    /// Requests to servers.
    requests: Option<u64>,
    /// Tokens of their prompts.
    prompt_tokens: Option<u64>,
    /// Tokens that the models write.
    written_tokens: Option<u64>,
    /// The cost by `--price`.
    cost: Option<f64>,
    /// The time in seconds, at the speed of the timed verdicts.
    seconds: f64,
}

/// Judges the first responses of a source, and prints what judging all of them would need. Writes no
/// records.
///
/// # Errors
///
/// The source has nothing to judge, or the judge fails.
pub(super) fn dry_run(
    args: &JudgeArgs,
    source: impl Iterator<Item = CaseResult>,
    judge: &mut dyn Judge,
) -> Result<Exit> {
    let selection = args.form.to_selection(args.baseline.clone());
    let images = ImageReader::new(cases::base_folder(&args.source.path), ImageLimits::default());
    let mut images = images.with_dicom_view(args.source.dicom.to_view());
    let limit = args.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let (mut jobs, mut cases, mut verdicts) = (Vec::new(), 0, 0);
    for case in source.flatten().take(limit) {
        let case = Arc::new(case);
        cases += 1;
        let Ok(selected) = selection.select(&case) else {
            continue;
        };
        verdicts += selected.len() as u64;
        jobs.extend(new_jobs(&case, selected, &mut images, SAMPLE - jobs.len().min(SAMPLE)));
    }
    if jobs.is_empty() {
        bail!("{}: {NO_CASES}", args.source.path.display());
    }
    let before = judge.usage().unwrap_or_default();
    let start = Instant::now();
    let results = judge.judge(&jobs)?;
    let seconds = start.elapsed().as_secs_f64();
    let after = judge.usage();
    let for_all =
        |sampled: u64| (sampled as f64 / jobs.len() as f64 * verdicts as f64).round() as u64;
    let unscored = results.into_iter().find_map(Result::err);
    let requests = after.map(|after| for_all(after.requests - before.requests));
    let prompt_tokens = after.map(|after| for_all(after.prompt_tokens - before.prompt_tokens));
    let written_tokens = after.map(|after| for_all(after.written_tokens - before.written_tokens));
    let usage = requests.zip(prompt_tokens.zip(written_tokens));
    let usage = usage.map(|(requests, (prompt_tokens, written_tokens))| ServerUsage {
        requests,
        prompt_tokens,
        written_tokens,
    });
    let cost =
        usage.zip(args.judge.served.requests.price).map(|(usage, prices)| usage.cost(prices));
    let estimate = RunEstimate {
        cases,
        verdicts,
        timed: jobs.len(),
        unscored: unscored.map(|unscored| unscored.message),
        requests,
        prompt_tokens,
        written_tokens,
        cost,
        seconds: seconds / jobs.len() as f64 * verdicts as f64,
    };
    print(args, &estimate)?;
    Ok(Exit::Done)
}

/// Returns at most `missing` jobs on a case. A case whose image cannot be read has none.
fn new_jobs(
    case: &Arc<Case>,
    selected: Vec<Vec<usize>>,
    images: &mut ImageReader,
    missing: usize,
) -> Vec<JudgeJob> {
    if missing == 0 {
        return Vec::new();
    }
    let image = case.image.as_ref().map(|source| images.load(source)).transpose();
    let Ok(image) = image else {
        return Vec::new();
    };
    let job = |responses| JudgeJob { case: Arc::clone(case), responses, image: image.clone() };
    selected.into_iter().take(missing).map(job).collect()
}

fn print(args: &JudgeArgs, estimate: &RunEstimate) -> Result<()> {
    let text = match args.format {
        OutputFormat::Json => {
            serde_json::to_string_pretty(estimate).context("cannot write the estimate")? + "\n"
        }
        OutputFormat::Text => to_text(estimate),
    };
    write_stdout(&text)
}

fn to_text(estimate: &RunEstimate) -> String {
    let count = |n: u64| format_thousands(usize::try_from(n).unwrap_or(usize::MAX));
    let mut lines =
        vec![format!("verdicts  {} on {} cases", count(estimate.verdicts), count(estimate.cases))];
    if let (Some(requests), Some(prompt), Some(written)) =
        (estimate.requests, estimate.prompt_tokens, estimate.written_tokens)
    {
        lines.push(format!("requests  {}", count(requests)));
        lines.push(format!("tokens    {} of prompts, {} written", count(prompt), count(written)));
    }
    if let Some(cost) = estimate.cost {
        lines.push(format!("cost      {cost:.2}, by --price"));
    }
    lines.push(format!(
        "time      {} at the speed of {} verdicts judged together; a server can be faster with more \
         requests at a time",
        format_duration(estimate.seconds),
        estimate.timed
    ));
    if let Some(reason) = &estimate.unscored {
        let reason = reason.lines().next().unwrap_or_default();
        lines.push(format!("unscored  a timed verdict has no result: {reason}"));
    }
    lines.push("nothing was written".to_owned());
    lines.join("\n") + "\n"
}
