//! The run: cases in, pairs to the judge in batches, records out in the order of the input.
//!
//! At most one batch, and the records that wait for it, are in memory. A case that cannot be
//! judged becomes a record that says why; only a judge that fails as a whole ends the run.

pub mod journal;
pub mod manifest;
pub mod output;
pub mod pairs;
mod pending;
pub mod record;
pub mod records;
pub mod replay;
pub mod summary;
pub mod superseded;
pub mod tally;
pub mod torn_line;
pub mod unscored_causes;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use acem3_vision::Shown;
use anyhow::{Context, ensure};

use crate::data::cases::{Case, InputProblem, UnscoredReason};
use crate::data::images::{EncodedImage, ImageReader, LoadedImage, relative};
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::judging::judge::{Judge, PairJob, Unscored};
use crate::judging::provenance::{judge_digest, pair_key};
use crate::judging::run::journal::Journal;
use crate::judging::run::pairs::{lost_pairs, pairs};
use crate::judging::run::pending::{PendingOutcome, PendingRecord, RecordBoundary};
use crate::judging::run::record::{ImageInfo, Record, RecordOutcome, RecordSubject};
use crate::judging::run::superseded::ASIDE;
use crate::judging::run::tally::{Origin, Tally};
use crate::support::digest::Digest;
use crate::support::terminal::exit::EngineFailure;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::Progress;
use crate::support::text::printable;

/// A batch is closed early when its images hold so many pixels, whatever its size.
const BATCH_PIXELS: u64 = 64 << 20;
/// Records that wait for a batch, at most.
const WINDOW: usize = 1024;

/// How to run.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// Pairs per batch, at most.
    pub batch_size: usize,
    /// Judge each model against this one, instead of all pairs.
    pub baseline: Option<String>,
    /// Stop after so many cases.
    pub limit: Option<u64>,
    /// The folder from which files are named.
    pub root: PathBuf,
}

/// A run on its way.
pub struct Run<'a> {
    judge: &'a mut dyn Judge,
    digest: Digest,
    journal: &'a mut Journal,
    images: ImageReader,
    progress: &'a mut Progress,
    plan: RunConfig,
    tally: Tally,
    window: VecDeque<PendingRecord>,
    waiting: usize,
    /// The size of the next batch. It grows from one to the planned size, so that the first
    /// verdict is there soon.
    size: usize,
    pixels: u64,
}

impl<'a> Run<'a> {
    /// A run that writes into a journal.
    pub fn new(
        judge: &'a mut dyn Judge,
        journal: &'a mut Journal,
        images: ImageReader,
        progress: &'a mut Progress,
        plan: RunConfig,
    ) -> Self {
        let digest = judge_digest(&judge.provenance());
        Self {
            judge,
            digest,
            journal,
            images,
            progress,
            plan,
            tally: Tally::default(),
            window: VecDeque::new(),
            waiting: 0,
            size: 1,
            pixels: 0,
        }
    }

    /// What has been counted so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Judges all cases. Gives `false` if it was interrupted before the end.
    ///
    /// # Errors
    ///
    /// A judge that fails as a whole, and a journal that cannot be written; what was judged before
    /// is safe in both cases.
    pub fn all(
        &mut self,
        cases: impl Iterator<Item = Result<Case, InputProblem>>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<bool> {
        let mut left = self.plan.limit;
        for entry in cases {
            // Responses that are left out of a case come before it and are none themselves.
            let is_case = entry.as_ref().map_or_else(InputProblem::is_case, |_| true);
            match entry {
                Ok(case) => self.case(&Arc::new(case), interrupt)?,
                Err(problem) => self.problem(&problem)?,
            }
            if interrupt.requested() {
                self.write_ready()?;
                self.journal.sync()?;
                return Ok(false);
            }
            left = left.map(|left| left.saturating_sub(u64::from(is_case)));
            if left == Some(0) {
                break;
            }
        }
        self.flush()?;
        self.journal.finish()?;
        Ok(true)
    }

    fn problem(&mut self, problem: &InputProblem) -> anyhow::Result<()> {
        let file = relative(&problem.file, &self.plan.root);
        let lost = lost_pairs(problem.pairs(), self.plan.baseline.as_deref());
        let mut pairs: Vec<_> = lost.into_iter().map(Some).collect();
        if pairs.is_empty() {
            pairs.push(None);
        }
        let last = pairs.len() - 1;
        let end = if problem.is_case() {
            RecordBoundary::Unreadable
        } else {
            RecordBoundary::LeftOut
        };
        for (i, pair) in pairs.into_iter().enumerate() {
            let subject = RecordSubject::of_problem(problem, pair, file.clone(), &self.digest);
            let ends = (i == last).then_some(end);
            let step = PendingOutcome::Ready(RecordOutcome::of_problem(problem), Origin::Input);
            self.push(PendingRecord {
                subject,
                step,
                ends,
            })?;
        }
        Ok(())
    }

    fn case(&mut self, case: &Arc<Case>, interrupt: &Interrupt) -> anyhow::Result<()> {
        let pairs = match pairs(case, self.plan.baseline.as_deref()) {
            Ok(pairs) => pairs,
            Err(message) => {
                let subject = RecordSubject::of_case(case, &self.digest);
                return self.unscored(
                    subject,
                    UnscoredReason::Parse,
                    message,
                    Some(RecordBoundary::Case),
                );
            }
        };
        let image = case.image.as_ref().map(|source| self.images.read(source));
        let last = pairs.len().saturating_sub(1);
        for (i, pair) in pairs.into_iter().enumerate() {
            if interrupt.requested() {
                break;
            }
            let ends = (i == last).then_some(RecordBoundary::Case);
            self.pair(case, pair, image.as_ref(), ends)?;
        }
        Ok(())
    }

    fn pair(
        &mut self,
        case: &Arc<Case>,
        pair: [usize; 2],
        image: Option<&Result<Arc<EncodedImage>, String>>,
        ends: Option<RecordBoundary>,
    ) -> anyhow::Result<()> {
        let mut subject = RecordSubject::of_pair(case, pair, &self.digest);
        subject.image = case.image.as_ref().map(|source| ImageInfo {
            name: self.images.name(source),
            sha256: image.and_then(|image| Some(image.as_ref().ok()?.sha256)),
            view: image.and_then(|image| self.shown(image.as_ref().ok()?)),
        });
        let image = match image.map(Result::as_ref).transpose() {
            Ok(image) => image,
            Err(message) => {
                return self.unscored(subject, UnscoredReason::Image, message.clone(), ends);
            }
        };
        let mut job = PairJob {
            case: Arc::clone(case),
            pair,
            image: None,
        };
        let seen = image.map(|image| image.key());
        let key = pair_key(&self.digest, job.question(), job.responses(), seen.as_ref());
        subject.key = Some(key);
        if let Some(outcome) = self.journal.recall(&key)? {
            let step = PendingOutcome::Ready(outcome, Origin::Earlier);
            return self.push(PendingRecord {
                subject,
                step,
                ends,
            });
        }
        self.tell_cut();
        match image
            .map(|image| image.load(self.images.limits()))
            .transpose()
        {
            Ok(image) => job.image = image,
            Err(message) => return self.unscored(subject, UnscoredReason::Image, message, ends),
        }
        self.push(PendingRecord {
            subject,
            step: PendingOutcome::Waits(job),
            ends,
        })
    }

    /// What of a DICOM image is looked at; it is decoded for this, and once.
    fn shown(&self, image: &EncodedImage) -> Option<Shown> {
        let loaded = image.is_dicom().then(|| image.load(self.images.limits()))?;
        loaded.ok()?.decoded.shown().copied()
    }

    fn unscored(
        &mut self,
        subject: RecordSubject,
        reason: UnscoredReason,
        message: String,
        ends: Option<RecordBoundary>,
    ) -> anyhow::Result<()> {
        let outcome = RecordOutcome::Unscored(Unscored { reason, message });
        self.push(PendingRecord {
            subject,
            step: PendingOutcome::Ready(outcome, Origin::Input),
            ends,
        })
    }

    fn push(&mut self, slot: PendingRecord) -> anyhow::Result<()> {
        if let PendingOutcome::Waits(job) = &slot.step {
            self.waiting += 1;
            self.pixels += job.image.as_deref().map_or(0, LoadedImage::pixels);
        }
        self.window.push_back(slot);
        if self.waiting == 0 {
            self.write_ready()?;
            self.progress.show(self.tally.progress());
            return Ok(());
        }
        let full = self.waiting >= self.size || self.pixels >= BATCH_PIXELS;
        if full || self.window.len() >= WINDOW {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Judges what waits, and writes the whole window.
    fn flush(&mut self) -> anyhow::Result<()> {
        let jobs: Vec<PairJob> = (self.window.iter())
            .filter_map(|slot| match &slot.step {
                PendingOutcome::Waits(job) => Some(job.clone()),
                PendingOutcome::Ready(..) => None,
            })
            .collect();
        if !jobs.is_empty() {
            let outcomes = self.outcomes(&jobs).with_context(|| {
                let first = jobs.first().map_or("", |job| &job.case.id);
                EngineFailure(format!(
                    "the judge failed at case `{first}` (batch of {})\n\
                     hint: what was judged before is safe; the same command resumes",
                    jobs.len()
                ))
            })?;
            let mut outcomes = outcomes.into_iter();
            let waiting = self
                .window
                .iter_mut()
                .filter(|s| matches!(s.step, PendingOutcome::Waits(_)));
            for (slot, outcome) in waiting.zip(&mut outcomes) {
                slot.step = PendingOutcome::Ready(outcome, Origin::Judge);
            }
            (self.waiting, self.pixels) = (0, 0);
            self.size = (2 * self.size).min(self.plan.batch_size.max(1));
        }
        self.write_ready()?;
        self.journal.sync()?;
        self.progress.show(self.tally.progress());
        Ok(())
    }

    fn outcomes(&mut self, jobs: &[PairJob]) -> anyhow::Result<Vec<RecordOutcome>> {
        let results = self.judge.judge(jobs)?;
        ensure!(
            results.len() == jobs.len(),
            "the judge gave {} results for {} pairs",
            results.len(),
            jobs.len()
        );
        let outcome = |result: Result<_, Unscored>| match result {
            Ok(verdict) => Ok(RecordOutcome::Judged(Box::new(RecordedVerdict::of(
                &verdict,
            )?))),
            Err(unscored) => Ok(RecordOutcome::Unscored(unscored)),
        };
        results.into_iter().map(outcome).collect()
    }

    /// Writes the records at the head of the window that wait for nothing.
    fn write_ready(&mut self) -> anyhow::Result<()> {
        while let Some(slot) = self.window.pop_front() {
            let (outcome, origin) = match slot.step {
                PendingOutcome::Ready(outcome, origin) => (outcome, origin),
                PendingOutcome::Waits(_) => {
                    self.window.push_front(slot);
                    break;
                }
            };
            let record = Record::new(slot.subject, outcome);
            self.journal.put(&record)?;
            self.tell_cut();
            self.tally.add(&record, origin);
            self.count_end(slot.ends);
            match &record.outcome {
                RecordOutcome::Judged(_) => {}
                RecordOutcome::Unscored(unscored) => {
                    self.tell("unscored", &record.subject, &unscored.message);
                }
                RecordOutcome::Noted { message } => self.tell("noted", &record.subject, message),
            }
        }
        Ok(())
    }

    fn count_end(&mut self, ends: Option<RecordBoundary>) {
        let counts = &mut self.tally.counts;
        match ends {
            Some(RecordBoundary::Case) => counts.cases += 1,
            Some(RecordBoundary::Unreadable) => counts.unreadable += 1,
            Some(RecordBoundary::LeftOut) => counts.left_out += 1,
            None => {}
        }
    }

    fn tell(&self, what: &str, subject: &RecordSubject, message: &str) {
        let case = subject.case.as_deref().unwrap_or("without id");
        // A case of two lines stays on one.
        let case = printable(case);
        let first = message.lines().next().unwrap_or_default();
        let file = subject
            .file
            .as_ref()
            .map_or(String::new(), |file| format!("{file} "));
        self.progress.detail(&format!(
            "{what}: {file}line {}, case {case}: {first}",
            subject.line
        ));
    }

    fn tell_cut(&mut self) {
        if let Some(kept) = self.journal.take_cut() {
            self.progress.note(&format!(
                "after {kept} records the input, or what is asked of it, differs from that of the earlier \
                 run; verdicts that fit are reused, and {ASIDE} keeps the others"
            ));
        }
    }
}
