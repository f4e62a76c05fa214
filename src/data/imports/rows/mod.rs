//! Rows of tables in any file format, as JSON objects.

pub(crate) mod isolated_table;
pub(crate) mod nested_array;
mod parquet_table;
pub(crate) mod row_format;
pub(crate) mod table_row;
mod workbook;
