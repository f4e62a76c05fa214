//! Fuzzes the reader of panel specifications.
#![no_main]

use acem3_fuzz::keep_caught_panics;
use acem3_fuzz::readers::panels;

libfuzzer_sys::fuzz_target!(init: keep_caught_panics(), |bytes: &[u8]| {
    panels::read_panel(bytes);
});
