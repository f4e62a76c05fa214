//! Says before the results that a run is unfinished or damaged, and what else limits them.

use anyhow::Result;
use serde::Serialize;

use crate::cli::args::{CompleteArgs, TableFormat};
use crate::cli::commands::output::render_tables;
use crate::judging::run::run_state::RunState;
use crate::support::tables::TableSection;
use crate::support::terminal::progress::print_lines;

/// The states of the runs that a command reads.
#[derive(Clone, Debug, Default)]
pub(super) struct RunNotices {
    runs: Vec<RunState>,
    /// What else a reader of the results has to know.
    notes: Vec<String>,
}

/// A result as JSON, with the states of its runs.
#[derive(Serialize)]
struct ResultOfRuns<'a, T> {
    #[serde(flatten)]
    result: &'a T,
    #[serde(skip_serializing_if = "<[RunState]>::is_empty")]
    runs: &'a [RunState],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notices: &'a [String],
}

impl RunNotices {
    /// Collects the states of runs.
    ///
    /// # Errors
    ///
    /// With `--complete`, a run is not complete.
    pub(super) fn new(
        runs: impl IntoIterator<Item = RunState>,
        args: CompleteArgs,
    ) -> Result<Self> {
        let runs = RunState::join_shards(runs);
        if args.complete {
            runs.iter().try_for_each(RunState::check_complete)?;
        }
        Ok(Self { runs, notes: Vec::new() })
    }

    /// Adds notes.
    pub(super) fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// Returns one line per problem of a run, and the notes.
    pub(super) fn lines(&self) -> Vec<String> {
        self.runs.iter().flat_map(RunState::notices).chain(self.notes.clone()).collect()
    }

    /// Prints the notices on stderr, for formats that cannot contain them and for files.
    pub(super) fn print(&self) {
        self.lines().iter().for_each(|line| print_lines(line));
    }

    /// Renders tables below the notices and an introduction.
    pub(super) fn render(
        &self,
        intro: &str,
        tables: &[TableSection],
        format: TableFormat,
    ) -> String {
        let mut lines = self.lines();
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(intro.to_owned());
        render_tables(&lines.join("\n"), tables, format)
    }

    /// Serializes a result with the states of the runs.
    pub(super) fn to_json<T: Serialize>(&self, result: &T) -> Result<String> {
        let result = ResultOfRuns { result, runs: &self.runs, notices: &self.notes };
        Ok(serde_json::to_string_pretty(&result)? + "\n")
    }

    /// Prints the notices on stderr, unless the format has them above its tables.
    pub(super) fn print_unless_in(&self, format: TableFormat) {
        if matches!(format, TableFormat::Json | TableFormat::Csv) {
            self.print();
        }
    }
}
