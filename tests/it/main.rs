//! Whole-program tests, one binary.

#[cfg(test)]
mod agree;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod audit_command;
#[cfg(test)]
mod bad_checkpoints;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod caches;
#[cfg(test)]
mod calibrate;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod checkpoints;
#[cfg(test)]
mod compared;
#[cfg(test)]
mod counted;
#[cfg(test)]
mod coverage;
#[cfg(test)]
mod data;
#[cfg(test)]
mod decoder;
#[cfg(test)]
mod defects;
#[cfg(test)]
mod dicom;
#[cfg(test)]
mod edited;
#[cfg(test)]
mod embedded;
#[cfg(test)]
mod encoders;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod engine;
mod examples;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod folder;
#[cfg(test)]
mod full_size;
#[cfg(test)]
mod gguf;
#[cfg(test)]
mod habits;
#[cfg(test)]
mod hub;
#[cfg(test)]
mod hub_faults;
#[cfg(test)]
mod hub_peers;
#[cfg(test)]
mod imitation;
#[cfg(test)]
mod introspect;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod layering;
#[cfg(test)]
mod layouts;
#[cfg(test)]
mod length_control;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod named;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod panel;
#[cfg(test)]
mod phantoms;
#[cfg(test)]
mod quoting;
#[cfg(test)]
mod rank;
#[cfg(test)]
mod report;
#[cfg(test)]
mod report_forms;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod shipping;
#[cfg(test)]
mod spreadsheets;
#[cfg(test)]
mod statistics;
#[cfg(test)]
mod student;
#[cfg(test)]
mod text_metrics;
#[cfg(test)]
mod text_models;
#[cfg(test)]
mod text_pairs;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod tiny;
#[cfg(test)]
mod trainer;
#[cfg(test)]
mod training;
#[cfg(test)]
mod vision;
