//! Rendering styles of tables.

use crate::support::terminal::width::terminal_width;

/// Rendering style of tables and the text around them.
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
    /// Returns the style of a terminal with its current width.
    pub fn terminal() -> Self {
        Self::Terminal { width: terminal_width() }
    }
}
