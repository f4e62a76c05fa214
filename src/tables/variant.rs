//! The configurations of a table: one, changed in one thing after another.

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::Serialize;

use crate::preferences::Negative;
use crate::training::{StageKind, TrainConfig};

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// All of it; without reward tokens; without preference data; without frozen layers
    Ablation,
    /// Every number of frozen layers
    Frozen,
    /// Every way to make an evaluation worse, alone and all together
    Negatives,
    /// With and without preference data
    Bias,
}

/// A row: a configuration and what is particular about it.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What is particular, as the table says it.
    pub name: String,
    /// The name of its folder.
    pub folder: String,
    /// The configuration.
    pub config: TrainConfig,
}

impl Rows {
    /// The variants of a configuration, the first being what the others are compared with.
    ///
    /// # Errors
    /// Where no stage of the configuration learns preferences.
    pub fn variants(self, base: &TrainConfig) -> Result<Vec<Variant>> {
        if !base.stages.iter().any(|stage| stage.kind.prefers()) {
            bail!(
                "no stage learns preferences, and a table says what they are worth\n\
                 hint: add a stage of kind \"rtdpo\" with [stages.preferences]"
            );
        }
        let rows: Vec<(String, TrainConfig)> = match self {
            Self::Ablation => vec![
                ("full".to_owned(), base.clone()),
                (
                    "no reward token".to_owned(),
                    changed(base, |stage| stage.kind = StageKind::Dpo),
                ),
                ("no preference data".to_owned(), without(base)),
                ("no frozen layers".to_owned(), frozen(base, 0)),
            ],
            Self::Bias => vec![
                ("with preference data".to_owned(), base.clone()),
                ("without".to_owned(), without(base)),
            ],
            Self::Frozen => (0..base.model.decoder.num_hidden_layers)
                .rev()
                .map(|layers| (format!("{layers} layers frozen"), frozen(base, layers)))
                .collect(),
            Self::Negatives => {
                let alone = Negative::ALL.map(|way| (way.name(), negatives(base, &[way])));
                let all = ("all ways".to_owned(), negatives(base, &Negative::ALL));
                [all].into_iter().chain(alone).collect()
            }
        };
        Ok(rows
            .into_iter()
            .map(|(name, config)| Variant {
                folder: name.replace(' ', "-"),
                name,
                config,
            })
            .collect())
    }
}

/// The configuration with its stages of preferences changed.
fn changed(base: &TrainConfig, change: impl Fn(&mut crate::training::StageConfig)) -> TrainConfig {
    let mut config = base.clone();
    let stages = config.stages.iter_mut();
    stages.filter(|stage| stage.kind.prefers()).for_each(change);
    config
}

fn without(base: &TrainConfig) -> TrainConfig {
    let mut config = base.clone();
    config.stages.retain(|stage| !stage.kind.prefers());
    config
}

/// Below the trained layers nothing moves either; where no layer is frozen, what is before them stays as
/// it is, so that rows differ in the layers alone.
fn frozen(base: &TrainConfig, layers: usize) -> TrainConfig {
    let mut config = changed(base, |stage| stage.frozen_layers = Some(layers));
    config.trunk_layers = config.trunk_layers.min(layers);
    config
}

fn negatives(base: &TrainConfig, ways: &[Negative]) -> TrainConfig {
    changed(base, |stage| {
        if let Some(preferences) = &mut stage.preferences {
            preferences.negatives = ways.to_vec();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> TrainConfig {
        let mini = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/mini/train.toml");
        TrainConfig::read(mini.as_ref()).unwrap()
    }

    /// What a variant's stage of preferences is, if it has one.
    fn stage(variant: &Variant) -> Option<&crate::training::StageConfig> {
        variant.config.stages.iter().find(|s| s.kind.prefers())
    }

    #[test]
    fn every_row_differs_from_the_first_in_one_thing() {
        let base = base();
        let rows = Rows::Ablation.variants(&base).unwrap();
        let names: Vec<&str> = rows.iter().map(|r| r.folder.as_str()).collect();
        let expected = [
            "full",
            "no-reward-token",
            "no-preference-data",
            "no-frozen-layers",
        ];
        assert_eq!(names, expected);
        let [full, token, data, layers] = [0, 1, 2, 3].map(|i| stage(&rows[i]));
        assert_eq!(full.unwrap().kind, StageKind::Rtdpo);
        assert_eq!(token.unwrap().kind, StageKind::Dpo);
        assert!(data.is_none() && rows[2].config.stages.len() + 1 == base.stages.len());
        assert_eq!(layers.unwrap().frozen_layers, Some(0));
        assert_eq!(rows[3].config.trunk_layers, 0);
        let frozen = Rows::Frozen.variants(&base).unwrap();
        let layers = frozen
            .iter()
            .map(|v| stage(v).unwrap().frozen_layers.unwrap());
        assert_eq!(layers.collect::<Vec<_>>(), [5, 4, 3, 2, 1, 0]);
        let ways = Rows::Negatives.variants(&base).unwrap();
        let ways = ways.iter().map(|v| {
            stage(v)
                .unwrap()
                .preferences
                .as_ref()
                .unwrap()
                .negatives
                .len()
        });
        assert_eq!(ways.collect::<Vec<_>>(), [4, 1, 1, 1, 1]);
        assert_eq!(Rows::Bias.variants(&base).unwrap().len(), 2);
    }

    #[test]
    fn without_preferences_there_is_no_table() {
        let error = Rows::Bias
            .variants(&without(&base()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("hint:"), "{error}");
    }
}
