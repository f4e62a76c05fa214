//! Whole-program tests, one binary.

#[cfg(test)]
mod ablate;
#[cfg(test)]
mod agree;
#[cfg(test)]
mod annotate;
#[cfg(test)]
mod annotate_evaluations;
#[cfg(test)]
mod annotate_images;
#[cfg(test)]
mod annotate_load;
#[cfg(test)]
mod annotate_raters;
#[cfg(test)]
mod annotate_site;
#[cfg(test)]
mod annotate_storage;
#[cfg(test)]
mod answers_command;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod audit_command;
#[cfg(test)]
mod audit_reference;
#[cfg(test)]
mod bad_checkpoints;
#[cfg(test)]
mod biased_judge;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod caches;
#[cfg(test)]
mod calibrate;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod checkpoint_layouts;
#[cfg(test)]
mod checkpoints;
#[cfg(test)]
mod construction;
#[cfg(test)]
mod continuous_integration;
#[cfg(test)]
mod correctness;
mod coverage;
#[cfg(test)]
mod damaged_records;
#[cfg(test)]
mod data;
#[cfg(test)]
mod dataset_rows;
#[cfg(test)]
mod decoder;
#[cfg(test)]
mod defects;
#[cfg(test)]
mod dicom;
#[cfg(test)]
mod embedded;
#[cfg(test)]
mod encoders;
#[cfg(test)]
mod encoders_command;
#[cfg(test)]
mod engine;
#[cfg(test)]
mod entered_ratings;
#[cfg(test)]
mod findings;
#[cfg(test)]
mod folder;
#[cfg(test)]
mod foreign_content;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod full_size;
#[cfg(test)]
mod fuzz_seeds;
#[cfg(test)]
mod gguf;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hostile_hub;
#[cfg(test)]
mod hub;
#[cfg(test)]
mod hub_command;
#[cfg(test)]
mod hub_faults;
#[cfg(test)]
mod hub_members;
#[cfg(test)]
mod import_names;
#[cfg(test)]
mod imports;
#[cfg(test)]
mod imports_refused;
#[cfg(test)]
mod input_problems;
#[cfg(test)]
mod introspect;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod knowledge_command;
#[cfg(test)]
mod knowledge_completion;
#[cfg(test)]
mod label_studio;
#[cfg(test)]
mod layering;
#[cfg(test)]
mod length_control;
#[cfg(test)]
mod links;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod long_responses;
mod many_responses;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod mock_hub;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod out_files;
#[cfg(test)]
mod packaging;
#[cfg(test)]
mod panel;
#[cfg(test)]
mod peft_adapters;
#[cfg(test)]
mod peft_export;
#[cfg(test)]
mod phantoms;
#[cfg(test)]
mod planted_text;
#[cfg(test)]
mod preferences;
#[cfg(test)]
mod quality_command;
#[cfg(test)]
mod quoted_text;
#[cfg(test)]
mod rank;
#[cfg(test)]
mod rater_coefficients;
#[cfg(test)]
#[path = "../fuzz/readers/mod.rs"]
#[expect(unreachable_pub, reason = "the crate of the fuzz targets exports them")]
mod readers;
#[cfg(test)]
mod recipes;
#[cfg(test)]
mod recording_proxy;
#[cfg(test)]
mod report;
#[cfg(test)]
mod report_formats;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod rubrics;
#[cfg(test)]
mod run_end;
#[cfg(test)]
mod same_judge;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod scale_guide;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod sentence_encoder;
#[cfg(test)]
mod served;
#[cfg(test)]
mod shards;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod sparse_ranking;
#[cfg(test)]
mod spreadsheets;
#[cfg(test)]
mod statistic_counts;
#[cfg(test)]
mod statistics;
#[cfg(test)]
mod text_metrics;
#[cfg(test)]
mod text_models;
#[cfg(test)]
mod text_pairs;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod tiny_panel;
#[cfg(test)]
mod train_command;
#[cfg(test)]
mod trainable_model;
mod trained_forms;
#[cfg(test)]
mod trainer;
#[cfg(test)]
mod unfinished_runs;
#[cfg(test)]
mod verify;
#[cfg(test)]
mod vision;
