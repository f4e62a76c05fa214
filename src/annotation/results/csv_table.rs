//! Writes tables as CSV.

use anyhow::{Context as _, Result};

use crate::annotation::journal::{RatingState, TaskPlace, TaskState};
use crate::annotation::study::{AssignedTask, StudyPlan, Task};
use crate::support::files::csv_formula::escape_formula;

/// A table in memory.
pub(super) struct CsvTable(csv::Writer<Vec<u8>>);

impl CsvTable {
    /// Creates a table with these columns.
    pub(super) fn new(columns: &[&str]) -> Result<Self> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(columns).context("cannot write the table")?;
        Ok(Self(writer))
    }

    /// Adds a row. Text that a spreadsheet would run as a formula is escaped.
    pub(super) fn push<'a>(&mut self, cells: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let cells = cells.into_iter().map(|cell| escape_formula(cell).into_owned());
        self.0.write_record(cells).context("cannot write the table")
    }

    /// Returns the table as bytes.
    pub(super) fn finish(self) -> Result<Vec<u8>> {
        self.0.into_inner().map_err(|error| anyhow::anyhow!("cannot write the table: {error}"))
    }
}

/// A task of a rater with its state.
pub(super) struct RatedTask<'a> {
    /// Name of the rater.
    pub(super) rater: &'a str,
    /// How the rater sees the task.
    pub(super) assigned: AssignedTask,
    /// The task.
    pub(super) task: &'a Task,
    /// What the rater entered.
    pub(super) state: &'a TaskState,
}

/// Returns the tasks of all raters.
pub(super) fn rated_tasks<'a>(
    plan: &'a StudyPlan,
    ratings: &'a RatingState,
) -> impl Iterator<Item = RatedTask<'a>> {
    plan.config.raters.iter().enumerate().flat_map(move |(rater, config)| {
        let places = 0..ratings.of_rater(rater).len();
        places.filter_map(move |place| {
            let (assigned, task) = plan.assigned(rater, place)?;
            let state = ratings.get(TaskPlace { rater, place })?;
            Some(RatedTask { rater: &config.name, assigned, task, state })
        })
    })
}
