//! Agreement as tables: for reading and as CSV.

mod agreement_tables;
mod comparison_table;
mod csv_table;
