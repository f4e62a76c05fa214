//! Agreement as text tables and CSV.

mod agreement_tables;
mod comparison_table;
mod csv_table;
