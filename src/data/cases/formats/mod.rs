//! File formats of cases, without the meaning of their fields.

pub(crate) mod csv_rows;
pub(crate) mod encoding;
pub(crate) mod json_array;
pub(crate) mod lines;
pub(crate) mod panic_guard;
pub(crate) mod parquet;
pub(crate) mod python_json;
pub(crate) mod row_limit;
