//! Checks of all stages before the first step.
//!
//! A stage may start hours after the training. Errors such as a misspelt weight name or a missing
//! image are reported before the first step.

use std::collections::BTreeSet;
use std::path::Path;

use acem3_experts::prompt::{PromptLayout, PromptPiece, Rubric, RubricDetail};
use acem3_experts::train::{AttributeClassifier, TrainableModel, weight_names};
use anyhow::{Result, bail};

use crate::training::config::stage::stage_kind::StageKind;
use crate::training::preferences::prompt_text;
use crate::training::stages::context::StageContext;
use crate::training::stages::files::stage_files::is_finished;
use crate::training::stages::tasks::evaluation_set::EvaluationSet;
use crate::training::stages::tasks::preference_source::PreferenceSource;

/// Checks that every stage can run.
///
/// `initial` contains the weight names of the initial model; `out` is the output folder.
///
/// # Errors
/// Errors name the stage, the weights or the line of a file, and the necessary change.
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
        if stage.is_mean() {
            continue;
        }
        names.check(context)?;
        note_unused_blocks(context);
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

/// Weight names of the models that stages train.
struct WeightNames {
    /// Weights of the attribute classifier of an encoder stage.
    classifier: BTreeSet<String>,
    /// Weights of the model of any other stage.
    model: BTreeSet<String>,
    /// Weights of both and of the initial model.
    all: BTreeSet<String>,
}

impl WeightNames {
    /// Loads both models without weights and records the names that they request.
    fn new(context: StageContext, initial: &BTreeSet<String>) -> Result<Self> {
        let (model, trunk_layers) = (&context.config.model, context.config.trunk_layers);
        let classifier = weight_names(initial, |vb| {
            if model.is_text_only() {
                return Ok(());
            }
            let classes = context.sampler.attribute_classes();
            AttributeClassifier::load(vb, &model.vision, model.selection, classes).map(drop)
        })?;
        let trainable_model =
            weight_names(initial, |vb| TrainableModel::load(vb, model, trunk_layers).map(drop))?;
        let all_names = [initial, &classifier, &trainable_model].into_iter().flatten();
        Ok(Self { all: all_names.cloned().collect(), classifier, model: trainable_model })
    }

    /// Checks that the names in `frozen` exist, and that the stage trains at least one weight.
    fn check(&self, context: StageContext) -> Result<()> {
        let stage = context.stage;
        let loaded = match stage.kind {
            StageKind::Encoder => &self.classifier,
            _ => &self.model,
        };
        let frozen = stage.frozen_prefixes();
        let is_frozen = |name: &str| frozen.iter().any(|prefix| name.starts_with(prefix));
        let is_trained =
            |name: &String| stage.trains_weight(name, &context.config.model) && !is_frozen(name);
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

/// Prints a note if a stage leaves blocks of the vision tower unchanged that no layer reads.
fn note_unused_blocks(context: StageContext) {
    let StageContext { config, stage, progress, .. } = context;
    let Some(first) = config.model.first_unused_block() else {
        return;
    };
    let tower = "model.vision_tower.";
    if stage.frozen_prefixes().iter().any(|prefix| tower.starts_with(prefix.as_str())) {
        return;
    }
    let last = config.model.vision.num_hidden_layers.saturating_sub(1);
    progress.note_once(&format!(
        "blocks {first} to {last} of the vision tower stay as they are: the projector reads the \
         output of an earlier block (selection.select_layer = {})",
        config.model.selection.select_layer
    ));
}

/// Checks the files that a stage trains on.
fn check_files(context: StageContext) -> Result<()> {
    if context.stage.evaluations.is_some() {
        for learner in context.stage.learners() {
            if let Some(evaluations) = EvaluationSet::open(context, learner.member)? {
                evaluations.check_lines()?;
                let command = "acem3 data evaluations … --config CONFIG";
                warn_prompt_style(context, evaluations.first_prompt(), command)?;
            }
        }
    }
    if context.stage.kind.learns_preferences() {
        let source = PreferenceSource::open(context)?;
        source.check()?;
        let command = "acem3 data preferences --panel PANEL";
        warn_prompt_style(context, source.first_prompt(), command)?;
    }
    Ok(())
}

/// Prints a note if a file's prompts differ from those of the panel in layout, in the amount of the
/// rubric or in the chat template. `command`: creates such a file.
fn warn_prompt_style(context: StageContext, prompt: &[PromptPiece], command: &str) -> Result<()> {
    let config = context.config;
    let text = prompt_text(prompt);
    let name = &context.stage.name;
    let note = |difference: &str, hint: &str| {
        context.progress.note_once(&format!(
            "stage {name}: the prompts of its file {difference}\n\
             hint: {hint}, or create the file with `{command}`"
        ));
    };
    let layout = PromptLayout::detect(&text);
    if let Some(layout) = layout.filter(|layout| *layout != config.layout) {
        note(
            &format!(
                "have layout `{}`, the panel has layout `{}`",
                layout.name(),
                config.layout.name()
            ),
            &format!("set `layout = \"{}\"` in the configuration", layout.name()),
        );
    }
    let detail = detect_detail(&text)?;
    if let Some(detail) = detail.filter(|detail| *detail != config.rubric) {
        let describe = |detail| match detail {
            RubricDetail::Full => "the full rubric (`full`)",
            RubricDetail::Names => "the names of the criteria (`names`)",
        };
        note(
            &format!("have {}, the panel reads {}", describe(detail), describe(config.rubric)),
            "set `rubric` in the configuration",
        );
    }
    if !text.starts_with(&config.dialogue.open) {
        note(
            &format!(
                "do not begin with the chat template of the panel, {:?}",
                config.dialogue.open
            ),
            "put the template around the prompts",
        );
    }
    Ok(())
}

/// Finds the amount of the rubric in the prompt of an expert of ACE-M³; `None` for other prompts.
fn detect_detail(prompt: &str) -> Result<Option<RubricDetail>> {
    let rubric = Rubric::built_in()?;
    for detail in [RubricDetail::Full, RubricDetail::Names] {
        for aspect in &rubric.aspects {
            for has_image in [true, false] {
                if prompt.contains(&rubric.describe(aspect.key, detail, has_image)?) {
                    return Ok(Some(detail));
                }
            }
        }
    }
    Ok(None)
}
