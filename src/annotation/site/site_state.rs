//! What all requests share: the study, the ratings and the images.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use anyhow::{Context as _, Result};

use super::access::AccessLinks;
use super::agreement_cache::AgreementCache;
use super::allowed_hosts::AllowedHosts;
use super::png_images::PngImages;
use super::study_images::{FileWindows, StudyImages};
use crate::annotation::journal::{
    AdjudicationEntry, EntryAction, JournalEntry, LineJournal, RatingState, SCHEMA, TaskAnswers,
    TaskPlace, TaskStatus,
};
use crate::annotation::pages::image_view::FileWindow;
use crate::annotation::study::{Part, StudyPlan, Task};
use crate::support::terminal::clock::format_rfc3339;

/// Shared state of the site.
pub struct SiteState {
    /// The study.
    pub plan: StudyPlan,
    /// Who may visit the site.
    pub access: AccessLinks,
    /// Names of the site.
    pub hosts: AllowedHosts,
    /// Folder of the cases, which the names of images are relative to.
    pub image_folder: PathBuf,
    /// State of all tasks. Pages read it while a line of the journal is on its way to the disk.
    ratings: Mutex<RatingState>,
    journal: Mutex<LineJournal<JournalEntry>>,
    /// What the administrator decided, in order.
    decided: Mutex<Vec<AdjudicationEntry>>,
    adjudications: Mutex<LineJournal<AdjudicationEntry>>,
    windows: FileWindows,
    /// What the administrator sees of the agreement.
    pub(super) agreement: AgreementCache,
    /// Images of the cases.
    pub(super) images: Arc<PngImages>,
}

/// The journals of a study, open, with what they add up to.
pub struct StudyJournals {
    /// What the raters enter.
    pub ratings: LineJournal<JournalEntry>,
    /// State of all tasks.
    pub state: RatingState,
    /// What the administrator decides.
    pub adjudications: LineJournal<AdjudicationEntry>,
    /// What the administrator decided.
    pub decided: Vec<AdjudicationEntry>,
}

/// What a rater sends about a task.
pub(super) struct SentAnswers {
    /// What the rater did.
    pub(super) action: EntryAction,
    /// The answers, in the order of the case.
    pub(super) answers: TaskAnswers,
    /// Seconds since the page was opened.
    pub(super) seconds: f64,
}

impl SiteState {
    /// Creates the state of a study.
    pub fn new(
        plan: StudyPlan,
        access: AccessLinks,
        hosts: AllowedHosts,
        journals: StudyJournals,
        images: StudyImages,
    ) -> Self {
        let StudyImages { reader, windows } = images;
        let image_folder = reader.root().to_owned();
        let images = Arc::new(PngImages::new(reader));
        Self {
            plan,
            access,
            hosts,
            image_folder,
            ratings: Mutex::new(journals.state),
            journal: Mutex::new(journals.ratings),
            decided: Mutex::new(journals.decided),
            adjudications: Mutex::new(journals.adjudications),
            windows,
            agreement: AgreementCache::default(),
            images,
        }
    }

    /// Returns the window of the image of a task, if it has one that can be changed.
    pub(super) fn image_window(&self, task: &Task) -> Option<FileWindow> {
        self.windows.get(&task.case.id).copied()
    }

    /// Returns what the administrator decided, in order.
    pub fn adjudications(&self) -> Vec<AdjudicationEntry> {
        lock(&self.decided).clone()
    }

    /// Writes a decision of the administrator to its journal.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(super) fn adjudicate(&self, entry: AdjudicationEntry) -> Result<()> {
        let mut adjudications = lock(&self.adjudications);
        adjudications.append(&entry)?;
        lock(&self.decided).push(entry);
        Ok(())
    }

    /// Returns a copy of the state of all tasks, for results.
    pub fn ratings(&self) -> RatingState {
        lock(&self.ratings).clone()
    }

    /// Returns what a function reads from the state of all tasks.
    pub(super) fn read_ratings<T>(&self, read: impl FnOnce(&RatingState) -> T) -> T {
        read(&lock(&self.ratings))
    }

    /// Writes the answers of a rater to the journal. When this returns, they are on disk. Returns false,
    /// and writes nothing, if the answers are final, or if the rater may not see the task yet.
    ///
    /// # Errors
    /// If the rater has no such task, or the journal cannot be written.
    pub(super) fn record(&self, place: TaskPlace, sent: SentAnswers) -> Result<bool> {
        let (assigned, task) =
            self.plan.assigned(place.rater, place.place).context("no such case")?;
        let rater = self.plan.config.raters.get(place.rater).context("no such rater")?;
        let entry = JournalEntry {
            schema: SCHEMA,
            time: format_rfc3339(SystemTime::now()),
            rater: rater.name.clone(),
            part: place.part,
            case: task.case.id.clone(),
            models: task.models().into_iter().map(str::to_owned).collect(),
            swapped: match place.part {
                Part::Responses => assigned.is_swapped,
                Part::Evaluations => assigned.is_judge_swapped,
            },
            action: sent.action,
            answers: sent.answers,
            seconds: sent.seconds,
        };
        // Under the lock of the journal, so that of two forms that arrive together only one is stored.
        let mut journal = lock(&self.journal);
        if !self.read_ratings(|ratings| self.accepts_answers(ratings, place)) {
            return Ok(false);
        }
        journal.append(&entry)?;
        lock(&self.ratings).apply(place, &entry);
        Ok(true)
    }

    /// Returns true if the rater may see the task, and its answers are not final.
    fn accepts_answers(&self, ratings: &RatingState, place: TaskPlace) -> bool {
        let is_open = match place.part {
            Part::Responses => {
                self.plan.config.rates_responses() && !ratings.has_opened_evaluations(place.rater)
            }
            Part::Evaluations => {
                ratings.visible_evaluations(&self.plan, place.rater).contains(&place.place)
            }
        };
        is_open && ratings.get(place).is_none_or(|state| state.status != TaskStatus::Submitted)
    }
}

/// Locks a value. It is consistent after a panic: an entry is applied after it is written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
