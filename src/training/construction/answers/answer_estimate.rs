//! Estimates requests, tokens, cost and time of a run from a few timed answers.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::answer_run::AnswerRunConfig;
use crate::data::cases::{Case, CaseResult};
use crate::data::images::ImageReader;
use crate::judging::judge::server_usage::{ServerUsage, TokenPrices};
use crate::judging::judge::text_writer::{TextRequest, TextWriter};
use crate::support::terminal::number::format_thousands;
use crate::support::terminal::progress::format_duration;
use crate::support::text::format_count;

/// Number of questions that are timed.
const SAMPLE: usize = 3;
/// Wait for an answer.
const POLL: Duration = Duration::from_secs(1);

/// Estimated requests, tokens, cost and time of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AnswerEstimate {
    /// Questions of the source.
    pub questions: u64,
    /// Cases that could not be read.
    pub unreadable: u64,
    /// Questions that were asked.
    pub timed: usize,
    /// The first reason why one of them has no answer.
    pub unanswered: Option<String>,
    /// Requests.
    pub requests: u64,
    /// Tokens of their prompts.
    pub prompt_tokens: u64,
    /// Tokens that the model writes.
    pub written_tokens: u64,
    /// The most that it can write: the token budget of each answer.
    pub max_written_tokens: u64,
    /// The cost by the prices.
    pub cost: Option<f64>,
    /// The time in seconds, at the speed of the timed answers.
    pub seconds: f64,
}

/// Asks the first questions of a source, and estimates what all of them need. Writes nothing.
///
/// # Errors
///
/// The model cannot answer.
pub fn estimate_answers(
    writer: &mut dyn TextWriter,
    cases: impl Iterator<Item = CaseResult>,
    images: &mut ImageReader,
    config: &AnswerRunConfig,
) -> Result<AnswerEstimate> {
    let mut estimate = AnswerEstimate::default();
    let mut requests = Vec::new();
    let limit = config.limit.unwrap_or(u64::MAX);
    for entry in cases {
        match entry {
            Ok(case) => {
                estimate.questions += 1;
                if requests.len() < SAMPLE {
                    requests.extend(to_request(&case, images, config));
                }
            }
            Err(problem) => estimate.unreadable += u64::from(problem.affects_whole_case()),
        }
        if estimate.questions + estimate.unreadable >= limit {
            break;
        }
    }
    estimate.timed = requests.len();
    let (before, start) = (writer.usage(), Instant::now());
    let mut waiting = (0_u64..).zip(requests);
    let mut in_progress = 0;
    loop {
        while in_progress < writer.capacity().max(1)
            && let Some((number, request)) = waiting.next()
        {
            writer.submit(number, request);
            in_progress += 1;
        }
        if in_progress == 0 {
            break;
        }
        if let Some(finished) = writer.next_finished(POLL)? {
            in_progress -= 1;
            if let Err(unscored) = finished.result {
                estimate.unanswered.get_or_insert(unscored.message);
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let scale = estimate.questions as f64 / estimate.timed.max(1) as f64;
    let usage = writer.usage().scaled_since(before, scale);
    estimate.requests = estimate.questions;
    estimate.prompt_tokens = usage.prompt_tokens;
    estimate.written_tokens = usage.written_tokens;
    estimate.seconds = seconds * scale;
    Ok(estimate)
}

fn to_request(
    case: &Case,
    images: &mut ImageReader,
    config: &AnswerRunConfig,
) -> Option<TextRequest> {
    let source = case.image.as_ref().filter(|_| config.shows_images);
    let image = source.map(|source| images.load(source)).transpose().ok()?;
    let pieces = config.prompt.pieces(&case.question, image.is_some());
    Some(TextRequest { pieces, image, is_local_only: case.is_local_only() })
}

impl AnswerEstimate {
    /// Sets the token budget of an answer, and the prices.
    pub fn set_limits(&mut self, max_tokens: u32, prices: Option<TokenPrices>) {
        self.max_written_tokens = self.questions * u64::from(max_tokens);
        let Self { requests, prompt_tokens, written_tokens, .. } = *self;
        let usage =
            ServerUsage { requests, prompt_tokens, written_tokens, ..ServerUsage::default() };
        self.cost = prices.map(|prices| usage.cost(prices));
    }

    /// Returns the estimate as text.
    pub fn to_text(&self) -> String {
        let count = |n: u64| format_thousands(usize::try_from(n).unwrap_or(usize::MAX));
        let mut lines = vec![
            format!("questions  {}", count(self.questions)),
            format!("requests   {}", count(self.requests)),
            format!(
                "tokens     {} of prompts, {} written (at most {})",
                count(self.prompt_tokens),
                count(self.written_tokens),
                count(self.max_written_tokens)
            ),
        ];
        if self.unreadable > 0 {
            lines.push(format!("unreadable {}", format_count(self.unreadable, "case")));
        }
        if let Some(cost) = self.cost {
            lines.push(format!("cost       {cost:.4}, by --price"));
        }
        lines.push(format!(
            "time       {} at the speed of {} answers; more requests at a time, or larger batches, \
             can be faster",
            format_duration(self.seconds),
            self.timed
        ));
        if let Some(reason) = &self.unanswered {
            let reason = reason.lines().next().unwrap_or_default();
            lines.push(format!("unanswered a timed question has no answer: {reason}"));
        }
        lines.push("nothing was written".to_owned());
        lines.join("\n") + "\n"
    }
}
