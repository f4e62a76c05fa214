//! Runs a training: all stages that are not finished yet, and the export of the panel.

use std::path::Path;

use anyhow::{Context, Result};

use crate::checkpoints::panel::definition::MEMBERS;
use crate::checkpoints::panel::initial_model::InitialModel;
use crate::support::terminal::exit::EngineFailure;
use crate::training::config::reward_token::REWARD_TOKENS;
use crate::training::config::stage_kind::StageKind;
use crate::training::config::train_config::TrainConfig;
use crate::training::config::train_paths::TrainPaths;
use crate::training::examples::sequence_builder::SequenceBuilder;
use crate::training::stages::context::StageContext;
use crate::training::stages::export::export;
use crate::training::stages::member_state::{
    MemberState, MemberWeights, check_equal_frozen_weights, check_joint_stages,
};
use crate::training::stages::preflight::preflight;
use crate::training::stages::progress::TrainingProgress;
use crate::training::stages::run_folder::{check_same_data, claim_folder};
use crate::training::stages::stage_files::{is_finished, remove_intermediate};
use crate::training::stages::stage_run::StageRun;
use crate::training::stages::tasks::preference_cache::PreferenceCache;
use crate::training::stages::training_inputs::{data_digest, load_sampler, load_tokenizer};

/// Runs all stages that are not finished yet and writes the panel. The output folder has everything that is needed to
/// resume after an interruption. Returns false if the user interrupts the training.
///
/// `start`: the initial model of the configuration.
///
/// # Errors
/// Name the file, key or stage. Errors after the first step are [`EngineFailure`]s.
pub fn train(
    config: &TrainConfig,
    start: Option<&InitialModel>,
    paths: &TrainPaths,
    progress: &TrainingProgress,
) -> Result<bool> {
    let _lock = claim_folder(config, &paths.out)?;
    let sampler = load_sampler(config, paths)?;
    check_same_data(data_digest(config, &sampler)?, &paths.out)?;
    let tokenizer = load_tokenizer(config, start, &sampler, &paths.out)?;
    let plain = SequenceBuilder::new(config, tokenizer, config.model.image_tokens())?;
    let rewarded = plain
        .clone()
        .with_prefixes(&MEMBERS.map(|_| REWARD_TOKENS[0].to_owned()))?;
    let stages = config.stages.iter().map(|stage| StageContext {
        config,
        stage,
        sampler: &sampler,
        builder: if stage.has_reward_token {
            &rewarded
        } else {
            &plain
        },
        progress,
        device: &paths.device,
    });
    let stages: Vec<StageContext> = stages.collect();
    let mut members = MemberState::members(start);
    check_joint_stages(&config.stages, &members)?;
    let initial = start.map(InitialModel::names).unwrap_or_default();
    preflight(&stages, &initial, &paths.out)?;
    let finished = run_stages(&stages, &mut members, &paths.out).and_then(|finished| {
        progress.finish();
        if finished {
            export_panel(config, &members, &paths.out, progress)?;
        }
        Ok(finished)
    });
    finished.with_context(|| {
        EngineFailure(format!(
            "the training in {} failed\n\
             hint: correct the problem and run the same command; it resumes from the last checkpoint",
            paths.out.display()
        ))
    })
}

fn run_stages(stages: &[StageContext], members: &mut [MemberState; 4], out: &Path) -> Result<bool> {
    for context in stages {
        if !run_stage(*context, members, out)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs a stage for all its learners. Returns false if the user interrupts it.
fn run_stage(context: StageContext, members: &mut [MemberState; 4], out: &Path) -> Result<bool> {
    let StageContext { config, stage, .. } = context;
    let learners = stage.learners();
    let mut preferences = None;
    if stage.kind.learns_preferences() && !is_finished(stage, out) {
        check_equal_frozen_weights(stage, members, &learners)?;
        let first = learners.first().and_then(|learner| learner.member);
        let start = members[first.unwrap_or_default()].parameters(config.seed)?;
        preferences = PreferenceCache::build(context, &start, out)?;
        if preferences.is_none() {
            return Ok(false);
        }
    }
    for learner in learners {
        let run = StageRun {
            context,
            preferences: preferences.as_ref(),
            member: learner.member,
            name: learner.name,
            out,
        };
        let before = &members[learner.member.unwrap_or_default()];
        if !run.checkpoint().exists() && !run.run(&|| before.parameters(config.seed))? {
            return Ok(false);
        }
        remove_intermediate(out, &run.name)?;
        let trained = MemberState {
            weights: MemberWeights::Stage(run.checkpoint()),
            completion_prefix: stage.completion_prefix().map(str::to_owned),
        };
        match learner.member {
            Some(i) => members[i] = trained,
            None => members.fill(trained),
        }
    }
    // The cache has its file open.
    drop(preferences);
    remove_intermediate(out, &stage.name)?;
    Ok(true)
}

/// Writes the panel, unless only a vision tower was trained.
fn export_panel(
    config: &TrainConfig,
    members: &[MemberState; 4],
    out: &Path,
    progress: &TrainingProgress,
) -> Result<()> {
    let mut stages = config.stages.iter();
    if config.start.is_none() && stages.all(|stage| stage.kind == StageKind::Encoder) {
        progress.note(
            "no panel: the training has no stage after the vision tower\n\
             hint: add a stage of kind \"sft\" and run the same command",
        );
        return Ok(());
    }
    export(config, members, out)?;
    let panel = out.join("panel");
    progress.note(&format!(
        "wrote the panel to {0}\nhint: run `acem3 train eval --panel {0}` to evaluate it",
        panel.display()
    ));
    Ok(())
}
