//! Variants of a training on a file of evaluations: the rows of `AutoMedEval` (Table 2).

use std::path::Path;

use anyhow::{Result, bail};

use super::variants::{StudyInputs, StudyVariants};
use crate::training::introspection::IntrospectedData;
use crate::training::preferences::files::asked_questions::has_questions;
use crate::training::preferences::read_evaluations;
use crate::training::{Curriculum, EvaluationConfig, TrainConfig};

/// Adds the full training, and those without one part of it.
///
/// # Errors
/// If no stage trains on a file of evaluations, or a file cannot be read.
pub(super) fn add_evaluation_variants(
    study: &mut StudyVariants,
    base: &TrainConfig,
    inputs: StudyInputs<'_>,
) -> Result<()> {
    if evaluations(base).next().is_none() {
        bail!(
            "no stage trains on a file of evaluations, expected one to vary\n\
             hint: add [stages.evaluations] to a stage of kind \"sft\" or \"heads\""
        );
    }
    let introspection = inputs.introspection.map(IntrospectedData::read).transpose()?;
    let full = match &introspection {
        Some(data) => with_file(base, &data.last),
        None => base.clone(),
    };
    study.push("full", full.clone());
    let (no_knowledge, no_curriculum, no_introspection) =
        ("no knowledge completion", "no curriculum", "no introspection");
    if !inputs.has_knowledge {
        study.skip(no_knowledge, "pass --knowledge with the index that the other variants look up");
    } else if asks_questions(&full)? {
        study.push_without_knowledge(
            no_knowledge,
            map_evaluations(&full, |evaluations| {
                evaluations.strips_questions = true;
            }),
        );
    } else {
        study.skip(no_knowledge, "no evaluation of the file asks a question");
    }
    if evaluations(base).any(|evaluations| evaluations.curriculum != Curriculum::None) {
        study.push(
            no_curriculum,
            map_evaluations(&full, |evaluations| {
                evaluations.curriculum = Curriculum::None;
            }),
        );
    } else {
        study.skip(no_curriculum, "no stage has a curriculum");
    }
    match &introspection {
        Some(data) if data.rounds > 0 => {
            study.push(no_introspection, with_file(base, &data.first));
        }
        Some(_) => study.skip(no_introspection, "no round replaced an evaluation"),
        None => study.skip(
            no_introspection,
            "pass --introspection with the folder of a finished `acem3 train introspect`",
        ),
    }
    if introspection.is_some_and(|data| data.continues) {
        study.notes.push(
            "each round of --introspection continued with the panel of the round before; here every \
             variant is trained anew on the evaluations of the first or of the last round"
                .to_owned(),
        );
    }
    Ok(())
}

/// Returns the tables `[stages.evaluations]` of a configuration.
fn evaluations(config: &TrainConfig) -> impl Iterator<Item = &EvaluationConfig> {
    config.stages.iter().filter_map(|stage| stage.evaluations.as_ref())
}

/// Returns the configuration with `change` applied to every table `[stages.evaluations]`.
fn map_evaluations(base: &TrainConfig, change: impl Fn(&mut EvaluationConfig)) -> TrainConfig {
    let mut config = base.clone();
    let stages = config.stages.iter_mut();
    stages.filter_map(|stage| stage.evaluations.as_mut()).for_each(change);
    config
}

/// Returns the configuration with another file of evaluations.
fn with_file(base: &TrainConfig, file: &Path) -> TrainConfig {
    map_evaluations(base, |evaluations| file.clone_into(&mut evaluations.file))
}

/// Returns true if an evaluation of the configuration's files asks a question.
fn asks_questions(config: &TrainConfig) -> Result<bool> {
    for evaluations in evaluations(config) {
        for evaluation in &read_evaluations(&evaluations.file)?.items {
            if has_questions(evaluation)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
