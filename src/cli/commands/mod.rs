//! The commands, one file each.

mod analysis;
mod annotate;
mod answers;
mod completions;
mod construction;
mod data;
mod dispatch;
mod ignored_flags;
mod import;
pub mod isolated;
mod judge;
mod junit;
mod knowledge;
mod load_judge;
mod load_served;
mod man;
mod merge;
mod output;
mod panel;
mod panel_warning;
mod preferences;
mod quality;
mod training;
mod verify;

pub use dispatch::run;
