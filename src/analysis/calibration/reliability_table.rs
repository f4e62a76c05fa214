//! Table of the bins of a reliability.

use crate::statistics::Reliability;
use crate::support::tables::Table;
use crate::support::terminal::number::{format_signed_two_decimals, format_two_decimals};

/// Returns one row per bin: its range, its number of cases, the mean score, the mean label and their
/// difference.
pub(in crate::analysis) fn reliability_table(
    header: [&'static str; 5],
    reliability: &Reliability,
) -> Table {
    let mut table = Table::new(header);
    for bin in &reliability.bins {
        table.push_row([
            format!("{:.1} to {:.1}", bin.from, bin.to),
            bin.n.to_string(),
            format_two_decimals(bin.score),
            format_two_decimals(bin.truth),
            format_signed_two_decimals(bin.score - bin.truth),
        ]);
    }
    table
}
