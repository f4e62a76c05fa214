//! Fuzzes the readers of workbooks and Parquet tables.
#![no_main]

use acem3_fuzz::keep_caught_panics;
use acem3_fuzz::readers::cases;

libfuzzer_sys::fuzz_target!(init: keep_caught_panics(), |bytes: &[u8]| {
    cases::read_import_table(bytes);
});
