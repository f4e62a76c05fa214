//! Configurations with one setting of the preference stages changed.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};

use crate::training::config::stage::preference_config::PreferenceConfig;
use crate::training::examples::validation_split::SplitItems;
use crate::training::preferences::{read_preferences, select_negatives};
use crate::training::{Negative, StageConfig, StageKind, TrainConfig};

/// Returns the configuration without reward tokens, in preference stages and in evaluations. Files
/// keep their tokens, which their stages remove.
pub(super) fn without_reward_tokens(base: &TrainConfig) -> TrainConfig {
    let mut config = base.clone();
    for stage in config.stages.iter_mut().filter(|stage| stage.trains_reward_tokens()) {
        stage.strips_reward_tokens = stage.reads_file();
        stage.has_reward_token = false;
        if stage.kind.learns_preferences() {
            stage.kind = StageKind::Dpo;
        }
    }
    config
}

/// Returns the configuration with `change` applied to every preference stage.
pub(super) fn map_preference_stages(
    base: &TrainConfig,
    change: impl Fn(&mut StageConfig),
) -> TrainConfig {
    let mut config = base.clone();
    let stages = config.stages.iter_mut();
    stages.filter(|stage| stage.kind.learns_preferences()).for_each(change);
    config
}

/// Returns the configuration with `change` applied to the table of every preference stage.
pub(super) fn with_preferences(
    base: &TrainConfig,
    change: impl Fn(&mut PreferenceConfig),
) -> TrainConfig {
    map_preference_stages(base, |stage| stage.preferences.iter_mut().for_each(&change))
}

/// Returns the configuration without preference stages.
pub(super) fn without_preference_stages(base: &TrainConfig) -> TrainConfig {
    replace_stages(base.clone(), |stage| {
        if stage.kind.learns_preferences() { Vec::new() } else { vec![stage] }
    })
}

/// Replaces each stage by any number of stages. A stage of kind `mean` that names a replaced stage then names
/// the last of these, or the stage before them if there are none.
fn replace_stages(
    mut config: TrainConfig,
    replace: impl Fn(StageConfig) -> Vec<StageConfig>,
) -> TrainConfig {
    let mut last_names: HashMap<String, String> = HashMap::new();
    let mut stages: Vec<StageConfig> = Vec::new();
    for mut stage in config.stages {
        if let Some(named) = &mut stage.mean_with
            && let Some(last) = last_names.get(named)
        {
            named.clone_from(last);
        }
        let name = stage.name.clone();
        stages.extend(replace(stage));
        if let Some(last) = stages.last() {
            last_names.insert(name, last.name.clone());
        }
    }
    config.stages = stages;
    config
}

/// Returns the configuration with the lowest `layers` layers frozen.
///
/// The vision tower, the projector and the embedding are frozen too, even if `layers` is 0, so
/// variants differ only in the number of frozen layers. Members have different layers above the
/// trunk. If some of those layers are frozen, their activations differ between members, so each
/// member gets its own stage.
pub(super) fn with_frozen_layers(base: &TrainConfig, layers: usize) -> TrainConfig {
    let mut config = map_preference_stages(base, |stage| stage.frozen_layers = Some(layers));
    if layers > config.trunk_layers {
        config = replace_stages(config, per_member);
    }
    config.trunk_layers = config.trunk_layers.min(layers);
    config
}

/// Splits a preference stage into one per member. Returns other stages unchanged.
fn per_member(stage: StageConfig) -> Vec<StageConfig> {
    if !stage.kind.learns_preferences() || !stage.is_per_member() {
        return vec![stage];
    }
    let members = stage.member_indices().into_iter().map(|member| stage.member_names.get(member));
    let stages = members.map(|member| StageConfig {
        name: format!("{}-{member}", stage.name),
        members: vec![member.to_owned()],
        ..stage.clone()
    });
    stages.collect()
}

/// Returns the configuration with only these types of rejected evaluations. Members that none of
/// the types applies to, or that have too few such pairs in a file, are not trained. Returns `None`
/// if no member would be trained.
pub(super) fn with_negatives(
    base: &TrainConfig,
    negatives: &[Negative],
) -> Result<Option<TrainConfig>> {
    let mut config = base.clone();
    for stage in config.stages.iter_mut().filter(|stage| stage.kind.learns_preferences()) {
        let trained = stage.member_indices();
        let file = stage.preferences.as_ref().and_then(|preferences| preferences.file.as_ref());
        let affected = if let Some(file) = file {
            members_with_pairs(file, negatives, stage)?
        } else {
            let applies = |member: &usize| {
                negatives
                    .iter()
                    .any(|negative| negative.applies_to(stage.member_names.get(*member)))
            };
            trained.iter().copied().filter(applies).collect()
        };
        if affected.is_empty() {
            return Ok(None);
        }
        if affected != trained {
            let names =
                affected.into_iter().map(|member| stage.member_names.get(member).to_owned());
            stage.members = names.collect();
        }
        if let Some(preferences) = &mut stage.preferences {
            preferences.negatives = negatives.to_vec();
        }
    }
    Ok(Some(config))
}

/// Returns the members with at least one training and one validation pair of these negatives in a
/// file.
fn members_with_pairs(
    file: &Path,
    negatives: &[Negative],
    stage: &StageConfig,
) -> Result<Vec<usize>> {
    let names = stage.member_names;
    let location = || file.display().to_string();
    let pairs = read_preferences(file)?.items;
    // All names are required, also by the variant with all negatives.
    for pair in &pairs {
        pair.is_of_negatives(negatives).with_context(location)?;
    }
    let pairs = select_negatives(pairs, negatives).with_context(location)?;
    let split = SplitItems::by_group(pairs, |pair| names.index(pair.member.as_deref()?).ok());
    let (training, validation) = split.items.split_at(split.training_count);
    let has_pairs = |member: &usize| {
        [training, validation]
            .iter()
            .all(|pairs| pairs.iter().any(|pair| pair.is_for(names.get(*member))))
    };
    Ok(stage.member_indices().into_iter().filter(has_pairs).collect())
}
