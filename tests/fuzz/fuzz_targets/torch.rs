//! Fuzzes the reader of weight files of PyTorch.
#![no_main]

use acem3_fuzz::keep_caught_panics;
use acem3_fuzz::readers::weights;

libfuzzer_sys::fuzz_target!(init: keep_caught_panics(), |bytes: &[u8]| {
    weights::read_torch(bytes);
});
