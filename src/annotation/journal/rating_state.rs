//! The state of every task of every rater, which the entries of the journal add up to.

use std::collections::HashMap;

use anyhow::{Result, bail};

use super::answers::TaskAnswers;
use super::entry::{EntryAction, JournalEntry};
use crate::annotation::study::StudyPlan;

/// How far a rater is with a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskStatus {
    /// Nothing entered.
    #[default]
    Open,
    /// A draft is saved.
    Draft,
    /// Submitted; the answers are final.
    Submitted,
    /// Skipped with a reason.
    Skipped,
}

impl TaskStatus {
    /// Returns the status in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Draft => "draft",
            Self::Submitted => "submitted",
            Self::Skipped => "skipped",
        }
    }
}

/// State of a task of a rater.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskState {
    /// How far the rater is.
    pub status: TaskStatus,
    /// The answers of the last entry.
    pub answers: TaskAnswers,
    /// Seconds on the page, over all visits that ended with an entry.
    pub seconds: f64,
    /// Time of the last entry, in UTC.
    pub time: String,
}

/// The states of all tasks, by rater and then in the rater's order.
#[derive(Clone, Debug)]
pub struct RatingState {
    by_rater: Vec<Vec<TaskState>>,
}

/// A task of a rater, by the index of the rater and the place in the rater's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPlace {
    /// Index of the rater.
    pub rater: usize,
    /// Place in the order of the rater.
    pub place: usize,
}

impl RatingState {
    /// Adds up the entries of a journal.
    ///
    /// # Errors
    /// If an entry is about a rater or task that the study does not have.
    pub fn new(plan: &StudyPlan, entries: &[JournalEntry]) -> Result<Self> {
        let states = plan.assignment.iter().map(|tasks| vec![TaskState::default(); tasks.len()]);
        let mut state = Self { by_rater: states.collect() };
        let places = places_by_task(plan);
        for (i, entry) in entries.iter().enumerate() {
            let models = entry.models.iter().map(String::as_str).collect();
            let key = (entry.rater.as_str(), entry.case.as_str(), models);
            let Some(place) = places.get(&key).copied() else {
                bail!(
                    "entry {} of the journal: {} was not assigned case {:?} in this study\n\
                     hint: pass the cases and the study that the ratings are about",
                    i + 1,
                    entry.rater,
                    entry.case
                );
            };
            state.apply(place, entry);
        }
        Ok(state)
    }

    /// Applies an entry.
    pub fn apply(&mut self, place: TaskPlace, entry: &JournalEntry) {
        let Some(state) = self.state_mut(place) else { return };
        state.status = match entry.action {
            EntryAction::Save => TaskStatus::Draft,
            EntryAction::Submit => TaskStatus::Submitted,
            EntryAction::Skip => TaskStatus::Skipped,
        };
        state.answers = entry.answers.clone();
        state.seconds += entry.seconds;
        state.time.clone_from(&entry.time);
    }

    /// Returns the state of a task.
    pub fn get(&self, place: TaskPlace) -> Option<&TaskState> {
        self.by_rater.get(place.rater)?.get(place.place)
    }

    /// Returns the states of a rater's tasks, in the rater's order.
    pub fn of_rater(&self, rater: usize) -> &[TaskState] {
        self.by_rater.get(rater).map_or(&[], Vec::as_slice)
    }

    /// Returns the first task of a rater that is not submitted or skipped, after a place if any.
    pub fn next_open(&self, rater: usize, after: Option<usize>) -> Option<usize> {
        let states = self.of_rater(rater);
        let start = after.map_or(0, |place| place + 1);
        let is_open =
            |place: &usize| matches!(states[*place].status, TaskStatus::Open | TaskStatus::Draft);
        (start..states.len()).chain(0..start.min(states.len())).find(is_open)
    }

    fn state_mut(&mut self, place: TaskPlace) -> Option<&mut TaskState> {
        self.by_rater.get_mut(place.rater)?.get_mut(place.place)
    }
}

/// Rater, case and models of a task.
type TaskKey<'a> = (&'a str, &'a str, Vec<&'a str>);

/// Returns the place of every task of every rater.
fn places_by_task(plan: &StudyPlan) -> HashMap<TaskKey<'_>, TaskPlace> {
    let mut places = HashMap::new();
    for (rater, config) in plan.config.raters.iter().enumerate() {
        for place in 0..plan.assignment.get(rater).map_or(0, Vec::len) {
            if let Some((_, task)) = plan.assigned(rater, place) {
                let key = (config.name.as_str(), task.case.id.as_str(), task.models());
                places.insert(key, TaskPlace { rater, place });
            }
        }
    }
    places
}
