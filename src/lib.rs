//! acem3 judges the answers of medical multimodal models to questions about images: three experts
//! and a conclusion model look at the image and score ten criteria with a reason each.
//!
//! The path of one pair of answers, and where each stage lives:
//!
//! | stage | where |
//! |---|---|
//! | read cases | [`cases`] |
//! | read and decode the image | [`images`], `acem3_vision::decode` |
//! | prepare and encode it | `acem3_vision::{ImageProcessor, VisionTower}` |
//! | image tokens | `acem3_projector::Projector` |
//! | prompts, three evaluations | `acem3_experts::{prompt, generate, BranchJudge}` |
//! | the conclusion, the verdict | `acem3_conclusion::{ConclusionModel, Verdict}` |
//! | load a panel, judge | [`panel`] |
//! | the run: batches, resume, records | [`run`], [`run::journal`], [`run::record`], [`run::manifest`] |
//! | what was found | [`summary`] |
//! | whether to believe it | [`verdicts`], [`labels`], [`agreement`], [`audit`], [`ranking`], [`calibration`], [`report`] |
//!
//! Beside it: [`phantoms`] (images whose right verdict is known), [`examples`] (real questions with a
//! known better answer), [`training`] (panels from nothing), [`measure`] (what a panel is worth), [`tables`] (what a part
//! of its training is worth), [`introspection`] (data mended where a panel judges wrong), [`encoders`] (vision
//! encoders compared), [`text_metrics`] (metrics of words and of language models, as baselines beside the judge),
//! [`statistics`] (of agreement, on numbers alone).
//!
//! Files, data sets and the terminal exist in this crate alone.

pub mod analysis;
pub mod checkpoints;
pub mod cli;
pub mod data;
pub mod judging;
pub mod statistics;
pub mod support;
pub mod training;
