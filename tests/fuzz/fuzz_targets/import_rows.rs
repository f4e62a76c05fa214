//! Fuzzes the readers of rows of other programs.
#![no_main]

use acem3_fuzz::keep_caught_panics;
use acem3_fuzz::readers::cases;

libfuzzer_sys::fuzz_target!(init: keep_caught_panics(), |bytes: &[u8]| {
    cases::read_import_rows(bytes);
});
