//! `start`: a training that begins with a model that is there already.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use toml::{Table, Value};

use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::initial_model::InitialModel;

/// What a configuration says of its model only where it begins with nothing.
const OWN: [&str; 4] = ["model", "vocabulary", "dialogue", "start_sha256"];

/// Reads what a configuration begins with, and writes into it what follows from that.
pub(crate) fn take(
    table: &mut Table,
    path: &Path,
    mut downloads: Downloads,
) -> Result<Option<InitialModel>> {
    let Some(start) = table.get("start") else {
        return Ok(None);
    };
    let name = start
        .as_str()
        .context("start is no text, expected a name")?;
    if let Some(own) = OWN.iter().find(|own| table.contains_key(**own)) {
        bail!("{own} follows from start = {name:?}\nhint: leave {own} out");
    }
    let beside = path.parent().unwrap_or(Path::new("")).join(name);
    let local = if beside.exists() {
        beside.display().to_string()
    } else {
        name.to_owned()
    };
    let files = match name {
        "embedded" => PanelFiles::Embedded,
        _ => PanelFiles::named("start", &local, &mut downloads)?,
    };
    let start =
        InitialModel::read(&files, downloads).with_context(|| format!("start = {name:?}"))?;
    fill(table, "start_sha256", &start.sha256.to_string())?;
    fill(table, "model", &start.model)?;
    fill(table, "vocabulary", &start.model.decoder.vocab_size)?;
    fill(table, "dialogue", &start.dialogue)?;
    fill(table, "processor", &start.processor)?;
    fill(table, "layout", &start.layout)?;
    fill(table, "rubric", &start.rubric)?;
    Ok(Some(start))
}

/// Adds what the configuration does not say itself.
fn fill(table: &mut Table, name: &str, value: &impl Serialize) -> Result<()> {
    let value = Value::try_from(value).with_context(|| format!("cannot write {name}"))?;
    table.entry(name).or_insert(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use candle::{Device, Tensor};

    use super::*;
    use crate::checkpoints::panel::definition::MEMBERS;
    use crate::checkpoints::panel::spec::PanelSpec;
    use crate::support::terminal::interrupt::Interrupt;
    use crate::training::config::train_config::{TrainConfig, TrainPaths};
    use crate::training::{TrainingProgress, train};

    const STAGE: &str = r#"
name = "tuned"
seed = 5

[[stages]]
name = "know"
kind = "heads"
members = ["medical_knowledge"]
steps = 1
batch = 1
rate = 1e-3
"#;

    fn config(start: &str, frozen: usize) -> Result<(TrainConfig, Option<InitialModel>)> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("train.toml");
        std::fs::write(
            &path,
            format!(
                "start = {start:?}\ntrunk_layers = {frozen}\n{STAGE}frozen_layers = {frozen}\n"
            ),
        )?;
        TrainConfig::begin(&path, Downloads::default())
    }

    fn golden(name: &str) -> String {
        let root = env!("CARGO_MANIFEST_DIR");
        format!("{root}/assets/golden/checkpoints/{name}")
    }

    fn refusal(start: &str) -> String {
        format!("{:#}", config(start, 1).map(|_| ()).unwrap_err())
    }

    /// All weights of a member of a panel's folder.
    fn weights(panel: &Path, member: &str) -> HashMap<String, Tensor> {
        let files = [
            format!("{member}.safetensors"),
            "trunk.safetensors".to_owned(),
        ];
        let read = |file: &String| candle::safetensors::load(panel.join(file), &Device::Cpu);
        files.iter().flat_map(|file| read(file).unwrap()).collect()
    }

    #[test]
    fn a_panel_goes_on_from_a_panel_and_only_the_trained_layers_change() {
        let (config, start) = config("embedded", 5).unwrap();
        let out = tempfile::tempdir().unwrap();
        let paths = TrainPaths {
            out: out.path().to_owned(),
            data: None,
            device: Device::Cpu,
        };
        let live = TrainingProgress::new(true, Interrupt::default());
        assert!(train(&config, start.as_ref(), &paths, &live).unwrap());
        let (before, after) = (
            Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini"),
            out.path().join("panel"),
        );
        for member in MEMBERS {
            let (before, after) = (weights(&before, member), weights(&after, member));
            assert_eq!(before.len(), after.len());
            let changed = before
                .iter()
                .filter(|(name, tensor)| !super::super::export::equal(tensor, &after[*name]));
            let changed: Vec<&String> = changed.map(|(name, _)| name).collect();
            if member == "medical_knowledge" {
                let own = |name: &&String| {
                    name.starts_with("model.layers.5.") || *name == "model.norm.weight"
                };
                assert!(
                    !changed.is_empty() && changed.iter().all(own),
                    "{changed:?}"
                );
            } else {
                assert!(changed.is_empty(), "{member}: {changed:?}");
            }
        }
        let text = std::fs::read_to_string(after.join("panel.toml")).unwrap();
        let spec = PanelSpec::parse(&text).unwrap();
        assert_eq!((spec.name.as_str(), spec.model), ("tuned", config.model));
    }

    #[test]
    fn a_published_checkpoint_says_its_shape_words_and_manner() {
        let (config, start) = config(&golden("llava-mistral"), 1).map_or_else(
            |error| panic!("{error:#}"),
            |(config, start)| (config, start.unwrap()),
        );
        assert_eq!(config.model, start.model);
        assert_eq!(config.vocabulary, 484);
        assert!(
            config.dialogue.open.contains("[INST]"),
            "{:?}",
            config.dialogue
        );
        let names = start.weights(0).unwrap();
        assert!(names.iter().any(|(name, _)| name == "lm_head.weight"));
    }

    #[test]
    fn what_cannot_be_begun_with_is_refused() {
        let blind = refusal(&golden("mistral"));
        assert!(blind.contains("reads text alone"), "{blind}");
        let tiled = refusal(&golden("llava-next"));
        assert!(tiled.contains("sees images in tiles"), "{tiled}");
        let absent = refusal("/nowhere/at/all");
        assert!(
            absent.contains("start /nowhere/at/all: there is no"),
            "{absent}"
        );
        let mut table: Table = toml::from_str("start = \"embedded\"\nvocabulary = 7").unwrap();
        let twice = take(&mut table, Path::new("train.toml"), Downloads::default());
        let twice = twice.map(|_| ()).unwrap_err().to_string();
        assert!(twice.contains("leave vocabulary out"), "{twice}");
    }
}
