//! Fuzzes the reader of SentencePiece models.
#![no_main]

use acem3_fuzz::keep_caught_panics;
use acem3_fuzz::readers::tokenizers;

libfuzzer_sys::fuzz_target!(init: keep_caught_panics(), |bytes: &[u8]| {
    tokenizers::read_sentencepiece(bytes);
});
