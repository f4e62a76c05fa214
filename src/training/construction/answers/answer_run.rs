//! A run: asks the questions of cases and writes the answers in input order.
//!
//! Many questions are in progress at the same time. A question without an answer becomes a line with the
//! reason. Only a failure of the model or of the file ends the run with an error.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::answer_journal::AnswerJournal;
use super::answer_record::{AnswerOutcome, AnswerRecord};
use super::answer_settings::AnswerSettings;
use super::answer_summary::AnswerSummary;
use super::question_prompt::QuestionPrompt;
use crate::data::cases::{Case, CaseResult, InputProblem, UnscoredReason};
use crate::data::images::{EncodedImage, ImageReader};
use crate::judging::judge::Unscored;
use crate::judging::judge::text_writer::{FinishedText, TextRequest, TextWriter};
use crate::support::digest::Digest;
use crate::support::terminal::exit::RunFailure;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::Progress;

/// Longest wait for an answer before the run looks for an interrupt.
const POLL: Duration = Duration::from_millis(200);
/// Time between two syncs of the file.
const SYNC_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of answers that wait for earlier ones.
const MAX_PENDING: usize = 1024;
/// Maximum number of pixels of the requests in progress.
const MAX_PIXELS: u64 = 96 << 20;
/// Maximum number of unreadable cases that are printed.
const MAX_PRINTED: u64 = 5;

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct AnswerRunConfig {
    /// Name of the model in the answers.
    pub model_id: String,
    /// The prompt of a question.
    pub prompt: QuestionPrompt,
    /// Everything that can change an answer.
    pub settings: AnswerSettings,
    /// False to ask the questions alone.
    pub shows_images: bool,
    /// Maximum number of questions.
    pub limit: Option<u64>,
}

/// A run in progress.
pub struct AnswerRun<'a> {
    writer: &'a mut dyn TextWriter,
    journal: &'a mut AnswerJournal,
    images: ImageReader,
    progress: &'a mut Progress,
    config: AnswerRunConfig,
    summary: AnswerSummary,
    pending: VecDeque<PendingAnswer>,
    in_progress: usize,
    /// Pixels of the requests in progress.
    pixels: u64,
    /// Number of the next request.
    next: u64,
    last_sync: Instant,
    interrupt: Interrupt,
}

/// A question whose line is not written yet.
struct PendingAnswer {
    question_id: String,
    prompt: String,
    key: Digest,
    state: AnswerState,
}

impl PendingAnswer {
    /// Returns the line of the question with this outcome.
    fn to_record(&self, outcome: AnswerOutcome, config: &AnswerRunConfig) -> AnswerRecord {
        AnswerRecord {
            question_id: self.question_id.clone(),
            prompt: self.prompt.clone(),
            outcome,
            model_id: config.model_id.clone(),
            settings: config.settings.hash(),
            key: self.key,
        }
    }
}

enum AnswerState {
    /// The outcome, and whether an earlier command wrote it.
    Known(AnswerOutcome, bool),
    /// The request with this number is in progress; its image has so many pixels.
    InProgress { number: u64, pixels: u64 },
}

impl<'a> AnswerRun<'a> {
    /// Creates a run that writes to a journal.
    pub fn new(
        writer: &'a mut dyn TextWriter,
        journal: &'a mut AnswerJournal,
        images: ImageReader,
        progress: &'a mut Progress,
        config: AnswerRunConfig,
    ) -> Self {
        let summary = AnswerSummary {
            model_id: config.model_id.clone(),
            answers: journal.path().to_owned(),
            ..AnswerSummary::default()
        };
        Self {
            writer,
            journal,
            images,
            progress,
            config,
            summary,
            pending: VecDeque::new(),
            in_progress: 0,
            pixels: 0,
            next: 0,
            last_sync: Instant::now(),
            interrupt: Interrupt::default(),
        }
    }

    /// Returns the counts so far.
    pub fn summary(&self) -> &AnswerSummary {
        &self.summary
    }

    /// Asks all questions. Returns `false` if it was interrupted.
    ///
    /// # Errors
    ///
    /// The model cannot answer, the cost limit is reached, or the file cannot be written. Finished
    /// answers are safe.
    pub fn run(
        &mut self,
        cases: impl Iterator<Item = CaseResult>,
        interrupt: &Interrupt,
    ) -> Result<bool> {
        self.interrupt = interrupt.clone();
        let result = self.ask_all(cases);
        // Whatever happened, finished answers reach the disk.
        self.collect_finished();
        self.write_ready()?;
        self.keep_finished()?;
        self.journal.sync()?;
        self.progress.update(self.summary.progress());
        let is_complete = result?;
        if is_complete {
            self.journal.finish()?;
        }
        Ok(is_complete)
    }

    fn ask_all(&mut self, cases: impl Iterator<Item = CaseResult>) -> Result<bool> {
        let mut remaining = self.config.limit;
        for entry in cases {
            let is_case = entry.as_ref().err().is_none_or(InputProblem::affects_whole_case);
            match entry {
                Ok(case) => self.push(&case)?,
                Err(problem) => self.note_problem(&problem),
            }
            if self.interrupt.is_requested() {
                return Ok(false);
            }
            remaining = remaining.map(|n| n.saturating_sub(u64::from(is_case)));
            if remaining == Some(0) {
                break;
            }
        }
        while self.in_progress > 0 {
            if self.interrupt.is_requested() {
                return Ok(false);
            }
            self.collect(POLL)?;
            self.write_finished()?;
        }
        Ok(true)
    }

    /// Reports an unreadable case. Problems of responses do not matter here.
    fn note_problem(&mut self, problem: &InputProblem) {
        if !problem.affects_whole_case() {
            return;
        }
        self.summary.unreadable += 1;
        if self.summary.unreadable <= MAX_PRINTED {
            self.progress.note(&format!("no question: {problem}"));
        } else if self.summary.unreadable == MAX_PRINTED + 1 {
            self.progress.note("further unreadable cases are not printed");
        }
    }

    /// Asks the question of a case, unless its answer is known.
    fn push(&mut self, case: &Case) -> Result<()> {
        let prompt = self.config.prompt.render(&case.question);
        let source = case.image.as_ref().filter(|_| self.config.shows_images);
        let image = source.map(|source| self.images.read(source)).transpose();
        let image_key = image.as_ref().ok().and_then(Option::as_ref).map(|image| image.key());
        let key = self.config.settings.key(&case.id, &prompt, image_key.as_ref());
        let pending = |state| PendingAnswer { question_id: case.id.clone(), prompt, key, state };
        let image = match image {
            Ok(image) => image,
            Err(message) => return self.push_known(pending(image_problem(message))),
        };
        if let Some(outcome) = self.journal.lookup(&key)? {
            return self.push_known(pending(AnswerState::Known(outcome, true)));
        }
        let request = match self.to_request(case, image.as_deref()) {
            Ok(request) => request,
            Err(message) => return self.push_known(pending(image_problem(message))),
        };
        let pixels = request.image.as_ref().map_or(0, |image| image.pixels());
        if !self.wait_for_room(pixels)? {
            return Ok(());
        }
        if let Err(error) = self.writer.check_budget() {
            self.drain()?;
            let failure = RunFailure("the run stops because of its limit on the cost".to_owned());
            return Err(error.context(failure));
        }
        let number = self.next;
        self.writer.submit(number, request);
        self.next += 1;
        self.in_progress += 1;
        self.pixels += pixels;
        self.pending.push_back(pending(AnswerState::InProgress { number, pixels }));
        while self.collect(Duration::ZERO)? {}
        self.write_finished()
    }

    fn push_known(&mut self, pending: PendingAnswer) -> Result<()> {
        while self.pending.len() >= MAX_PENDING && !self.interrupt.is_requested() {
            self.collect(POLL)?;
            self.write_finished()?;
        }
        self.pending.push_back(pending);
        self.write_finished()
    }

    fn to_request(&self, case: &Case, image: Option<&EncodedImage>) -> Result<TextRequest, String> {
        let image = image.map(|image| image.load(self.images.limits())).transpose()?;
        Ok(TextRequest {
            pieces: self.config.prompt.pieces(&case.question, image.is_some()),
            image,
            is_local_only: case.is_local_only(),
        })
    }

    /// Waits until another request may start; false if the run was interrupted.
    fn wait_for_room(&mut self, pixels: u64) -> Result<bool> {
        while self.in_progress > 0
            && (self.in_progress >= self.writer.capacity()
                || self.pending.len() >= MAX_PENDING
                || self.pixels + pixels > MAX_PIXELS)
        {
            if self.interrupt.is_requested() {
                return Ok(false);
            }
            self.collect(POLL)?;
            self.write_finished()?;
        }
        Ok(true)
    }

    /// Waits for all requests in progress.
    fn drain(&mut self) -> Result<()> {
        while self.in_progress > 0 && !self.interrupt.is_requested() {
            self.collect(POLL)?;
            self.write_finished()?;
        }
        Ok(())
    }

    /// Takes all answers that are finished at the end of the run. Failures of the model no longer matter.
    fn collect_finished(&mut self) {
        for _ in 0..self.in_progress {
            if let Ok(false) = self.collect(Duration::ZERO) {
                return;
            }
        }
    }

    /// Takes a finished answer; returns false if none finishes in time.
    fn collect(&mut self, timeout: Duration) -> Result<bool> {
        let finished = self.writer.next_finished(timeout).with_context(|| {
            RunFailure(
                "the model failed\n\
                 hint: written answers are safe; run the same command again to resume"
                    .to_owned(),
            )
        })?;
        let Some(FinishedText { number, result }) = finished else {
            return Ok(false);
        };
        self.in_progress = self.in_progress.saturating_sub(1);
        for pending in &mut self.pending {
            if let AnswerState::InProgress { number: n, pixels } = pending.state
                && n == number
            {
                self.pixels = self.pixels.saturating_sub(pixels);
                pending.state = AnswerState::Known(AnswerOutcome::from_result(result), false);
                break;
            }
        }
        Ok(true)
    }

    /// Writes finished answers up to the first question without one, and syncs the file every few
    /// seconds.
    fn write_finished(&mut self) -> Result<()> {
        let waiting = self.pending.len();
        self.write_ready()?;
        if self.pending.len() < waiting {
            self.progress.update(self.summary.progress());
        }
        if self.last_sync.elapsed() >= SYNC_INTERVAL {
            self.keep_finished()?;
            self.journal.sync()?;
            self.last_sync = Instant::now();
        }
        Ok(())
    }

    /// Keeps the finished answers that wait for earlier ones.
    fn keep_finished(&mut self) -> Result<()> {
        let mut kept = Vec::new();
        for pending in &self.pending {
            if let AnswerState::Known(outcome, false) = &pending.state
                && outcome.is_of_model()
                && !self.journal.is_kept(&pending.key)
            {
                kept.push(pending.to_record(outcome.clone(), &self.config));
            }
        }
        self.journal.keep(kept)
    }

    fn write_ready(&mut self) -> Result<()> {
        while let Some(pending) = self.pending.front()
            && let AnswerState::Known(outcome, is_reused) = &pending.state
        {
            self.journal.append(&pending.to_record(outcome.clone(), &self.config))?;
            self.summary.add(outcome, *is_reused);
            self.pending.pop_front();
        }
        Ok(())
    }
}

/// Returns the state of a question whose image cannot be shown.
fn image_problem(message: String) -> AnswerState {
    let unscored = Unscored::new(UnscoredReason::Image, message);
    AnswerState::Known(AnswerOutcome::from_unscored(unscored), false)
}
