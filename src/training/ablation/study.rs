//! The configurations of a table: one, changed in one thing after another.

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::Serialize;

use crate::checkpoints::panel::definition::MEMBERS;
use crate::training::Negative;
use crate::training::{StageConfig, StageKind, TrainConfig};

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum AblationStudy {
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

impl AblationStudy {
    /// The variants of a configuration, the first being what the others are compared with.
    ///
    /// # Errors
    /// Where no stage of the configuration learns preferences.
    pub fn variants(self, base: &TrainConfig) -> Result<Vec<Variant>> {
        if !base
            .stages
            .iter()
            .any(|stage| stage.kind.learns_preferences())
        {
            bail!(
                "no stage learns preferences, and a table says what they are worth\n\
                 hint: add a stage of kind \"rtdpo\" with [stages.preferences]"
            );
        }
        let from_file =
            |stage: &StageConfig| stage.preferences.as_ref().is_some_and(|p| p.file.is_some());
        if matches!(self, Self::Ablation | Self::Negatives) && base.stages.iter().any(from_file) {
            bail!(
                "a stage learns pairs of a file, which are worse in the way they are and have reward tokens or not\n\
                 hint: leave `file` out of [stages.preferences], or ask for --study frozen or bias"
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
                let row = |name, ways: &[_]| Some((name, negatives(base, ways)?));
                let alone = Negative::ALL.map(|way| row(way.name(), &[way]));
                let all = row("all ways".to_owned(), &Negative::ALL);
                [all].into_iter().chain(alone).flatten().collect()
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
fn changed(base: &TrainConfig, change: impl Fn(&mut StageConfig)) -> TrainConfig {
    let mut config = base.clone();
    let stages = config.stages.iter_mut();
    stages
        .filter(|stage| stage.kind.learns_preferences())
        .for_each(change);
    config
}

fn without(base: &TrainConfig) -> TrainConfig {
    let mut config = base.clone();
    config
        .stages
        .retain(|stage| !stage.kind.learns_preferences());
    config
}

/// Below the trained layers nothing moves either; where no layer is frozen, what is before them stays as
/// it is, so that rows differ in the layers alone. In layers above the trunk members differ: they cannot be computed
/// for all at once, and each member has a stage of its own.
fn frozen(base: &TrainConfig, layers: usize) -> TrainConfig {
    let mut config = changed(base, |stage| stage.frozen_layers = Some(layers));
    if layers > config.trunk_layers {
        config.stages = config.stages.into_iter().flat_map(alone).collect();
    }
    config.trunk_layers = config.trunk_layers.min(layers);
    config
}

/// A stage of preferences as one for each member; any other as it is.
fn alone(stage: StageConfig) -> Vec<StageConfig> {
    if !stage.kind.learns_preferences() || !stage.is_per_member() {
        return vec![stage];
    }
    let members = stage
        .member_indices()
        .into_iter()
        .map(|place| MEMBERS[place]);
    let stages = members.map(|member| StageConfig {
        name: format!("{}-{member}", stage.name),
        members: vec![member.to_owned()],
        ..stage.clone()
    });
    stages.collect()
}

/// With these ways; members that none of them concerns stay as they are. `None` where nobody would learn.
fn negatives(base: &TrainConfig, ways: &[Negative]) -> Option<TrainConfig> {
    let mut config = base.clone();
    for stage in config
        .stages
        .iter_mut()
        .filter(|stage| stage.kind.learns_preferences())
    {
        let learning = stage.member_indices();
        let concerned = |place: &&usize| ways.iter().any(|way| way.applies_to(MEMBERS[**place]));
        let concerned: Vec<usize> = learning.iter().filter(concerned).copied().collect();
        if concerned.is_empty() {
            return None;
        }
        if concerned != learning {
            let names = concerned.into_iter().map(|place| MEMBERS[place].to_owned());
            stage.members = names.collect();
        }
        if let Some(preferences) = &mut stage.preferences {
            preferences.negatives = ways.to_vec();
        }
    }
    Some(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> TrainConfig {
        let mini = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/mini/train.toml");
        TrainConfig::read(mini.as_ref()).unwrap()
    }

    /// What a variant's stage of preferences is, if it has one.
    fn stage(variant: &Variant) -> Option<&StageConfig> {
        variant
            .config
            .stages
            .iter()
            .find(|s| s.kind.learns_preferences())
    }

    #[test]
    fn every_row_differs_from_the_first_in_one_thing() {
        let base = base();
        let rows = AblationStudy::Ablation.variants(&base).unwrap();
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
        let frozen = AblationStudy::Frozen.variants(&base).unwrap();
        let layers = frozen
            .iter()
            .map(|v| stage(v).unwrap().frozen_layers.unwrap());
        assert_eq!(layers.collect::<Vec<_>>(), [5, 4, 3, 2, 1, 0]);
        let preferring = |v: &Variant| {
            v.config
                .stages
                .iter()
                .filter(|s| s.kind.learns_preferences())
                .count()
        };
        let stages: Vec<usize> = frozen.iter().map(preferring).collect();
        assert_eq!(stages, [4, 1, 1, 1, 1, 1]);
        let ways = AblationStudy::Negatives.variants(&base).unwrap();
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
        let members = |config: &TrainConfig| -> Vec<String> {
            let rows = AblationStudy::Negatives.variants(config).unwrap();
            let named = |v| stage(v).unwrap().members.join(" ");
            rows.iter().map(named).collect()
        };
        // Only medical knowledge says what the image shows.
        assert_eq!(members(&base), ["", "", "", "", "medical_knowledge"]);
        let conclusion = changed(&base, |stage| stage.members = vec!["conclusion".to_owned()]);
        assert_eq!(members(&conclusion), ["conclusion"; 4]);
        assert_eq!(AblationStudy::Bias.variants(&base).unwrap().len(), 2);
    }

    #[test]
    fn without_preferences_there_is_no_table() {
        let error = AblationStudy::Bias
            .variants(&without(&base()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("hint:"), "{error}");
    }
}
