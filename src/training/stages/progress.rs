//! What a person sees of a training: a bar on a terminal, a line now and then elsewhere, nothing when
//! asked. Everything goes to stderr.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::say;

/// The person at a training: what is shown, and whether it was asked to stop.
#[derive(Clone, Debug)]
pub struct TrainingProgress {
    view: TrainingProgressView,
    interrupt: Interrupt,
    told: Arc<Mutex<BTreeSet<String>>>,
}

#[derive(Clone, Debug)]
enum TrainingProgressView {
    /// A bar, redrawn in place.
    Bar(ProgressBar),
    /// Lines.
    Lines,
    /// Nothing.
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
    /// The view that fits stderr, or none.
    pub fn new(quiet: bool, interrupt: Interrupt) -> Self {
        let view = TrainingProgressView::new(quiet);
        Self {
            view,
            interrupt,
            told: Arc::default(),
        }
    }

    /// Whether the person has asked to stop.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupt.requested()
    }

    /// How often a report is due.
    pub(crate) fn pause(&self) -> Duration {
        match &self.view {
            TrainingProgressView::Bar(_) => Duration::from_secs(2),
            TrainingProgressView::Lines | TrainingProgressView::Quiet => Duration::from_secs(15),
        }
    }

    /// A stage begins, or goes on at a step.
    pub(crate) fn stage(&self, name: &str, at: u64, steps: u64) {
        if let TrainingProgressView::Bar(bar) = &self.view {
            bar.set_length(steps);
            bar.set_position(at);
            bar.set_prefix(name.to_owned());
            bar.set_message("the first steps are on their way");
        }
    }

    /// How a stage stands at a step.
    pub(crate) fn report(&self, name: &str, at: u64, state: &str) {
        match &self.view {
            TrainingProgressView::Bar(bar) => {
                bar.set_position(at);
                bar.set_message(state.to_owned());
            }
            TrainingProgressView::Lines => say(&format!("{name}: step {at}, {state}")),
            TrainingProgressView::Quiet => {}
        }
    }

    /// Something to be kept in view.
    pub(crate) fn note(&self, text: &str) {
        match &self.view {
            TrainingProgressView::Bar(bar) => bar.suspend(|| say(text)),
            TrainingProgressView::Lines => say(text),
            TrainingProgressView::Quiet => {}
        }
    }

    /// The same, the first time that it is said.
    pub(crate) fn once(&self, text: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(text.to_owned()) {
            self.note(text);
        }
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        if let TrainingProgressView::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
    }
}
