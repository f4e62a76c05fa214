//! Training a panel: which examples, in which order, to which files.
//!
//! The mathematics is in `acem3_experts::train`; here are data sets, phantoms and files.

pub mod ablation;
pub mod config;
pub mod encoders;
pub mod examples;
pub mod introspection;
pub mod measurement;
pub mod preferences;
pub mod stages;

pub use crate::training::config::precision::Precision;
pub use crate::training::config::preference_config::PreferenceConfig;
pub use crate::training::config::stage_config::{StageConfig, StageKind};
pub use crate::training::config::train_config::{TrainConfig, TrainPaths};
pub use crate::training::preferences::file_sequences::FileSequenceBuilder;
pub use crate::training::preferences::preference_sequence::RewardTokenRole;
pub use crate::training::stages::activation_file::ActivationDtype;
pub use crate::training::stages::evaluation_set::EvaluationConfig;
pub use crate::training::stages::progress::TrainingProgress;

use std::collections::HashMap;
use std::path::Path;

use acem3_experts::TextTokenizer;
use acem3_experts::train::{Parameters, load_checkpoint};
use anyhow::{Context, Result, bail};
use candle::Tensor;

use crate::training::examples::dataset_examples::DatasetExamples;
use crate::training::examples::example_sampler::ExampleSampler;
use crate::training::examples::sequence_builder::SequenceBuilder;
use crate::training::preferences::preference_cache::PreferenceCache;
use crate::training::stages::member_state::{MemberState, MemberWeights};
use crate::training::stages::stage::{StageRun, clear};
use crate::training::stages::task::StageContext;

use crate::checkpoints::panel::definition::MEMBERS;
use crate::checkpoints::panel::initial_model::InitialModel;
use crate::checkpoints::panel::spec::TOKENIZER_FILE;
use crate::support::digest::Digest;
use crate::support::files::atomic_file;
use crate::support::files::folder::create_folder;
use crate::support::terminal::exit::EngineFailure;
use crate::training::preferences::data::REWARD_TOKENS;

/// Phantom cases whose texts the tokenizer learns from.
const TOKENIZER_CASES: u64 = 3000;

/// Runs all stages that are not finished yet. Everything needed to go on after an interruption is
/// in `paths.out`. False when the person asked to stop before the end.
///
/// `start`: what the configuration says it begins with.
pub fn train(
    config: &TrainConfig,
    start: Option<&InitialModel>,
    paths: &TrainPaths,
    live: &TrainingProgress,
) -> Result<bool> {
    let _lock = crate::training::stages::run_folder::take(config, &paths.out)?;
    let teacher = teacher(config, paths)?;
    crate::training::stages::run_folder::same_data(learned_from(config, &teacher)?, &paths.out)?;
    let words = || match start {
        Some(start) => Ok(start.tokenizer.json()?),
        None => crate::training::examples::train_tokenizer::train(
            config,
            teacher.texts(TOKENIZER_CASES),
        ),
    };
    let tokenizer = tokenizer(words, &paths.out)?;
    let scribe = SequenceBuilder::new(config, tokenizer, config.model.image_tokens())?;
    let rewarded = scribe
        .clone()
        .leading(&MEMBERS.map(|_| REWARD_TOKENS[0].to_owned()))?;
    let lecterns = config.stages.iter().map(|settings| StageContext {
        config,
        settings,
        teacher: &teacher,
        scribe: if settings.rewarded {
            &rewarded
        } else {
            &scribe
        },
        live,
        device: &paths.device,
    });
    let lecterns: Vec<StageContext> = lecterns.collect();
    let mut members = MemberState::members(start);
    check_whole(config, &members)?;
    let known = start.map(InitialModel::names).unwrap_or_default();
    crate::training::stages::preflight::check(&lecterns, &known, &paths.out)?;
    stages(&lecterns, config, &mut members, (&paths.out, live)).with_context(|| {
        EngineFailure(format!(
            "the training in {} stopped\n\
             hint: once what is wrong is mended, the same command goes on from the last checkpoint",
            paths.out.display()
        ))
    })
}

/// Trains stage after stage, and writes the panel.
fn stages(
    lecterns: &[StageContext],
    config: &TrainConfig,
    members: &mut [MemberState; 4],
    (out, live): (&Path, &TrainingProgress),
) -> Result<bool> {
    for lectern in lecterns {
        if !run_stage(*lectern, out, members)? {
            live.end();
            return Ok(false);
        }
    }
    live.end();
    let towers_alone = config
        .stages
        .iter()
        .all(|stage| stage.kind == StageKind::Encoder);
    if config.start.is_none() && towers_alone {
        live.note(
            "a vision tower alone was trained, which is no panel yet\n\
             hint: add a stage of kind \"sft\", and the same command goes on from here",
        );
        return Ok(true);
    }
    crate::training::stages::export::export(config, members, out)?;
    let panel = out.join("panel");
    live.note(&format!(
        "the panel is in {0}\nhint: `acem3 train eval --panel {0}` says what it is worth",
        panel.display()
    ));
    Ok(true)
}

/// The hash of all that is learned from beside phantoms.
fn learned_from(config: &TrainConfig, teacher: &ExampleSampler) -> Result<Option<Digest>> {
    let mut digests: Vec<Digest> = teacher.data().into_iter().collect();
    for preferences in config.stages.iter().filter_map(|s| s.preferences.as_ref()) {
        if let Some(file) = &preferences.file {
            digests.push(crate::training::preferences::data::read(file)?.1);
        }
    }
    for evaluations in config.stages.iter().filter_map(|s| s.evaluations.as_ref()) {
        digests.push(crate::training::preferences::data::evaluations(&evaluations.file)?.1);
    }
    let (first, others) = match digests.split_first() {
        Some((first, others)) => (*first, others),
        None => return Ok(None),
    };
    let both = |so_far: Digest, next: &Digest| {
        Digest::of(&[so_far.bytes().as_slice(), next.bytes()].concat())
    };
    Ok(Some(others.iter().fold(first, both)))
}

/// Members that differ cannot become one again.
fn check_whole(config: &TrainConfig, members: &[MemberState; 4]) -> Result<()> {
    let whole = config.stages.iter().find(|stage| !stage.by_member());
    if let (Some(stage), Some(name)) = (
        whole,
        crate::training::stages::member_state::first_apart(members),
    ) {
        bail!(
            "stage {}: it trains all members as one, and {name} begins with other weights than {}\n\
             hint: begin with a checkpoint, or train members by name with `members = [...]`",
            stage.name,
            MEMBERS[0]
        );
    }
    Ok(())
}

/// Runs one stage for every member that it trains. False when the person asked to stop.
fn run_stage(lectern: StageContext, out: &Path, members: &mut [MemberState; 4]) -> Result<bool> {
    let StageContext {
        config, settings, ..
    } = lectern;
    let learners = settings.learners();
    let mut stored = None;
    if settings.kind.prefers() && !settings.is_finished(out) {
        same_below(settings, members, &learners)?;
        let first = learners.first().and_then(|(member, _)| *member);
        let start = members[first.unwrap_or_default()].parameters(config.seed)?;
        stored = PreferenceCache::prepare(lectern, &start, out)?;
        if stored.is_none() {
            return Ok(false);
        }
    }
    for (member, name) in learners {
        let run = StageRun {
            lectern,
            stored: stored.as_ref(),
            member,
            name,
            out,
        };
        let before = &members[member.unwrap_or_default()];
        if !run.checkpoint().exists() && !run.run(&|| before.parameters(config.seed))? {
            return Ok(false);
        }
        clear(out, &run.name)?;
        let trained = MemberState {
            weights: MemberWeights::Stage(run.checkpoint()),
            lead: settings.lead().map(str::to_owned),
        };
        match member {
            Some(i) => members[i] = trained,
            None => members.fill(trained),
        }
    }
    drop(stored);
    clear(out, &settings.name)?;
    Ok(true)
}

/// What is computed once for all members must be the same in all.
fn same_below(
    settings: &StageConfig,
    members: &[MemberState; 4],
    learners: &[(Option<usize>, String)],
) -> Result<()> {
    let mut apart: Vec<&MemberState> = Vec::new();
    let places = learners.iter().filter_map(|(member, _)| *member);
    for member in places.map(|i| &members[i]) {
        if !apart.iter().any(|other| member.same_place(other)) {
            apart.push(member);
        }
    }
    let Some((first, others)) = apart.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Ok(());
    };
    let frozen = settings.frozen();
    let named = |trained: &MemberState| -> Result<HashMap<String, Tensor>> {
        Ok(trained.tensors()?.unwrap_or_default().into_iter().collect())
    };
    let first = named(first)?;
    for other in others {
        let tensors = named(other)?;
        for (name, tensor) in &first {
            if frozen.iter().any(|f| name.starts_with(f.as_str()))
                && !tensors
                    .get(name)
                    .is_some_and(|t| crate::training::stages::export::equal(t, tensor))
            {
                bail!(
                    "stage {}: it freezes `{name}`, in which its members differ\n\
                     hint: give each such member a stage of its own",
                    settings.name
                );
            }
        }
    }
    Ok(())
}

fn teacher(config: &TrainConfig, paths: &TrainPaths) -> Result<ExampleSampler> {
    let side = config.model.vision.image_size;
    let load =
        |data: &Path| DatasetExamples::load(data, side, &config.processor(), &config.data_shares);
    let real = paths.data.as_deref().map(load).transpose()?;
    Ok(ExampleSampler::new(config, real))
}

/// Runs the one stage of a configuration from weights that are there already, what is missing being
/// drawn; gives all weights then. `member`: the one member that learns, and whose texts are read; `leads`: what the
/// members' texts begin with.
///
/// It is what [`train`] does, for those who have a panel and change a part of it.
pub(crate) fn adapt(
    config: &TrainConfig,
    (start, tokenizer): (&Parameters, &[u8]),
    (member, leads): (usize, &[String; 4]),
    paths: &TrainPaths,
    live: &TrainingProgress,
) -> Result<Parameters> {
    create_folder(&paths.out)?;
    let teacher = teacher(config, paths)?;
    let tokenizer = TextTokenizer::parse(tokenizer)?;
    let scribe =
        SequenceBuilder::new(config, tokenizer, config.model.image_tokens())?.leading(leads)?;
    let settings = config.stages.first().context("no stage to run")?;
    let lectern = StageContext {
        config,
        settings,
        teacher: &teacher,
        scribe: &scribe,
        live,
        device: &paths.device,
    };
    let known = start.all().into_iter().map(|(name, _)| name).collect();
    crate::training::stages::preflight::check(&[lectern], &known, &paths.out)?;
    let stage = StageRun {
        lectern,
        stored: None,
        member: Some(member),
        name: settings.name.clone(),
        out: &paths.out,
    };
    let ended = stage.run(&|| copy(start))?;
    live.end();
    if !ended {
        bail!("interrupted; the same command goes on");
    }
    clear(&paths.out, &stage.name)?;
    Ok(Parameters::from_tensors(load_checkpoint(
        &stage.checkpoint(),
        None,
    )?)?)
}

/// Weights of their own with the same values, so that members do not train each other's.
fn copy(parameters: &Parameters) -> Result<Parameters> {
    let copies = parameters
        .all()
        .into_iter()
        .map(|(name, var)| Ok((name, var.copy()?)));
    Ok(Parameters::from_tensors(
        copies.collect::<candle::Result<Vec<_>>>()?,
    )?)
}

/// The tokenizer of an earlier run, or that of these words.
fn tokenizer(words: impl Fn() -> Result<String>, out: &Path) -> Result<TextTokenizer> {
    let path = out.join(TOKENIZER_FILE);
    if !path.exists() {
        atomic_file::write(&path, words()?.as_bytes())?;
    }
    let json = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    TextTokenizer::parse(&json).with_context(|| {
        format!(
            "{}: it is no tokenizer\nhint: if it was cut off, delete it and run again",
            path.display()
        )
    })
}
