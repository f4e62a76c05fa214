//! Fuzzes the reader of preference pairs and evaluations.
#![no_main]

use acem3_fuzz::keep_caught_panics;
use acem3_fuzz::readers::training;

libfuzzer_sys::fuzz_target!(init: keep_caught_panics(), |bytes: &[u8]| {
    training::read_preferences(bytes);
});
