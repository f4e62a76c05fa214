//! Checks of all stages before the first step.
//!
//! A stage may start hours after the training. A misspelt weight name or a missing image must be reported at once.

use std::collections::BTreeSet;
use std::path::Path;

use acem3_experts::prompt::{Layout, Piece};
use acem3_experts::train::{Observer, Student, weight_names};
use anyhow::{Result, bail};

use crate::training::config::stage_config::StageConfig;
use crate::training::config::stage_kind::StageKind;
use crate::training::preferences::prompt_text;
use crate::training::stages::context::StageContext;
use crate::training::stages::stage_files::is_finished;
use crate::training::stages::tasks::evaluation_set::EvaluationSet;
use crate::training::stages::tasks::preference_source::PreferenceSource;

/// Checks that every stage can run.
///
/// `initial`: weight names of the initial model; `out`: the output folder.
///
/// # Errors
/// Name the stage, the weights or the line of a file, and what to change.
pub(crate) fn preflight(
    stages: &[StageContext],
    initial: &BTreeSet<String>,
    out: &Path,
) -> Result<()> {
    // The model is the same in all stages.
    let Some(first) = stages.first() else {
        return Ok(());
    };
    let names = WeightNames::new(*first, initial)?;
    let mut decoder_is_trained = !initial.is_empty();
    for &context in stages {
        let stage = context.stage;
        names.check(stage)?;
        if stage.lora.is_some() && !decoder_is_trained {
            bail!(
                "stage {}: [stages.lora] has no trained weights to adapt\n\
                 hint: put a stage without [stages.lora] before it, or start from a checkpoint",
                stage.name
            );
        }
        decoder_is_trained |= stage.kind != StageKind::Encoder;
        if !is_finished(stage, out) {
            check_files(context)?;
        }
    }
    Ok(())
}

/// Names of weights.
struct WeightNames {
    /// Weights of an encoder stage.
    observer: BTreeSet<String>,
    /// Weights of any other stage.
    student: BTreeSet<String>,
    /// Both, and the weights of the initial model.
    all: BTreeSet<String>,
}

impl WeightNames {
    fn new(context: StageContext, initial: &BTreeSet<String>) -> Result<Self> {
        let (model, trunk_layers) = (&context.config.model, context.config.trunk_layers);
        let observer = weight_names(initial, |vb| {
            let classes = context.sampler.attribute_classes();
            Observer::load(vb, &model.vision, model.selection, classes).map(drop)
        })?;
        let student = weight_names(initial, |vb| {
            Student::load(vb, model, trunk_layers).map(drop)
        })?;
        let all = [initial, &observer, &student].into_iter().flatten();
        Ok(Self {
            all: all.cloned().collect(),
            observer,
            student,
        })
    }

    /// Checks that the names in `frozen` exist, and that the stage trains at least one weight.
    fn check(&self, stage: &StageConfig) -> Result<()> {
        let loaded = match stage.kind {
            StageKind::Encoder => &self.observer,
            _ => &self.student,
        };
        let frozen = stage.frozen_prefixes();
        let is_frozen = |name: &str| frozen.iter().any(|prefix| name.starts_with(prefix));
        let is_trained = |name: &String| stage.trains_weight(name) && !is_frozen(name);
        if !loaded.iter().any(is_trained) {
            bail!(
                "stage {}: all weights are frozen\n\
                 hint: remove names from `frozen`, or lower `frozen_layers`",
                stage.name
            );
        }
        let matches = |prefix: &String| self.all.iter().any(|name| name.starts_with(prefix));
        if let Some(prefix) = stage.frozen.iter().find(|prefix| !matches(prefix)) {
            bail!(
                "stage {}: frozen: no weight name begins with {prefix:?}\n\
                 hint: `frozen_layers = N` freezes N layers of the decoder and everything before them",
                stage.name
            );
        }
        Ok(())
    }
}

/// Checks the files that a stage trains on.
fn check_files(context: StageContext) -> Result<()> {
    if context.stage.evaluations.is_some() {
        for learner in context.stage.learners() {
            if let Some(evaluations) = EvaluationSet::open(context, learner.member)? {
                evaluations.check_images()?;
                warn_prompt_layout(context, evaluations.first_prompt());
            }
        }
    }
    if context.stage.kind.learns_preferences() {
        let source = PreferenceSource::open(context)?;
        source.check()?;
        warn_prompt_layout(context, source.first_prompt());
    }
    Ok(())
}

/// Prints a note if the prompts of a file have another layout than the panel's.
fn warn_prompt_layout(context: StageContext, prompt: &[Piece]) {
    let panel = context.config.layout;
    let layout = Layout::of_prompt(&prompt_text(prompt));
    let Some(file) = layout.filter(|layout| *layout != panel) else {
        return;
    };
    context.progress.note_once(&format!(
        "stage {}: the prompts of its file have layout `{}`, the panel has layout `{}`\n\
         hint: set `layout = \"{}\"` in the configuration, or create the file with \
         `acem3 data preferences --layout {}`",
        context.stage.name,
        file.name(),
        panel.name(),
        file.name(),
        panel.name()
    ));
}
