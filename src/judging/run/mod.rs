//! A run: reads cases, judges their responses, and writes records in input order.
//!
//! A judge takes jobs while others are in progress (see `queue`), or batches of jobs. Memory holds
//! these jobs, and the records that wait for them. A case that cannot be judged
//! becomes an unscored record with the reason. Only a failure of the judge or of the journal ends
//! the run with an error.

mod fitting_case;
mod input_records;
pub mod journal;
pub mod manifest;
pub mod output;
pub mod pairs;
mod pending;
mod problem_subjects;
mod queue;
mod queue_state;
pub mod record;
pub mod replay;
mod run_config;
pub mod run_state;
pub mod shard;
pub mod shards_found;
pub mod source_info;
pub mod summary;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use acem3_conclusion::Verdict;
use acem3_vision::AppliedView;
use anyhow::{Context, ensure};

use crate::data::cases::{Case, InputProblem, UnscoredReason};
use crate::data::images::{EncodedImage, ImageReader, LoadedImage};
use crate::judging::judge::{Judge, JudgeJob, Unscored};
use crate::judging::provenance::{KeyInput, judge_digest, verdict_key};
use crate::judging::run::fitting_case::FittingCase;
use crate::judging::run::journal::Journal;
use crate::judging::run::journal::superseded::SUPERSEDED_FILE;
use crate::judging::run::pairs::ResponseSelection;
use crate::judging::run::pending::{InputItem, PendingOutcome, PendingRecord};
use crate::judging::run::queue_state::QueueState;
use crate::judging::run::record::{ImageInfo, Record, RecordOutcome, RecordSubject};
use crate::judging::run::summary::tally::{Origin, Tally};
use crate::support::digest::Digest;
use crate::support::terminal::exit::RunFailure;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::Progress;
use crate::support::text::{escape_control_chars, format_count};

pub use run_config::RunConfig;

/// Maximum pixels per batch; a batch that exceeds it is judged early. Each byte of a case counts as
/// a pixel.
const BATCH_PIXELS: u64 = 24 << 20;
/// Duration of a batch, so that little is lost when the program stops.
const BATCH_SECONDS: f64 = 8.0;
/// Maximum number of pending records.
const MAX_PENDING: usize = 1024;

/// A run in progress.
pub struct Run<'a> {
    judge: &'a mut dyn Judge,
    digest: Digest,
    journal: &'a mut Journal,
    images: ImageReader,
    progress: &'a mut Progress,
    config: RunConfig,
    selection: ResponseSelection,
    tally: Tally,
    pending: VecDeque<PendingRecord>,
    pending_pairs: usize,
    /// Size of the next batch: one, so that the first verdict arrives soon, then as many pairs as
    /// are judged in [`BATCH_SECONDS`].
    batch_size: usize,
    batch_pixels: u64,
    /// Jobs in the queue of the judge.
    queue: QueueState,
    interrupt: Interrupt,
}

impl<'a> Run<'a> {
    /// Creates a run that writes to a journal.
    pub fn new(
        judge: &'a mut dyn Judge,
        journal: &'a mut Journal,
        images: ImageReader,
        progress: &'a mut Progress,
        config: RunConfig,
    ) -> Self {
        let digest = judge_digest(&judge.provenance());
        let selection = ResponseSelection {
            form: judge.form(),
            shows_reference: judge.shows_reference(),
            baseline: config.baseline.clone(),
        };
        Self {
            judge,
            selection,
            digest,
            journal,
            images,
            progress,
            config,
            tally: Tally::default(),
            pending: VecDeque::new(),
            pending_pairs: 0,
            batch_size: 1,
            batch_pixels: 0,
            queue: QueueState::default(),
            interrupt: Interrupt::default(),
        }
    }

    /// Returns the counts so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Judges all cases. Returns `false` if it was interrupted.
    ///
    /// # Errors
    ///
    /// The judge fails, or the journal cannot be written. Earlier verdicts are safe in both cases.
    pub fn run(
        &mut self,
        cases: impl Iterator<Item = Result<Case, InputProblem>>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<bool> {
        self.interrupt = interrupt.clone();
        let judged = self.judge_cases(cases, interrupt);
        if judged.is_err() {
            // The first error is the cause. What it prevents, such as writing to a full disk, fails again here.
            let _ = self.keep_finished();
        }
        judged
    }

    /// Judges all cases. Returns `false` if it was interrupted.
    fn judge_cases(
        &mut self,
        cases: impl Iterator<Item = Result<Case, InputProblem>>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<bool> {
        let mut remaining_cases = self.config.limit;
        for entry in cases {
            // Problems of single responses come before their case and are not counted as cases.
            let problem = entry.as_ref().err();
            let is_case = problem.is_none_or(InputProblem::affects_whole_case);
            match entry {
                Ok(case) => self.push_case(&Arc::new(case), interrupt)?,
                Err(problem) => self.push_problem(&problem)?,
            }
            if interrupt.is_requested() {
                self.drain_queue()?;
                return Ok(false);
            }
            remaining_cases = remaining_cases.map(|n| n.saturating_sub(u64::from(is_case)));
            if remaining_cases == Some(0) {
                break;
            }
        }
        self.flush()?;
        if self.queue.cancelled > 0 {
            return Ok(false);
        }
        self.journal.finish()?;
        Ok(true)
    }

    fn push_case(&mut self, case: &Arc<Case>, interrupt: &Interrupt) -> anyhow::Result<()> {
        if let Err(message) = self.selection.select(case) {
            return self.push_unscored_case(case, UnscoredReason::Parse, &message);
        }
        let FittingCase { case: fitting, removed } = FittingCase::new(case, &*self.judge)?;
        // Without the removed responses, nothing may be left.
        let selected = fitting.as_deref().and_then(|case| self.selection.select(case).ok());
        let selected = selected.unwrap_or_default();
        self.push_removed(case, removed, selected.is_empty())?;
        let Some(case) = fitting.filter(|_| !selected.is_empty()) else {
            return Ok(());
        };
        let image = case.image.as_ref().map(|source| self.images.read(source));
        let last = selected.len().saturating_sub(1);
        for (i, responses) in selected.into_iter().enumerate() {
            if interrupt.is_requested() {
                break;
            }
            let completes = (i == last).then_some(InputItem::Case);
            self.push_responses(&case, responses, image.as_ref(), completes)?;
        }
        Ok(())
    }

    fn push_responses(
        &mut self,
        case: &Arc<Case>,
        responses: Vec<usize>,
        image: Option<&Result<Arc<EncodedImage>, String>>,
        completes: Option<InputItem>,
    ) -> anyhow::Result<()> {
        let form = self.selection.form;
        let mut subject = RecordSubject::for_responses(case, form, &responses, &self.digest);
        subject.image = case.image.as_ref().map(|source| ImageInfo {
            name: self.images.name(source),
            sha256: image.and_then(|image| Some(image.as_ref().ok()?.sha256)),
            view: image.and_then(|image| self.dicom_view(image.as_ref().ok()?)),
        });
        if let Err(message) = self.selection.check_reference(case) {
            return self.push_unscored(subject, UnscoredReason::Parse, message, completes);
        }
        let image = match image.map(Result::as_ref).transpose() {
            Ok(image) => image,
            Err(message) => {
                let message = message.clone();
                return self.push_unscored(subject, UnscoredReason::Image, message, completes);
            }
        };
        let mut job = JudgeJob { case: Arc::clone(case), responses, image: None };
        let hash = image.map(|image| image.key());
        let key_input = KeyInput {
            question: job.question(),
            responses: &job.texts(),
            reference: case.reference.as_deref().filter(|_| self.selection.shows_reference),
            image: hash.as_ref(),
        };
        let key = verdict_key(&self.digest, &key_input);
        subject.key = Some(key);
        if let Some(outcome) = self.journal.lookup(&key)? {
            let outcome = PendingOutcome::Known(outcome, Origin::Earlier);
            return self.push(PendingRecord { subject, outcome, completes });
        }
        self.report_divergence();
        match image.map(|image| image.load(self.images.limits())).transpose() {
            Ok(image) => job.image = image,
            Err(message) => {
                return self.push_unscored(subject, UnscoredReason::Image, message, completes);
            }
        }
        self.push(PendingRecord { subject, outcome: PendingOutcome::AwaitingJudge(job), completes })
    }

    /// Decodes a DICOM image and returns the frame and window in use.
    fn dicom_view(&self, image: &EncodedImage) -> Option<AppliedView> {
        let loaded = image.is_dicom().then(|| image.load(self.images.limits()))?;
        loaded.ok()?.decoded.applied_view().copied()
    }

    fn push(&mut self, pending: PendingRecord) -> anyhow::Result<()> {
        if self.judge.queue().is_some() {
            return self.push_to_queue(pending);
        }
        if let PendingOutcome::AwaitingJudge(job) = &pending.outcome {
            self.pending_pairs += 1;
            self.batch_pixels += job_size(job);
        }
        self.pending.push_back(pending);
        if self.pending_pairs == 0 {
            self.write_ready()?;
            self.progress.update(self.tally.progress());
            return Ok(());
        }
        let full = self.pending_pairs >= self.batch_size || self.batch_pixels >= BATCH_PIXELS;
        if full || self.pending.len() >= MAX_PENDING { self.flush() } else { Ok(()) }
    }

    /// Judges the pending pairs and writes all pending records.
    fn flush(&mut self) -> anyhow::Result<()> {
        if self.judge.queue().is_some() {
            return self.drain_queue();
        }
        let jobs: Vec<JudgeJob> = (self.pending.iter())
            .filter_map(|pending| match &pending.outcome {
                PendingOutcome::AwaitingJudge(job) => Some(job.clone()),
                PendingOutcome::Known(..) | PendingOutcome::InQueue { .. } => None,
            })
            .collect();
        if !jobs.is_empty() {
            let start = Instant::now();
            let outcomes = self.judge_batch(&jobs).with_context(|| {
                let first = jobs.first().map_or("", |job| &job.case.id);
                RunFailure(format!(
                    "the judge failed at case `{first}` (batch of {})\n\
                     hint: finished verdicts are safe; run the same command again to resume",
                    jobs.len()
                ))
            })?;
            let mut outcomes = outcomes.into_iter();
            let waiting = self
                .pending
                .iter_mut()
                .filter(|s| matches!(s.outcome, PendingOutcome::AwaitingJudge(_)));
            for (pending, outcome) in waiting.zip(&mut outcomes) {
                pending.outcome = PendingOutcome::Known(outcome, Origin::Judge);
            }
            (self.pending_pairs, self.batch_pixels) = (0, 0);
            let rate = jobs.len() as f64 / start.elapsed().as_secs_f64().max(1e-6);
            let size = (rate * BATCH_SECONDS) as usize;
            self.batch_size = size.clamp(1, self.config.batch_size.max(1));
        }
        self.write_ready()?;
        self.journal.sync()?;
        self.progress.update(self.tally.progress());
        Ok(())
    }

    fn judge_batch(&mut self, jobs: &[JudgeJob]) -> anyhow::Result<Vec<RecordOutcome>> {
        let results = self.judge.judge(jobs)?;
        ensure!(
            results.len() == jobs.len(),
            "the judge returned {} results for {} jobs",
            results.len(),
            jobs.len()
        );
        results.into_iter().map(|result| self.to_outcome(result)).collect()
    }

    fn to_outcome(&self, result: Result<Verdict, Unscored>) -> anyhow::Result<RecordOutcome> {
        RecordOutcome::from_result(result, self.selection.form, self.judge.is_reproducible())
    }

    /// Writes the leading records that do not wait for the judge.
    fn write_ready(&mut self) -> anyhow::Result<()> {
        while let Some(pending) = self.pending.pop_front() {
            let (outcome, origin) = match pending.outcome {
                PendingOutcome::Known(outcome, origin) => (outcome, origin),
                PendingOutcome::AwaitingJudge(_) | PendingOutcome::InQueue { .. } => {
                    self.pending.push_front(pending);
                    break;
                }
            };
            let record = Record::new(pending.subject, outcome);
            self.journal.append(&record)?;
            self.report_divergence();
            self.tally.add(&record, origin);
            self.count_completed(pending.completes);
            match &record.outcome {
                RecordOutcome::Judged(_) => {}
                RecordOutcome::Unscored(unscored) => {
                    self.log("unscored", &record.subject, &unscored.message);
                }
                RecordOutcome::Noted { message } => self.log("noted", &record.subject, message),
            }
        }
        Ok(())
    }

    fn count_completed(&mut self, completes: Option<InputItem>) {
        let counts = &mut self.tally.counts;
        match completes {
            Some(InputItem::Case) => counts.cases += 1,
            Some(InputItem::Unreadable) => counts.unreadable += 1,
            Some(InputItem::LeftOut) => counts.left_out += 1,
            None => {}
        }
    }

    fn log(&self, status: &str, subject: &RecordSubject, message: &str) {
        let case = subject.case.as_deref().unwrap_or("without id");
        let case = escape_control_chars(case);
        let first = message.lines().next().unwrap_or_default();
        let file = subject.file.as_ref().map_or(String::new(), |file| format!("{file} "));
        self.progress
            .note_verbose(&format!("{status}: {file}line {}, case {case}: {first}", subject.line));
    }

    fn report_divergence(&mut self) {
        if let Some(kept) = self.journal.take_divergence() {
            if self.config.fills_gaps {
                self.progress.note(
                    "the earlier records are some shards of the cases; matching verdicts are reused, and missing \
                     cases are judged",
                );
                return;
            }
            let position = match kept {
                0 => "from the first record on".to_owned(),
                kept => format!("after {}", format_count(kept, "record")),
            };
            self.progress.note(&format!(
                "this run differs from the records of the earlier one {position}: other input or \
                 settings, or records were removed or moved; matching verdicts are reused, the \
                 others are in {SUPERSEDED_FILE}"
            ));
        }
    }
}

/// Returns the pixels of the image of a job, plus the bytes of its case.
fn job_size(job: &JudgeJob) -> u64 {
    job.image.as_deref().map_or(0, LoadedImage::pixels) + job.case.stored_bytes() as u64
}
