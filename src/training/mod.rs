//! Training a panel: which examples, in which order, to which files.
//!
//! The mathematics is in `acem3_experts::train`; here are data sets, phantoms and files.

mod asked;
mod config;
mod drills;
mod export;
mod folder;
mod live;
mod phantom_lessons;
mod pixels;
mod real_lessons;
mod scribe;
mod stage;
mod taught;
mod teacher;
mod vocabulary;

pub use config::{StageConfig, StageKind, TrainConfig, TrainPaths};
pub use live::Live;

use std::path::{Path, PathBuf};

use acem3_experts::TextTokenizer;
use acem3_experts::train::{Parameters, load_checkpoint};
use anyhow::{Context, Result, bail};

use real_lessons::RealLessons;
use scribe::Scribe;
use stage::Stage;
use teacher::Teacher;

use crate::folder::FolderLock;
use crate::panel::MEMBERS;
use crate::whole_file;

/// Phantom cases whose texts the tokenizer learns from.
const TOKENIZER_CASES: u64 = 3000;

/// Runs all stages that are not finished yet. Everything needed to go on after an interruption is
/// in `paths.out`. False when the person asked to stop before the end.
pub fn train(config: &TrainConfig, paths: &TrainPaths, live: &Live) -> Result<bool> {
    std::fs::create_dir_all(&paths.out)
        .with_context(|| format!("cannot create {}", paths.out.display()))?;
    folder::same_training(config, &paths.out)?;
    let _lock = FolderLock::take(&paths.out)?;
    let teacher = teacher(config, paths)?;
    folder::same_data(teacher.data(), &paths.out)?;
    let tokenizer = tokenizer(config, &teacher, &paths.out)?;
    let scribe = Scribe::new(config, tokenizer, config.model.image_tokens())?;
    let mut start = Parameters::fresh(config.seed);
    let mut last = MEMBERS.map(|_| PathBuf::new());
    for stage in &config.stages {
        let members: Vec<Option<usize>> = match stage.kind {
            StageKind::Heads => {
                let named =
                    |name| stage.members.is_empty() || stage.members.iter().any(|m| m == name);
                let numbers = (0..MEMBERS.len()).filter(|i| named(MEMBERS[*i]));
                numbers.map(Some).collect()
            }
            _ => vec![None],
        };
        let before = start.clone();
        for member in members {
            let name = match member {
                Some(i) => format!("{}.{}", stage.name, MEMBERS[i]),
                None => stage.name.clone(),
            };
            let out = paths.out.as_path();
            let (teacher, scribe) = (&teacher, &scribe);
            let run = Stage {
                config,
                settings: stage,
                teacher,
                scribe,
                member,
                name,
                out,
                live,
            };
            if !run.checkpoint().exists() && !run.run(&copy(&before)?)? {
                live.end();
                return Ok(false);
            }
            if let Some(i) = member {
                last[i] = run.checkpoint();
            } else {
                start = Parameters::from_tensors(load_checkpoint(&run.checkpoint(), None)?)?;
                last.fill(run.checkpoint());
            }
        }
    }
    live.end();
    export::export(config, &last, &paths.out)?;
    let panel = paths.out.join("panel");
    live.note(&format!(
        "the panel is in {0}\nhint: `acem3 train eval --panel {0}` says what it is worth",
        panel.display()
    ));
    Ok(true)
}

fn teacher(config: &TrainConfig, paths: &TrainPaths) -> Result<Teacher> {
    let side = config.model.vision.image_size;
    let load =
        |data: &Path| RealLessons::load(data, side, &config.processor(), &config.data_shares);
    let real = paths.data.as_deref().map(load).transpose()?;
    Ok(Teacher::new(config, real))
}

/// Runs the one stage of a configuration from weights that are there already, what is missing being
/// drawn; gives all weights then. `member`: the one member that learns, and whose texts are read.
///
/// It is what [`train`] does, for those who have a panel and change a part of it.
pub(crate) fn adapt(
    config: &TrainConfig,
    (start, tokenizer): (&Parameters, &[u8]),
    member: usize,
    paths: &TrainPaths,
    live: &Live,
) -> Result<Parameters> {
    std::fs::create_dir_all(&paths.out)
        .with_context(|| format!("cannot create {}", paths.out.display()))?;
    let teacher = teacher(config, paths)?;
    let tokenizer = TextTokenizer::parse(tokenizer)?;
    let scribe = Scribe::new(config, tokenizer, config.model.image_tokens())?;
    let settings = config.stages.first().context("no stage to run")?;
    let stage = Stage {
        config,
        settings,
        teacher: &teacher,
        scribe: &scribe,
        member: Some(member),
        name: settings.name.clone(),
        out: &paths.out,
        live,
    };
    let ended = stage.run(&copy(start)?)?;
    live.end();
    if !ended {
        bail!("interrupted; the same command goes on");
    }
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

/// The tokenizer of an earlier run, or one trained now.
fn tokenizer(config: &TrainConfig, teacher: &Teacher, out: &Path) -> Result<TextTokenizer> {
    let path = out.join("tokenizer.json");
    if !path.exists() {
        let trained = vocabulary::train(config, teacher.texts(TOKENIZER_CASES))?;
        let json = trained
            .to_string(false)
            .map_err(anyhow::Error::from_boxed)?;
        whole_file::write(&path, json.as_bytes())?;
    }
    let json = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    TextTokenizer::parse(&json).with_context(|| {
        format!(
            "{}: it is no tokenizer\nhint: if it was cut off, delete it and run again",
            path.display()
        )
    })
}
