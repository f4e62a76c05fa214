//! The isolated processes that parse untrusted files.

use std::ffi::OsStr;
use std::process::ExitCode;

use crate::data::cases::parquet_rows;
use crate::data::images::decoder;
use crate::data::imports::rows::isolated_table;
use crate::support::process::serve::serve;

/// Runs a task until its input ends.
pub fn run(task: &OsStr) -> ExitCode {
    let result = match task.to_str() {
        Some(decoder::IMAGE_TASK) => serve(&mut decoder::respond),
        Some(parquet_rows::PARQUET_TASK) => serve(&mut parquet_rows::responder()),
        Some(isolated_table::TABLE_TASK) => serve(&mut isolated_table::responder()),
        _ => return ExitCode::FAILURE,
    };
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
