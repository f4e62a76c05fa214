//! What can be known of a stage before the training's first step.
//!
//! A stage may begin hours after the training: a name that freezes nothing, or an image that is not there, is told at once.

use std::collections::BTreeSet;
use std::path::Path;

use acem3_experts::prompt::{Layout, Piece};
use acem3_experts::train::{Observer, Student, weight_names};
use anyhow::{Result, bail};

use crate::training::config::preference_source::PreferenceSource;
use crate::training::config::stage_config::{StageConfig, StageKind};
use crate::training::preferences::data::prompt_text;
use crate::training::stages::evaluation_set::EvaluationSet;
use crate::training::stages::task::StageContext;

/// Refuses the first stage that cannot be run.
///
/// `known`: the names of the weights that the training begins with; `out`: its folder.
///
/// # Errors
/// Name the stage, the weights or the line of a file, and what to do.
pub(crate) fn check(lecterns: &[StageContext], known: &BTreeSet<String>, out: &Path) -> Result<()> {
    let mut learned = !known.is_empty();
    // The model is the same in all stages.
    let Some(first) = lecterns.first() else {
        return Ok(());
    };
    let layers = WeightNames::of(*first, known)?;
    for &lectern in lecterns {
        let settings = lectern.settings;
        layers.check(settings)?;
        let adapts = settings.lora.is_some();
        if adapts && !learned {
            bail!(
                "stage {}: [stages.lora]: there is no weight to adapt yet\n\
                 hint: an adapter changes what was learned before it; let a stage without one come first",
                settings.name
            );
        }
        learned |= settings.kind != StageKind::Encoder;
        if !settings.is_finished(out) {
            check_files(lectern)?;
        }
    }
    Ok(())
}

/// The names of weights.
struct WeightNames {
    /// What an encoder's stage loads.
    observing: BTreeSet<String>,
    /// What all others load.
    writing: BTreeSet<String>,
    /// Both, and what the training begins with.
    all: BTreeSet<String>,
}

impl WeightNames {
    fn of(lectern: StageContext, known: &BTreeSet<String>) -> Result<Self> {
        let (model, depth) = (&lectern.config.model, lectern.config.trunk_layers);
        let observing = weight_names(known, |vb| {
            let classes = lectern.teacher.attribute_classes();
            Observer::load(vb, &model.vision, model.selection, classes).map(drop)
        })?;
        let writing = weight_names(known, |vb| Student::load(vb, model, depth).map(drop))?;
        let all = [known, &observing, &writing].into_iter().flatten();
        Ok(Self {
            all: all.cloned().collect(),
            observing,
            writing,
        })
    }

    /// What a stage freezes is there, and leaves something to be trained.
    fn check(&self, settings: &StageConfig) -> Result<()> {
        let loaded = match settings.kind {
            StageKind::Encoder => &self.observing,
            _ => &self.writing,
        };
        let frozen = settings.frozen();
        let stays = |name: &str| frozen.iter().any(|beginning| name.starts_with(beginning));
        let learns = |name: &String| settings.owns(name) && !stays(name);
        if !loaded.iter().any(learns) {
            bail!(
                "stage {}: everything is frozen, nothing is left to train\n\
                 hint: let `frozen` name less, or `frozen_layers` be smaller",
                settings.name
            );
        }
        // A name that freezes nothing is a misspelt one.
        let freezes = |beginning: &String| self.all.iter().any(|name| name.starts_with(beginning));
        if let Some(beginning) = settings.frozen.iter().find(|beginning| !freezes(beginning)) {
            bail!(
                "stage {}: frozen names {beginning:?}, with which no weight begins\n\
                 hint: `frozen_layers = N` freezes N layers of the decoder and all before them",
                settings.name
            );
        }
        Ok(())
    }
}

/// What a stage learns from is there, and of the form that it needs.
fn check_files(lectern: StageContext) -> Result<()> {
    let settings = lectern.settings;
    if settings.evaluations.is_some() {
        for (member, _) in settings.learners() {
            if let Some(evaluations) = EvaluationSet::open(lectern, member)? {
                evaluations.check_images()?;
                note_layout(lectern, evaluations.prompt());
            }
        }
    }
    if settings.kind.prefers() {
        let source = PreferenceSource::open(lectern)?;
        source.check()?;
        note_layout(lectern, source.prompt());
    }
    Ok(())
}

/// Tells of prompts that are laid out otherwise than those the panel will be asked.
fn note_layout(lectern: StageContext, prompt: &[Piece]) {
    let own = lectern.config.layout;
    let Some(other) = Layout::of_prompt(&prompt_text(prompt)).filter(|layout| *layout != own)
    else {
        return;
    };
    lectern.live.once(&format!(
        "stage {}: prompts of its file are laid out as `{}`, and the panel will be asked as `{}`\n\
         hint: `layout = \"{}\"` in the configuration, or a file made with `acem3 data preferences --layout {}`",
        lectern.settings.name,
        other.name(),
        own.name(),
        other.name(),
        own.name()
    ));
}
