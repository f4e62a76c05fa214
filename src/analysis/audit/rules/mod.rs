//! Conclusion rules: from estimates to an outcome and a sentence.

mod added_text_rule;
mod conclusion;
mod identical_rule;
mod image_rule;
mod input_change;
mod interval_rule;
mod reference_rule;

pub(crate) use added_text_rule::{AddedTextEffect, AddedTextRule};
pub(crate) use conclusion::Conclusion;
pub(crate) use identical_rule::conclude_identical;
pub(crate) use image_rule::conclude_image;
pub(crate) use interval_rule::IntervalRule;
pub(crate) use reference_rule::conclude_reference;
