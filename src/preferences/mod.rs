//! Preferences to train on: right evaluations, each beside a worse one.

mod folder;
mod negative;

pub use folder::{PreferencePlan, Written, folder};
pub use negative::{Negative, Ratings, is_well_formed, negative};
