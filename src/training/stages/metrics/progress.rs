//! Progress of a training on stderr: a bar on a terminal, log lines elsewhere, nothing in quiet
//! mode.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::print_lines;

/// Progress output and interruption of a training.
#[derive(Clone, Debug)]
pub struct TrainingProgress {
    output: TrainingProgressView,
    interrupt: Interrupt,
    printed_notes: Arc<Mutex<BTreeSet<String>>>,
}

/// Type of progress output.
#[derive(Clone, Debug)]
enum TrainingProgressView {
    Bar(ProgressBar),
    Lines,
    Quiet,
}

impl TrainingProgressView {
    fn new(quiet: bool) -> Self {
        if quiet {
            return Self::Quiet;
        }
        if !io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        match ProgressStyle::with_template("{prefix} {bar:24} {pos}/{len}, {wide_msg}") {
            Ok(style) => Self::Bar(bar.with_style(style)),
            Err(_) => Self::Lines,
        }
    }
}

impl TrainingProgress {
    /// Chooses the output for the current stderr.
    pub fn new(quiet: bool, interrupt: Interrupt) -> Self {
        Self { output: TrainingProgressView::new(quiet), interrupt, printed_notes: Arc::default() }
    }

    /// Returns true if the user has interrupted the training.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.is_requested()
    }

    /// Returns the time between two reports.
    pub(crate) fn report_interval(&self) -> Duration {
        match &self.output {
            TrainingProgressView::Bar(_) => Duration::from_secs(2),
            TrainingProgressView::Lines | TrainingProgressView::Quiet => Duration::from_secs(15),
        }
    }

    /// Starts a stage, or resumes it after `step`.
    pub(crate) fn start_stage(&self, name: &str, step: u64, steps: u64) {
        if let TrainingProgressView::Bar(bar) = &self.output {
            bar.set_length(steps);
            bar.set_position(step);
            bar.set_prefix(name.to_owned());
            bar.set_message("waiting for the first steps");
        }
    }

    /// Reports the state of a stage after a step.
    pub(crate) fn report(&self, name: &str, step: u64, state: &str) {
        match &self.output {
            TrainingProgressView::Bar(bar) => {
                bar.set_position(step);
                bar.set_message(state.to_owned());
            }
            TrainingProgressView::Lines => print_lines(&format!("{name}: step {step}, {state}")),
            TrainingProgressView::Quiet => {}
        }
    }

    /// Prints a note above the progress bar, or as a line.
    pub(crate) fn note(&self, text: &str) {
        match &self.output {
            TrainingProgressView::Bar(bar) => bar.suspend(|| print_lines(text)),
            TrainingProgressView::Lines => print_lines(text),
            TrainingProgressView::Quiet => {}
        }
    }

    /// Prints a note unless the same text was printed before.
    pub(crate) fn note_once(&self, text: &str) {
        let notes = self.printed_notes.lock();
        let mut notes = notes.unwrap_or_else(PoisonError::into_inner);
        if notes.insert(text.to_owned()) {
            self.note(text);
        }
    }

    /// Removes the progress bar.
    pub(crate) fn finish(&self) {
        if let TrainingProgressView::Bar(bar) = &self.output {
            bar.finish_and_clear();
        }
    }
}
