//! The width of the terminal.

use std::env;
use std::io;

use terminal_size::{Width, terminal_size_of};

/// Width in columns if stdout is not a terminal. clap wraps help texts to the same width.
const DEFAULT_WIDTH: usize = 100;

/// The narrowest width that tables are laid out for, in columns.
const MIN_WIDTH: usize = 40;

/// Returns the width of text on stdout in columns: `COLUMNS` if it is set, otherwise the width of
/// the terminal, or 100 if stdout is not a terminal.
pub fn terminal_width() -> usize {
    let columns = env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let measured = || terminal_size_of(io::stdout()).map(|(Width(width), _)| usize::from(width));
    let width: Option<usize> = columns.filter(|width| *width > 0).or_else(measured);
    width.unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH)
}
