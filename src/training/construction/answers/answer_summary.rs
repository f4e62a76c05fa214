//! Counts of a run, for its summary.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::answer_record::AnswerOutcome;
use crate::data::cases::UnscoredReason;
use crate::judging::judge::server_usage::ServerUsage;
use crate::support::terminal::progress::ProgressCounts;
use crate::support::text::format_count;

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AnswerSummary {
    /// Name of the model.
    pub model_id: String,
    /// Questions read.
    pub questions: u64,
    /// Questions with an answer.
    pub answered: u64,
    /// Answers that end at the token budget.
    pub cut: u64,
    /// Answers of earlier commands.
    pub reused: u64,
    /// Questions without an answer, by reason.
    pub unanswered: BTreeMap<&'static str, u64>,
    /// The first reason of each category.
    pub first_reasons: BTreeMap<&'static str, String>,
    /// Cases that could not be read.
    pub unreadable: u64,
    /// Requests, those of earlier commands included.
    pub requests: u64,
    /// Tokens of their prompts.
    pub prompt_tokens: u64,
    /// Tokens that the model wrote.
    pub written_tokens: u64,
    /// The cost by the prices, if they are known.
    pub cost: Option<f64>,
    /// The answers.
    pub answers: PathBuf,
}

impl AnswerSummary {
    /// Counts a question with its outcome.
    pub(super) fn add(&mut self, outcome: &AnswerOutcome, is_reused: bool) {
        self.questions += 1;
        self.reused += u64::from(is_reused);
        match outcome {
            AnswerOutcome::Answered { cut, .. } => {
                self.answered += 1;
                self.cut += u64::from(*cut);
            }
            AnswerOutcome::Unanswered { unanswered, message } => {
                *self.unanswered.entry(unanswered.name()).or_default() += 1;
                let first = message.lines().next().unwrap_or_default();
                self.first_reasons.entry(unanswered.name()).or_insert_with(|| first.to_owned());
            }
        }
    }

    /// Sets the requests and tokens.
    pub fn set_usage(&mut self, usage: ServerUsage, cost: Option<f64>) {
        self.requests = usage.requests;
        self.prompt_tokens = usage.prompt_tokens;
        self.written_tokens = usage.written_tokens;
        self.cost = cost;
    }

    /// Returns the number of questions without an answer.
    pub fn unanswered_count(&self) -> u64 {
        self.unanswered.values().sum()
    }

    /// Returns the percentage of questions and unreadable cases without an answer; `None` if there is
    /// neither.
    pub fn unanswered_percent(&self) -> Option<f64> {
        let all = self.questions + self.unreadable;
        let missing = self.unanswered_count() + self.unreadable;
        (all > 0).then(|| 100.0 * missing as f64 / all as f64)
    }

    /// Returns the counts for the progress. `reused`: not counted as new.
    pub(super) fn progress(&self) -> ProgressCounts {
        ProgressCounts {
            cases: self.questions + self.unreadable,
            new_verdicts: self.questions - self.reused,
            judged: self.answered,
            unscored: self.unanswered_count(),
        }
    }

    /// Returns the summary as text.
    pub fn to_text(&self) -> String {
        let mut lines = vec![format!(
            "{} to {} by {}",
            format_count(self.answered, "answer"),
            format_count(self.questions, "question"),
            self.model_id
        )];
        let mut add = |name: &str, value: String| lines.push(format!("{name:<11} {value}"));
        if self.cut > 0 {
            add("cut", format!("{} at the token budget (--max-tokens)", self.cut));
        }
        if self.reused > 0 {
            add("reused", format!("{} of earlier commands", self.reused));
        }
        for (reason, count) in &self.unanswered {
            let first = self.first_reasons.get(reason).map_or("", String::as_str);
            add("unanswered", format!("{count} {reason}, the first: {first}"));
        }
        if self.unanswered.contains_key(UnscoredReason::Transport.name()) {
            add("", "the same command asks `transport` again".to_owned());
        }
        if self.unreadable > 0 {
            add("unreadable", format_count(self.unreadable, "case"));
        }
        add(
            "tokens",
            format!(
                "{} of prompts, {} written, in {}",
                self.prompt_tokens,
                self.written_tokens,
                format_count(self.requests, "request")
            ),
        );
        if let Some(cost) = self.cost {
            add("cost", format!("{cost:.4}, by --price"));
        }
        add("answers", self.answers.display().to_string());
        lines.join("\n") + "\n"
    }
}
