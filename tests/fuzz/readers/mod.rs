//! The readers of untrusted files, each as a function of the bytes of a file.
//!
//! The fuzz targets and the test `tests/it/fuzz_seeds.rs` call the same functions. A reader may
//! reject its input, but must not panic, overflow the stack, or take gigabytes or many seconds.
//! Panics that the program catches itself, as those of image decoders, are no finding.

mod bundle;
pub mod cases;
pub mod checkpoints;
pub mod images;
pub mod panels;
pub mod runs;
pub mod tokenizers;
pub mod training;
pub mod weights;

/// Reads a file. Returns true if the file was accepted.
pub type ReadFile = fn(&[u8]) -> bool;

/// The readers by the name of their fuzz target.
pub const READERS: [(&str, ReadFile); 28] = [
    ("adapter", checkpoints::read_adapter),
    ("answers", cases::read_answers),
    ("calibration", runs::read_calibration),
    ("case_array", cases::read_array),
    ("case_lines", cases::read_lines),
    ("case_table", cases::read_table),
    ("charsmap", tokenizers::read_charsmap),
    ("checkpoint", checkpoints::read_checkpoint),
    ("dicom", images::read_dicom),
    ("encoder", checkpoints::read_encoder),
    ("gguf", checkpoints::read_gguf),
    ("image", images::read_image),
    ("import_rows", cases::read_import_rows),
    ("import_table", cases::read_import_table),
    ("journal", runs::resume_journal),
    ("labels", cases::read_labels),
    ("members", panels::read_members),
    ("panel", panels::read_panel),
    ("parquet", cases::read_parquet),
    ("pickle", weights::read_pickle),
    ("preferences", training::read_preferences),
    ("records", runs::read_records),
    ("safetensors", weights::read_safetensors),
    ("sentencepiece", tokenizers::read_sentencepiece),
    ("text_model", checkpoints::read_text_model),
    ("tokenizer", tokenizers::read_tokenizer),
    ("torch", weights::read_torch),
    ("train", training::read_train),
];
