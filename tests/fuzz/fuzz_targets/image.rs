//! Fuzzes the reader of images.
#![no_main]

use acem3_fuzz::keep_caught_panics;
use acem3_fuzz::readers::images;

libfuzzer_sys::fuzz_target!(init: keep_caught_panics(), |bytes: &[u8]| {
    images::read_image(bytes);
});
