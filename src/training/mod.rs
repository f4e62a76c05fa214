//! Training a panel: which examples, in which order, to which files.
//!
//! The mathematics is in `acem3_experts::train`; here are data sets, phantoms and files.

mod asked;
mod config;
mod drills;
mod export;
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

use crate::panel::MEMBERS;

/// Phantom cases whose texts the tokenizer learns from.
const TOKENIZER_CASES: u64 = 3000;

/// Runs all stages that are not finished yet. Everything needed to go on after an interruption is
/// in `paths.out`. False when the person asked to stop before the end.
pub fn train(config: &TrainConfig, paths: &TrainPaths, live: &Live) -> Result<bool> {
    std::fs::create_dir_all(&paths.out)
        .with_context(|| format!("cannot create {}", paths.out.display()))?;
    same_training(config, &paths.out)?;
    let teacher = teacher(config, paths)?;
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

/// Keeps the configuration beside its checkpoints, and refuses to go on with another one: stages
/// that are finished would be taken for the new configuration's.
fn same_training(config: &TrainConfig, out: &Path) -> Result<()> {
    let path = out.join("train.toml");
    let text = toml::to_string_pretty(config).context("cannot write the configuration")?;
    match std::fs::read_to_string(&path) {
        Ok(before) if before == text => Ok(()),
        Ok(_) => bail!(
            "{}: the checkpoints beside it are of another configuration\n\
             hint: name another folder with --out, or move this one away",
            path.display()
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            empty(out)?;
            whole(&path, text.as_bytes())
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Refuses a folder that holds anything else than a training.
fn empty(out: &Path) -> Result<()> {
    let mut entries =
        std::fs::read_dir(out).with_context(|| format!("cannot read {}", out.display()))?;
    if entries.next().is_some() {
        bail!(
            "--out {}: it holds files that are no training's\n\
             hint: name a folder that is empty or does not exist",
            out.display()
        );
    }
    Ok(())
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
        whole(&path, json.as_bytes())?;
    }
    let json = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    TextTokenizer::parse(&json).with_context(|| {
        format!(
            "{}: it is no tokenizer\nhint: if it was cut off, delete it and run again",
            path.display()
        )
    })
}

/// Writes a file that is there whole or not at all.
fn whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let partial = path.with_extension("partial");
    std::fs::write(&partial, bytes)
        .and_then(|()| std::fs::rename(&partial, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_configuration_is_refused_in_a_used_folder() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
        let mut config = TrainConfig::read(&path).unwrap();
        let out = tempfile::tempdir().unwrap();
        same_training(&config, out.path()).unwrap();
        same_training(&config, out.path()).unwrap();
        config.stages[0].rate *= 2.0;
        let error = same_training(&config, out.path()).unwrap_err().to_string();
        assert!(error.contains("train.toml: the checkpoints"), "{error}");
        assert!(error.contains("hint: name another folder"), "{error}");
    }
}
