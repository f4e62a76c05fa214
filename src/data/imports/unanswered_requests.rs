//! Requests in an imported file that the server did not answer.

use std::path::Path;

use super::imported_row::ImportedRow;
use crate::support::text::{escape_start, format_count};

/// Number of characters of a reason in the note.
const SHOWN_CHARS: usize = 200;

/// The number of failed requests in a file, and the first of them.
#[derive(Debug, Default)]
pub(super) struct UnansweredRequests {
    count: u64,
    /// Line and reason of the first one.
    first: Option<(u64, String)>,
}

impl UnansweredRequests {
    /// Counts a row if its request failed.
    pub(super) fn add(&mut self, line: u64, row: &ImportedRow) {
        if let Some(reason) = &row.failure {
            self.count += 1;
            self.first.get_or_insert_with(|| (line, reason.clone()));
        }
    }

    /// Returns a note for the user; `None` if no request failed.
    pub(super) fn note(&self, path: &Path) -> Option<String> {
        let (line, reason) = self.first.as_ref()?;
        Some(format!(
            "{}: {} failed, the first in line {line}: {}\n\
             hint: send them again; pairs with these answers are not judged",
            path.display(),
            format_count(self.count, "request"),
            escape_start(reason, SHOWN_CHARS)
        ))
    }
}
