//! The two ways to write a table for reading.

use crate::support::terminal::width::terminal_width;

/// How tables and the text around them are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableStyle {
    /// Aligned columns, wrapped to a number of terminal columns.
    Terminal {
        /// The longest line, in terminal columns.
        width: usize,
    },
    /// GitHub's Markdown.
    Markdown,
}

impl TableStyle {
    /// Aligned columns, wrapped to the width of the terminal.
    pub fn terminal() -> Self {
        Self::Terminal {
            width: terminal_width(),
        }
    }
}
