//! Improves the training data of a round: discussion of the misjudged pairs, decisions of people, and
//! the evaluations of the next round.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::decisions::decisions_file::Decisions;
use super::decisions::unresolved_file::UnresolvedFile;
use super::discussion::chat::request_journal::RequestJournal;
use super::discussion::discuss::Discussion;
use super::discussion::discussion_log::DiscussionLog;
use super::discussion::discussion_round::DiscussionRound;
use super::evaluations::completion::CompletionBuilder;
use super::evaluations::evaluation_data::EvaluationData;
use super::judged::misjudged_pair::MisjudgedPair;
use super::judged::review::PairId;
use super::judged::round_judging::MisjudgedPairs;
use crate::data::cases::SourceSpec;
use crate::data::images::outside_images::OutsideImages;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::support::files::atomic_file;
use crate::support::terminal::interrupt::Interrupt;
use crate::training::TrainingProgress;

/// File with the counts of a finished improvement.
const COUNTS_FILE: &str = "improvement.json";

/// What became of the misjudged pairs of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ImprovementCounts {
    /// Pairs with an evaluation of the adviser.
    pub(super) by_adviser: usize,
    /// Pairs with an evaluation that people decided for.
    pub(super) by_people: usize,
    /// Pairs that keep their evaluation.
    pub(super) unresolved: usize,
}

impl ImprovementCounts {
    /// Returns the number of pairs with a new evaluation.
    pub(super) fn replaced(self) -> usize {
        self.by_adviser + self.by_people
    }
}

/// End of an improvement.
pub(super) enum ImprovedRound {
    /// The data of the next round are on disk.
    Finished(ImprovementCounts),
    /// People have to decide before the next training.
    WaitsForPeople(ImprovementCounts),
    /// The user interrupted it.
    Interrupted,
}

/// Files and settings of an improvement.
pub(super) struct RoundImprovement<'a> {
    /// Labelled training cases.
    pub(super) cases: &'a SourceSpec,
    /// Treatment of images outside of the folder of the cases.
    pub(super) outside_images: &'a OutsideImages,
    /// Folder of the round.
    pub(super) folder: &'a Path,
    /// Folder of all training data.
    pub(super) data_folder: &'a Path,
    /// Training data of the round and of the next one.
    pub(super) evaluations: [PathBuf; 2],
    /// Builds the completions of evaluations.
    pub(super) builder: &'a CompletionBuilder,
    /// Pairs per batch.
    pub(super) batch_size: usize,
    /// True to end before the next training if a pair is unresolved.
    pub(super) waits_for_people: bool,
    /// Notes.
    pub(super) progress: &'a TrainingProgress,
    /// Interruption by the user.
    pub(super) interrupt: &'a Interrupt,
}

/// Those who know better than the panel.
pub(super) struct Advisers<'a> {
    /// Adviser and reviewer.
    pub(super) discussion: &'a mut Discussion,
    /// Decisions of people, which take precedence.
    pub(super) decisions: &'a mut Decisions,
    /// Journal of the requests of all rounds.
    pub(super) journal: &'a mut RequestJournal,
}

impl RoundImprovement<'_> {
    /// Returns the path of the pairs that people have to decide about.
    pub(super) fn unresolved_path(folder: &Path) -> PathBuf {
        folder.join("unresolved.jsonl")
    }

    /// Writes the training data of the next round. A finished improvement is not repeated: the next
    /// round may be trained on its data.
    pub(super) fn run(
        &self,
        misjudged: &BTreeMap<PairId, [f64; 2]>,
        advisers: &mut Advisers,
    ) -> Result<ImprovedRound> {
        let log_path = self.folder.join("suggestions.jsonl");
        let mut log = DiscussionLog::open(&log_path, advisers.discussion.discussants())?;
        if let Some(counts) = self.finished_counts()? {
            for pair in misjudged.keys() {
                let decision = advisers.decisions.get(pair);
                if let Some(decision) = decision
                    && log.has_decision(decision)?
                {
                    advisers.decisions.mark_used(pair);
                }
            }
            return Ok(ImprovedRound::Finished(counts));
        }
        let [from, to] = &self.evaluations;
        let mut data = EvaluationData::read(from, self.data_folder)?;
        let (mut counts, mut unresolved) =
            (ImprovementCounts::default(), UnresolvedFile::default());
        let mut pairs = MisjudgedPairs::open(self.cases, misjudged, self.outside_images)?;
        loop {
            let max = advisers.discussion.adviser.batch_size(self.batch_size);
            let batch = pairs.next_batch(max);
            if batch.is_empty() {
                break;
            }
            if self.interrupt.is_requested() {
                return Ok(ImprovedRound::Interrupted);
            }
            let undecided =
                batch.iter().filter(|pair| advisers.decisions.get(&pair.id()).is_none());
            let undecided: Vec<&MisjudgedPair> = undecided.collect();
            advisers.discussion.discuss(&undecided, &mut log, advisers.journal)?;
            for pair in &batch {
                let decided = Self::decide(pair, advisers.decisions, &mut log)?;
                let problem = match &decided.verdict {
                    Ok(verdict) => self.insert(&mut data, pair, verdict)?,
                    Err(reason) => Some(reason.clone()),
                };
                match problem {
                    Some(reason) => unresolved.push(pair, &decided.discussion, &reason)?,
                    None if decided.is_by_people => {
                        advisers.decisions.mark_used(&pair.id());
                        counts.by_people += 1;
                    }
                    None => counts.by_adviser += 1,
                }
            }
        }
        for (pair, reason) in pairs.unreadable_images() {
            unresolved.push_unreadable(&pair, &reason)?;
        }
        counts.unresolved = unresolved.count();
        unresolved.write(&Self::unresolved_path(self.folder))?;
        if self.waits_for_people && counts.unresolved > 0 {
            return Ok(ImprovedRound::WaitsForPeople(counts));
        }
        if counts.replaced() > 0 && data.replaced_count() == 0 {
            self.progress.note(
                "no evaluation of the file has the prompt of a misjudged pair in the configuration's layout and rubric, \
                 so the new evaluations are added to the file",
            );
        }
        atomic_file::write_atomic(to, data.to_jsonl()?.as_bytes())?;
        let text = serde_json::to_string(&counts).context("cannot write the counts")? + "\n";
        atomic_file::write_atomic(&self.folder.join(COUNTS_FILE), text.as_bytes())?;
        Ok(ImprovedRound::Finished(counts))
    }

    /// Returns the counts of a finished improvement; `None` if it is not finished.
    fn finished_counts(&self) -> Result<Option<ImprovementCounts>> {
        let path = self.folder.join(COUNTS_FILE);
        if !path.exists() || !self.evaluations[1].exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let counts = serde_json::from_str(&text)
            .with_context(|| format!("{}: malformed\nhint: delete the file", path.display()))?;
        Ok(Some(counts))
    }

    /// Returns the evaluation of a pair: that of people, or the one that the discussion accepted.
    fn decide(
        pair: &MisjudgedPair,
        decisions: &Decisions,
        log: &mut DiscussionLog,
    ) -> Result<DecidedPair> {
        let id = pair.id();
        if let Some(decision) = decisions.get(&id) {
            log.append_decision(decision)?;
            let verdict = Ok(decision.accepted.clone());
            return Ok(DecidedPair { verdict, is_by_people: true, discussion: Vec::new() });
        }
        let advice =
            log.get(&id).context("the log has no suggestion for a pair that was discussed")?;
        let reason = || advice.rejection.clone().unwrap_or_default();
        Ok(DecidedPair {
            verdict: advice.accepted.clone().ok_or_else(reason),
            is_by_people: false,
            discussion: advice.discussion.clone(),
        })
    }

    /// Replaces the evaluations of a pair. Returns the reason if this is not possible.
    fn insert(
        &self,
        data: &mut EvaluationData,
        pair: &MisjudgedPair,
        verdict: &RecordedVerdict,
    ) -> Result<Option<String>> {
        let image = pair.job.image.as_ref().filter(|_| self.builder.sees_images());
        let image = image.map(|image| &image.decoded);
        let orders = verdict.orders.iter();
        let by_order = orders.map(|order| self.builder.completions(&pair.job, order));
        let by_order: Vec<_> = by_order.collect::<Result<_>>()?;
        let mut completions = by_order.iter().flatten();
        if !completions.all(|completion| completion.is_unambiguous(image.is_some())) {
            let reason = "the question, a response or the evaluation contains the image marker";
            return Ok(Some(reason.to_owned()));
        }
        for completions in by_order {
            data.insert(&pair.id(), image, completions)?;
        }
        Ok(None)
    }
}

/// Evaluation of a misjudged pair.
struct DecidedPair {
    /// The evaluation, or the reason for none.
    verdict: Result<RecordedVerdict, String>,
    /// True if people decided.
    is_by_people: bool,
    /// The discussion.
    discussion: Vec<DiscussionRound>,
}
