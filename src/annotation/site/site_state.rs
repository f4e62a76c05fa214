//! What all requests share: the study, the ratings and the images.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use acem3_vision::{DicomView, DicomWindow};
use anyhow::{Context as _, Result};

use super::access::AccessLinks;
use super::allowed_hosts::AllowedHosts;
use crate::annotation::journal::{
    AdjudicationEntry, EntryAction, JournalEntry, LineJournal, RatingState, SCHEMA, TaskAnswers,
    TaskPlace, TaskStatus,
};
use crate::annotation::study::StudyPlan;
use crate::data::cases::ImageSource;
use crate::data::images::{ImageReader, encode_png};
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
    ratings: Mutex<Ratings>,
    adjudications: Mutex<Adjudications>,
    images: Mutex<ImageReader>,
}

/// The journal with the state that it adds up to.
struct Ratings {
    journal: LineJournal<JournalEntry>,
    state: RatingState,
}

/// The journal of the administrator, with its entries.
struct Adjudications {
    journal: LineJournal<AdjudicationEntry>,
    entries: Vec<AdjudicationEntry>,
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
        images: ImageReader,
    ) -> Self {
        let StudyJournals { ratings: journal, state, adjudications, decided } = journals;
        let ratings = Mutex::new(Ratings { journal, state });
        let adjudications = Mutex::new(Adjudications { journal: adjudications, entries: decided });
        let image_folder = images.root().to_owned();
        let images = Mutex::new(images);
        Self { plan, access, hosts, image_folder, ratings, adjudications, images }
    }

    /// Returns what the administrator decided, in order.
    pub fn adjudications(&self) -> Vec<AdjudicationEntry> {
        lock(&self.adjudications).entries.clone()
    }

    /// Writes a decision of the administrator to its journal.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(super) fn adjudicate(&self, entry: AdjudicationEntry) -> Result<()> {
        let mut adjudications = lock(&self.adjudications);
        adjudications.journal.append(&entry)?;
        adjudications.entries.push(entry);
        Ok(())
    }

    /// Returns a copy of the state of all tasks, for results.
    pub fn ratings(&self) -> RatingState {
        lock(&self.ratings).state.clone()
    }

    /// Returns what a function reads from the state of all tasks.
    pub(super) fn read_ratings<T>(&self, read: impl FnOnce(&RatingState) -> T) -> T {
        read(&lock(&self.ratings).state)
    }

    /// Writes the answers of a rater to the journal. When this returns, they are on disk. Returns false,
    /// and writes nothing, if the task was submitted before.
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
            case: task.case.id.clone(),
            models: task.models().into_iter().map(str::to_owned).collect(),
            swapped: assigned.is_swapped,
            action: sent.action,
            answers: sent.answers,
            seconds: sent.seconds,
        };
        let mut ratings = lock(&self.ratings);
        // Under the lock, so that of two forms that arrive together only one is stored.
        let state = ratings.state.get(place);
        if state.is_some_and(|state| state.status == TaskStatus::Submitted) {
            return Ok(false);
        }
        ratings.journal.append(&entry)?;
        ratings.state.apply(place, &entry);
        Ok(true)
    }

    /// Returns the image of a case as PNG, which has the pixels and nothing else of the file. `window`:
    /// center and width of a DICOM image.
    ///
    /// # Errors
    /// If the image cannot be read.
    pub(super) fn png(&self, source: &ImageSource, window: Option<[f64; 2]>) -> Result<Vec<u8>> {
        let (image, limits) = {
            let mut reader = lock(&self.images);
            (reader.read(source).map_err(anyhow::Error::msg)?, *reader.limits())
        };
        let loaded = match window.filter(|_| image.is_dicom()) {
            Some([center, width]) => {
                let window = DicomWindow::CenterWidth { center, width: width.max(1.0) };
                let view = DicomView { window, ..image.view().clone() };
                image.with_view(view).load(&limits)
            }
            None => image.load(&limits),
        };
        Ok(encode_png(&loaded.map_err(anyhow::Error::msg)?.decoded)?)
    }

    /// Returns true if the image of a case is a DICOM object, whose window can be changed.
    pub(super) fn is_dicom(&self, source: &ImageSource) -> bool {
        lock(&self.images).read(source).is_ok_and(|image| image.is_dicom())
    }
}

/// Locks a value. It is consistent after a panic: an entry is applied after it is written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
