//! What raters entered: an append-only file, and the state that it adds up to.

mod answers;
mod decision_answer;
mod decision_value;
mod entry;
mod line_journal;
mod rating_state;

pub use answers::{Preference, TaskAnswers};
pub use decision_answer::DecisionAnswer;
pub use entry::{AdjudicationEntry, EntryAction, JournalEntry, LineFormat, SCHEMA};
pub use line_journal::LineJournal;
pub use rating_state::{RatingState, TaskPlace, TaskState, TaskStatus};
