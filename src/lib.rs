//! acem3 judges the answers of medical multimodal models to questions about images. Three branch
//! experts score ten criteria and justify each score. A conclusion model merges their evaluations.
//!
//! The modules, from the cases to the results:
//!
//! | task | module |
//! |---|---|
//! | read cases | [`data::cases`] |
//! | read and decode the image | [`data::images`], `acem3_vision::decode` |
//! | preprocess and encode it | `acem3_vision::{ImageProcessor, VisionTower}` |
//! | project it to image tokens | `acem3_projector::Projector` |
//! | write three evaluations | `acem3_experts::{prompt, generate, BranchExperts}` |
//! | merge them into a verdict | `acem3_conclusion::{ConclusionModel, Verdict}` |
//! | load a panel, judge pairs | [`checkpoints`], [`judging::panel`] |
//! | batch, resume, write records | [`judging::run`] |
//! | analyse the verdicts | [`analysis`] |
//!
//! [`training`] trains and measures panels and makes data for it, [`annotation`] is the site for human
//! raters, and [`cli`] is the command line. [`statistics`] works on plain numbers, and [`support`] has helpers
//! for files, terminal and text. Imports between these modules point one way; `tests/it/layering` checks
//! their order.

pub mod analysis;
pub mod annotation;
pub mod checkpoints;
pub mod cli;
pub mod data;
pub mod judging;
pub mod statistics;
pub mod support;
pub mod training;
