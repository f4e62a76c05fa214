//! The state of every task of every rater, which the entries of the journal add up to.

use std::collections::HashMap;

use anyhow::{Result, bail};

use super::answers::TaskAnswers;
use super::entry::{EntryAction, JournalEntry, LineFormat as _};
use crate::annotation::study::{Part, StudyPlan};

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
    responses: Vec<Vec<TaskState>>,
    evaluations: Vec<Vec<TaskState>>,
    /// By rater, true if the rater has seen an evaluation.
    opened: Vec<bool>,
    /// Number of applied entries.
    entries: u64,
}

/// A task of a rater, by the part of the study, the index of the rater, and the place in the rater's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPlace {
    /// Part of the study.
    pub part: Part,
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
        let states: Vec<Vec<TaskState>> = states.collect();
        let opened = vec![false; states.len()];
        let mut state = Self { responses: states.clone(), evaluations: states, opened, entries: 0 };
        let places = places_by_task(plan);
        for (i, entry) in entries.iter().enumerate() {
            let models = entry.models.iter().map(String::as_str).collect();
            let key = (entry.rater.as_str(), entry.case.as_str(), models);
            let Some((rater, place)) = places.get(&key).copied() else {
                bail!(
                    "{}, entry {}: {} was not assigned case {:?} in this study\n\
                     hint: pass the cases and the study that the ratings are about",
                    JournalEntry::FILE,
                    i + 1,
                    entry.rater,
                    entry.case
                );
            };
            state.apply(TaskPlace { part: entry.part, rater, place }, entry);
        }
        Ok(state)
    }

    /// Applies an entry.
    pub fn apply(&mut self, place: TaskPlace, entry: &JournalEntry) {
        self.entries += 1;
        if let Some(opened) = self.opened.get_mut(place.rater) {
            *opened |= place.part == Part::Evaluations;
        }
        let Some(state) = self.state_mut(place) else { return };
        state.status = match entry.action {
            EntryAction::Save => TaskStatus::Draft,
            EntryAction::Submit => TaskStatus::Submitted,
            EntryAction::Skip => TaskStatus::Skipped,
            EntryAction::Open => return,
        };
        state.answers = entry.answers.clone();
        state.seconds += entry.seconds;
        state.time.clone_from(&entry.time);
    }

    /// Returns the number of entries that the state adds up.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the state of a task.
    pub fn get(&self, place: TaskPlace) -> Option<&TaskState> {
        self.of_part(place.part).get(place.rater)?.get(place.place)
    }

    /// Returns the states of a rater's tasks in a part, in the rater's order.
    pub fn of_rater(&self, part: Part, rater: usize) -> &[TaskState] {
        self.of_part(part).get(rater).map_or(&[], Vec::as_slice)
    }

    /// Returns true if the rater has seen an evaluation, so that the ratings of responses are final.
    pub fn has_opened_evaluations(&self, rater: usize) -> bool {
        self.opened.get(rater).copied().unwrap_or_default()
    }

    /// Returns the places of the evaluations that a rater may see: none before all responses are rated or
    /// skipped, and none of a skipped task.
    pub fn visible_evaluations(&self, plan: &StudyPlan, rater: usize) -> Vec<usize> {
        let states = self.of_rater(Part::Responses, rater);
        let rates_responses = plan.config.rates_responses();
        let is_done =
            |state: &TaskState| matches!(state.status, TaskStatus::Submitted | TaskStatus::Skipped);
        if rates_responses && !states.iter().all(is_done) {
            return Vec::new();
        }
        let is_visible = |place: &usize| {
            let is_rated = states.get(*place).is_some_and(|s| s.status == TaskStatus::Submitted);
            let task = plan.assigned(rater, *place).map(|(assigned, _)| assigned.task);
            (is_rated || !rates_responses)
                && task.is_some_and(|task| plan.evaluations(task).is_some())
        };
        (0..states.len()).filter(is_visible).collect()
    }

    /// Returns the first of a rater's tasks that is not submitted or skipped, after a place if any.
    /// `places`: the tasks to look at, in order.
    pub fn next_open(
        &self,
        part: Part,
        rater: usize,
        places: &[usize],
        after: Option<usize>,
    ) -> Option<usize> {
        let states = self.of_rater(part, rater);
        let is_open = |place: &&usize| {
            let status = states.get(**place).map(|state| state.status);
            matches!(status, Some(TaskStatus::Open | TaskStatus::Draft))
        };
        let later = places.iter().filter(|place| after.is_none_or(|after| **place > after));
        later.chain(places).find(is_open).copied()
    }

    fn of_part(&self, part: Part) -> &[Vec<TaskState>] {
        match part {
            Part::Responses => &self.responses,
            Part::Evaluations => &self.evaluations,
        }
    }

    fn state_mut(&mut self, place: TaskPlace) -> Option<&mut TaskState> {
        let states = match place.part {
            Part::Responses => &mut self.responses,
            Part::Evaluations => &mut self.evaluations,
        };
        states.get_mut(place.rater)?.get_mut(place.place)
    }
}

/// Rater, case and models of a task.
type TaskKey<'a> = (&'a str, &'a str, Vec<&'a str>);

/// Returns the rater and the place of every task of every rater.
fn places_by_task(plan: &StudyPlan) -> HashMap<TaskKey<'_>, (usize, usize)> {
    let mut places = HashMap::new();
    for (rater, config) in plan.config.raters.iter().enumerate() {
        for place in 0..plan.assignment.get(rater).map_or(0, Vec::len) {
            if let Some((_, task)) = plan.assigned(rater, place) {
                let key = (config.name.as_str(), task.case.id.as_str(), task.models());
                places.insert(key, (rater, place));
            }
        }
    }
    places
}
