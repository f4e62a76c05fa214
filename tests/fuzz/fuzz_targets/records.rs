//! Fuzzes the reader of records.
#![no_main]

use acem3_fuzz::keep_caught_panics;
use acem3_fuzz::readers::runs;

libfuzzer_sys::fuzz_target!(init: keep_caught_panics(), |bytes: &[u8]| {
    runs::read_records(bytes);
});
