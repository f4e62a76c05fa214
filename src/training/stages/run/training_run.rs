//! Runs a training: all unfinished stages, then the export of the panel.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};

use crate::checkpoints::panel::initial_model::InitialModel;
use crate::checkpoints::panel::trained_forms::TrainedForms;
use crate::support::terminal::exit::RunFailure;
use crate::support::terminal::number::format_bytes;
use crate::training::config::stage::stage_kind::StageKind;
use crate::training::config::train_config::TrainConfig;
use crate::training::config::train_paths::TrainPaths;
use crate::training::examples::sequence_builder::SequenceBuilder;
use crate::training::stages::context::StageContext;
use crate::training::stages::files::data_digests::DataDigests;
use crate::training::stages::files::export::{ExportFolders, PanelSizes, export};
use crate::training::stages::files::member_state::{
    MemberState, check_equal_frozen_weights, check_joint_stages, check_one_base,
};
use crate::training::stages::files::run_folder::{check_same_data, claim_folder};
use crate::training::stages::files::stage_files::{is_finished, remove_intermediate};
use crate::training::stages::files::training_inputs::{load_sampler, load_tokenizer};
use crate::training::stages::metrics::progress::TrainingProgress;
use crate::training::stages::run::preflight::preflight;
use crate::training::stages::run::stage_run::StageRun;
use crate::training::stages::tasks::own_judging::own_evaluations;
use crate::training::stages::tasks::preference_cache::PreferenceCache;

/// Runs all unfinished stages and writes the panel. An interrupted training resumes from the files
/// in the output folder. Returns false if the user interrupts the training.
///
/// `initial_model` is the model that the configuration starts from.
///
/// # Errors
/// Errors name the file, key or stage. Errors after the first step are [`RunFailure`]s.
pub fn train(
    config: &TrainConfig,
    initial_model: Option<&InitialModel>,
    paths: &TrainPaths,
    progress: &TrainingProgress,
) -> Result<bool> {
    let _lock = claim_folder(config, &paths.out)?;
    progress.note_once("reading the data and preparing the tokenizer");
    let sampler = load_sampler(config, paths.data.as_deref())?;
    check_same_data(&DataDigests::of_training(config, &sampler)?, &paths.out)?;
    let tokenizer = load_tokenizer(config, initial_model, &sampler, &paths.out)?;
    config.check_encoded_tokens(&tokenizer)?;
    let plain_builder = SequenceBuilder::new(config, tokenizer)?;
    let good_tokens = config.reward_tokens.good(config.member_names());
    let reward_builder = plain_builder.clone().with_prefixes(&good_tokens)?;
    let stages = config.stages.iter().map(|stage| StageContext {
        config,
        stage,
        sampler: &sampler,
        builder: if stage.has_reward_token { &reward_builder } else { &plain_builder },
        progress,
        device: &paths.device,
    });
    let stages: Vec<StageContext> = stages.collect();
    let mut members = MemberState::members(initial_model);
    if config.keeps_adapters {
        members = members.map(MemberState::with_kept_adapters);
        check_one_base(config.member_names(), &members)?;
    }
    check_joint_stages(&config.stages, &members)?;
    let initial_names = initial_model.map(InitialModel::weight_names).unwrap_or_default();
    preflight(&stages, &initial_names, &paths.out)?;
    let result = run_stages(&stages, &mut members, &paths.out).and_then(|is_finished| {
        progress.finish();
        if is_finished {
            export_panel(config, &members, &paths.out, progress)?;
        }
        Ok(is_finished)
    });
    result.with_context(|| {
        RunFailure(format!(
            "the training in {} failed\n\
             hint: correct the problem and run the same command; it resumes from the last checkpoint",
            paths.out.display()
        ))
    })
}

/// Runs the stages in order. Returns false if the user interrupts one.
fn run_stages(stages: &[StageContext], members: &mut [MemberState; 4], out: &Path) -> Result<bool> {
    let mut members_after: HashMap<&str, [MemberState; 4]> = HashMap::new();
    for context in stages {
        let stage = context.stage;
        if let Some(earlier) = stage.mean_with.as_deref().and_then(|name| members_after.get(name)) {
            *members = std::array::from_fn(|i| members[i].mean_with(&earlier[i]));
        }
        if !run_stage(*context, members, out)? {
            return Ok(false);
        }
        members_after.insert(&stage.name, members.clone());
    }
    Ok(true)
}

/// Runs a stage for all its learners. Returns false if the user interrupts it.
fn run_stage(context: StageContext, members: &mut [MemberState; 4], out: &Path) -> Result<bool> {
    let StageContext { config, stage, .. } = context;
    if let Some(source) = stage.source_member() {
        *members = std::array::from_fn(|_| members[source].clone());
    }
    let learners = stage.learners();
    let mut preferences = None;
    if stage.kind.learns_preferences() && !is_finished(stage, out) {
        check_equal_frozen_weights(stage, members, &learners)?;
        let first_member = learners.first().and_then(|learner| learner.member);
        let initial = members[first_member.unwrap_or_default()].parameters(config.seed)?;
        let mut own = None;
        if stage.preferences.as_ref().is_some_and(|preferences| preferences.rejects_own) {
            own = own_evaluations(context, members, out)?;
            if own.is_none() {
                return Ok(false);
            }
        }
        preferences = PreferenceCache::build(context, own, &initial, out)?;
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
        let initial = &members[learner.member.unwrap_or_default()];
        if !run.checkpoint().exists() && !run.run(&|| initial.parameters(config.seed))? {
            return Ok(false);
        }
        remove_intermediate(out, &run.name)?;
        // A folder of an earlier version has no file with the adapters.
        let is_adapted = stage.lora.is_some() && learner.member.is_some();
        let adapters = Some(run.adapters()).filter(|file| is_adapted && file.exists());
        let trained = if run.keeps_adapters() {
            initial.after_adapters(run.checkpoint())
        } else {
            initial.after_stage(run.checkpoint(), adapters)
        };
        let trained = |i: usize| MemberState {
            reward_tokens: (stage.trains_reward_tokens())
                .then(|| config.reward_tokens.of(stage.member_names.get(i))),
            ..trained.clone()
        };
        match learner.member {
            Some(i) => members[i] = trained(i),
            None => *members = std::array::from_fn(trained),
        }
    }
    // Closes the file of the cache before its removal.
    drop(preferences);
    remove_intermediate(out, &stage.name)?;
    Ok(true)
}

/// Writes the panel. Prints a note instead if the training trains only a vision tower.
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
    let panel = out.join("panel");
    export(config, members, ExportFolders { run: out, panel: &panel })?;
    let mut sizes = String::new();
    if config.keeps_adapters {
        let PanelSizes { trunk, members } =
            PanelSizes::read(&panel, config.judging.member_names()?.all())?;
        let [trunk, members] = [trunk, members].map(|bytes| format_bytes(bytes as usize));
        sizes = format!(": {trunk} of the base and {members} of adapters");
    }
    let hint = if config.judging.trained_forms() == TrainedForms::default() {
        format!("run `acem3 train eval --panel {}` to evaluate it", panel.display())
    } else {
        format!("judge with `acem3 judge CASES --panel {} --form FORM`", panel.display())
    };
    progress.note(&format!("wrote the panel to {}{sizes}\nhint: {hint}", panel.display()));
    Ok(())
}
