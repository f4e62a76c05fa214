//! Formats of what commands print on stdout.

use clap::ValueEnum;

/// The format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Plain text
    Text,
    /// JSON
    Json,
}

/// The format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Aligned tables, wrapped to the width of the terminal
    Text,
    /// JSON
    Json,
    /// Markdown tables
    Markdown,
    /// One row per statistic, or per model for rankings and means (CSV)
    Csv,
}
