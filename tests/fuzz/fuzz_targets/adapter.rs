//! Fuzzes the reader of adapters of PEFT.
#![no_main]

use acem3_fuzz::keep_caught_panics;
use acem3_fuzz::readers::checkpoints;

libfuzzer_sys::fuzz_target!(init: keep_caught_panics(), |bytes: &[u8]| {
    checkpoints::read_adapter(bytes);
});
