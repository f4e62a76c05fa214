//! Variants of an ablation study: a base configuration and copies with one setting changed.

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::Serialize;

use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::training::Negative;
use crate::training::{StageConfig, StageKind, TrainConfig};

/// Set of variants to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum AblationStudy {
    /// Full training; without reward tokens; without preference data; without frozen layers
    Ablation,
    /// Every number of frozen layers
    Frozen,
    /// Every type of rejected evaluation alone, and all together
    Negatives,
    /// With and without preference data
    Bias,
}

/// A named configuration of the study.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Name of the variant in tables.
    pub name: String,
    /// Name of the folder.
    pub folder: String,
    /// Training configuration.
    pub config: TrainConfig,
}

impl AblationStudy {
    /// Returns the variants of a configuration. The first is the baseline.
    ///
    /// # Errors
    /// If the configuration has no preference stage.
    pub fn variants(self, base: &TrainConfig) -> Result<Vec<Variant>> {
        if !base.stages.iter().any(|stage| stage.kind.learns_preferences()) {
            bail!(
                "the configuration has no preference stage, expected at least one to vary\n\
                 hint: add a stage of kind \"rtdpo\" with [stages.preferences]"
            );
        }
        let from_file =
            |stage: &StageConfig| stage.preferences.as_ref().is_some_and(|p| p.file.is_some());
        if matches!(self, Self::Ablation | Self::Negatives) && base.stages.iter().any(from_file) {
            bail!(
                "[stages.preferences] `file` fixes the rejected evaluations and reward tokens, so they cannot be varied\n\
                 hint: remove `file` from [stages.preferences], or pass --study frozen or bias"
            );
        }
        let variants: Vec<(String, TrainConfig)> = match self {
            Self::Ablation => vec![
                ("full".to_owned(), base.clone()),
                (
                    "no reward token".to_owned(),
                    map_preference_stages(base, |stage| stage.kind = StageKind::Dpo),
                ),
                ("no preference data".to_owned(), without_preference_stages(base)),
                ("no frozen layers".to_owned(), with_frozen_layers(base, 0)),
            ],
            Self::Bias => vec![
                ("with preference data".to_owned(), base.clone()),
                ("without".to_owned(), without_preference_stages(base)),
            ],
            Self::Frozen => (0..base.model.decoder.num_hidden_layers)
                .rev()
                .map(|layers| (format!("{layers} layers frozen"), with_frozen_layers(base, layers)))
                .collect(),
            Self::Negatives => {
                let variant =
                    |name, negatives: &[_]| Some((name, with_negatives(base, negatives)?));
                let single = Negative::ALL.map(|negative| variant(negative.name(), &[negative]));
                let all = variant("all ways".to_owned(), &Negative::ALL);
                [all].into_iter().chain(single).flatten().collect()
            }
        };
        Ok(variants
            .into_iter()
            .map(|(name, config)| Variant { folder: name.replace(' ', "-"), name, config })
            .collect())
    }
}

/// Returns the configuration with `change` applied to every preference stage.
fn map_preference_stages(base: &TrainConfig, change: impl Fn(&mut StageConfig)) -> TrainConfig {
    let mut config = base.clone();
    let stages = config.stages.iter_mut();
    stages.filter(|stage| stage.kind.learns_preferences()).for_each(change);
    config
}

/// Returns the configuration without preference stages.
fn without_preference_stages(base: &TrainConfig) -> TrainConfig {
    let mut config = base.clone();
    config.stages.retain(|stage| !stage.kind.learns_preferences());
    config
}

/// Returns the configuration with the lowest `layers` layers frozen.
///
/// The vision tower, the projector and the embedding are frozen too, even if `layers` is 0, so
/// variants differ only in the number of frozen layers. Members have different layers above the
/// trunk. If some of those layers are frozen, their activations differ between members, so each
/// member gets its own stage.
fn with_frozen_layers(base: &TrainConfig, layers: usize) -> TrainConfig {
    let mut config = map_preference_stages(base, |stage| stage.frozen_layers = Some(layers));
    if layers > config.trunk_layers {
        config.stages = config.stages.into_iter().flat_map(per_member).collect();
    }
    config.trunk_layers = config.trunk_layers.min(layers);
    config
}

/// Splits a preference stage into one per member. Returns other stages unchanged.
fn per_member(stage: StageConfig) -> Vec<StageConfig> {
    if !stage.kind.learns_preferences() || !stage.is_per_member() {
        return vec![stage];
    }
    let members = stage.member_indices().into_iter().map(|member| MEMBERS[member]);
    let stages = members.map(|member| StageConfig {
        name: format!("{}-{member}", stage.name),
        members: vec![member.to_owned()],
        ..stage.clone()
    });
    stages.collect()
}

/// Returns the configuration with only these types of rejected evaluations. Members that none of
/// the types applies to are not trained. Returns `None` if no member would be trained.
fn with_negatives(base: &TrainConfig, negatives: &[Negative]) -> Option<TrainConfig> {
    let mut config = base.clone();
    for stage in config.stages.iter_mut().filter(|stage| stage.kind.learns_preferences()) {
        let trained = stage.member_indices();
        let applies = |member: &&usize| {
            let name = MEMBERS[**member];
            negatives.iter().any(|negative| negative.applies_to(name))
        };
        let affected: Vec<usize> = trained.iter().filter(applies).copied().collect();
        if affected.is_empty() {
            return None;
        }
        if affected != trained {
            let names = affected.into_iter().map(|member| MEMBERS[member].to_owned());
            stage.members = names.collect();
        }
        if let Some(preferences) = &mut stage.preferences {
            preferences.negatives = negatives.to_vec();
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

    /// The preference stage of a variant, if it has one.
    fn stage(variant: &Variant) -> Option<&StageConfig> {
        variant.config.stages.iter().find(|s| s.kind.learns_preferences())
    }

    #[test]
    fn every_variant_changes_one_setting() {
        let base = base();
        let variants = AblationStudy::Ablation.variants(&base).unwrap();
        let names: Vec<&str> = variants.iter().map(|v| v.folder.as_str()).collect();
        let expected = ["full", "no-reward-token", "no-preference-data", "no-frozen-layers"];
        assert_eq!(names, expected);
        let [full, token, data, layers] = [0, 1, 2, 3].map(|i| stage(&variants[i]));
        assert_eq!(full.unwrap().kind, StageKind::Rtdpo);
        assert_eq!(token.unwrap().kind, StageKind::Dpo);
        assert!(data.is_none() && variants[2].config.stages.len() + 1 == base.stages.len());
        assert_eq!(layers.unwrap().frozen_layers, Some(0));
        assert_eq!(variants[3].config.trunk_layers, 0);
        let frozen = AblationStudy::Frozen.variants(&base).unwrap();
        let layers = frozen.iter().map(|v| stage(v).unwrap().frozen_layers.unwrap());
        assert_eq!(layers.collect::<Vec<_>>(), [5, 4, 3, 2, 1, 0]);
        let preference_stages =
            |v: &Variant| v.config.stages.iter().filter(|s| s.kind.learns_preferences()).count();
        let stages: Vec<usize> = frozen.iter().map(preference_stages).collect();
        assert_eq!(stages, [4, 1, 1, 1, 1, 1]);
        let variants = AblationStudy::Negatives.variants(&base).unwrap();
        let negatives = variants
            .iter()
            .map(|v| stage(v).unwrap().preferences.as_ref().unwrap().negatives.len());
        assert_eq!(negatives.collect::<Vec<_>>(), [4, 1, 1, 1, 1]);
        let members = |config: &TrainConfig| -> Vec<String> {
            let variants = AblationStudy::Negatives.variants(config).unwrap();
            let member_names = |v| stage(v).unwrap().members.join(" ");
            variants.iter().map(member_names).collect()
        };
        // Only the medical knowledge expert describes the image.
        assert_eq!(members(&base), ["", "", "", "", "medical_knowledge"]);
        let conclusion =
            map_preference_stages(&base, |stage| stage.members = vec!["conclusion".to_owned()]);
        assert_eq!(members(&conclusion), ["conclusion"; 4]);
        assert_eq!(AblationStudy::Bias.variants(&base).unwrap().len(), 2);
    }

    #[test]
    fn configuration_without_preferences_is_rejected() {
        let error = AblationStudy::Bias
            .variants(&without_preference_stages(&base()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("hint:"), "{error}");
    }
}
