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
use crate::judging::judge::server_usage::{ServerUsage, format_cost};
use crate::judging::judge::{Judge, JudgeJob};
use crate::support::terminal::exit::{Exit, RunFailure, split_hints};
use crate::support::terminal::number::format_thousands;
use crate::support::terminal::progress::{format_duration, print_lines};
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::format_count;

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
    /// Evaluations that this machine computes.
    evaluations: Option<u64>,
    /// Tokens of their prompts.
    prompt_tokens: Option<u64>,
    /// Tokens that the models write.
    written_tokens: Option<u64>,
    /// The cost by `--price`.
    cost: Option<f64>,
    /// True if the cost is larger than `--max-cost`.
    exceeds_max_cost: Option<bool>,
    /// The time in seconds, at the speed of the timed verdicts.
    seconds: Option<f64>,
}

/// Judges the first responses of a source, and prints what judging all of them would need. Writes no
/// records. If no verdict has a result, nothing is known but their number.
///
/// # Errors
///
/// The source has nothing to judge, or the judge fails.
pub(super) fn dry_run(
    args: &JudgeArgs,
    source: impl Iterator<Item = CaseResult>,
    judge: &mut dyn Judge,
    verbosity: Verbosity,
) -> Result<Exit> {
    if !verbosity.quiet {
        judge.servers().iter().for_each(|server| print_lines(&server.describe()));
    }
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
    let [served_before, computed_before] = [judge.usage(), judge.computed_usage()];
    let start = Instant::now();
    let results = judge.judge(&jobs).with_context(|| {
        RunFailure(
            "the judge failed\nhint: nothing was written; run the same command again when the server works".to_owned(),
        )
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let scale = verdicts as f64 / jobs.len() as f64;
    let for_all = |now: Option<ServerUsage>, before: Option<ServerUsage>| {
        now.map(|now| now.scaled_since(before.unwrap_or_default(), scale))
    };
    let has_result = results.iter().any(Result::is_ok);
    let served = for_all(judge.usage(), served_before).filter(|_| has_result);
    let computed = for_all(judge.computed_usage(), computed_before).filter(|_| has_result);
    let unscored = results.into_iter().find_map(Result::err);
    let states_tokens = judge.servers().iter().all(|server| server.states_tokens);
    let is_counted = states_tokens && served.is_none_or(|usage| usage.uncounted == 0);
    let tokens = served.or(computed).filter(|_| is_counted);
    let limits = &args.judge.served.requests;
    let prices = limits.price;
    let cost: Option<f64> =
        tokens.and(served).zip(prices).map(|(usage, prices)| usage.cost(prices));
    let estimate = RunEstimate {
        cases,
        verdicts,
        timed: jobs.len(),
        unscored: unscored.map(|unscored| unscored.message),
        requests: served.map(|usage| usage.requests),
        evaluations: computed.map(|usage| usage.requests),
        prompt_tokens: tokens.map(|usage| usage.prompt_tokens),
        written_tokens: tokens.map(|usage| usage.written_tokens),
        cost,
        exceeds_max_cost: cost.zip(limits.max_cost).map(|(cost, max_cost)| cost > max_cost),
        seconds: has_result.then_some(seconds * scale),
    };
    print(args, &estimate)?;
    Ok(if has_result { Exit::Done } else { Exit::Unscored })
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
    let mut lines = vec![format!(
        "verdicts  {} on {}",
        count(estimate.verdicts),
        format_count(estimate.cases, "case")
    )];
    if let Some(requests) = estimate.requests {
        lines.push(format!("requests  {}", count(requests)));
    }
    if let Some(evaluations) = estimate.evaluations {
        lines.push(format!("computed  {} evaluations", count(evaluations)));
    }
    if let (Some(prompt), Some(written)) = (estimate.prompt_tokens, estimate.written_tokens) {
        lines.push(format!("tokens    {} of prompts, {} written", count(prompt), count(written)));
    } else if estimate.requests.is_some() {
        lines.push(
            "tokens    unknown, and so is the cost: the server does not state them".to_owned(),
        );
    }
    if let Some(cost) = estimate.cost {
        let limit = match estimate.exceeds_max_cost {
            Some(true) => ", more than --max-cost",
            Some(false) => ", within --max-cost",
            None => "",
        };
        lines.push(format!("cost      {}, by --price{limit}", format_cost(cost)));
    }
    let note = match estimate.requests {
        Some(_) => "; a server can be faster with more requests at a time",
        None => "",
    };
    lines.push(match estimate.seconds {
        Some(seconds) => format!(
            "time      {} at the speed of {} judged together{note}",
            format_duration(seconds),
            format_count(estimate.timed as u64, "verdict")
        ),
        None => "estimate  not possible: no timed verdict has a result".to_owned(),
    });
    if let Some(reason) = &estimate.unscored {
        let (reason, hints) = split_hints(reason);
        lines.push(format!("unscored  a timed verdict has no result: {reason}"));
        lines.extend(hints.into_iter().map(str::to_owned));
    }
    lines.push("nothing was written".to_owned());
    lines.join("\n") + "\n"
}
