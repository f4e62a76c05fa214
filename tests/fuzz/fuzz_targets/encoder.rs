//! Fuzzes the reader of the configurations of image encoders.
#![no_main]

use acem3_fuzz::keep_caught_panics;
use acem3_fuzz::readers::checkpoints;

libfuzzer_sys::fuzz_target!(init: keep_caught_panics(), |bytes: &[u8]| {
    checkpoints::read_encoder(bytes);
});
