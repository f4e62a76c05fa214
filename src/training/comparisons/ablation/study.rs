//! Variants of an ablation study: a base configuration and copies with one setting changed.

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::Serialize;

use super::evaluation_variants::add_evaluation_variants;
use super::preference_variants::{
    with_frozen_layers, with_negatives, with_preferences, without_preference_stages,
    without_reward_tokens,
};
use super::variants::{StudyInputs, StudyVariants, Variant};
use crate::training::config::stage::mean_checks::check_means;
use crate::training::{Negative, StageConfig, TrainConfig};

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
    /// Own wrong evaluations with and without consistency; changed correct ones; without preference
    /// data
    Own,
    /// Full training on evaluations; without knowledge completion; without curriculum; without
    /// knowledge introspection
    #[value(name = "automedeval")]
    #[serde(rename = "automedeval")]
    AutoMedEval,
}

impl AblationStudy {
    /// Returns the variants of a configuration.
    ///
    /// # Errors
    /// If the configuration has no stage of the kind that the study varies, an input has no effect in
    /// this study, or a file cannot be read or does not state the negatives that the study varies.
    pub fn variants(self, base: &TrainConfig, inputs: StudyInputs<'_>) -> Result<StudyVariants> {
        let mut study = StudyVariants::default();
        if self != Self::AutoMedEval {
            check_preference_study(base, inputs)?;
        }
        match self {
            Self::AutoMedEval => {
                add_evaluation_variants(&mut study, base, inputs)?;
                // Its full training may have other evaluations than that of another study.
                for variant in &mut study.variants {
                    variant.folder = format!("automedeval-{}", variant.folder);
                }
            }
            Self::Ablation => {
                study.push("full", base.clone());
                let no_token = "no reward token";
                if base.stages.iter().any(StageConfig::trains_reward_tokens) {
                    study.push(no_token, without_reward_tokens(base));
                } else {
                    study.skip(no_token, "no stage trains with reward tokens");
                }
                study.push("no preference data", without_preference_stages(base));
                study.push("no frozen layers", with_frozen_layers(base, 0));
            }
            Self::Bias => {
                study.push("with preference data", base.clone());
                study.push("without", without_preference_stages(base));
            }
            Self::Frozen => {
                for layers in (0..base.model.decoder.num_hidden_layers).rev() {
                    let name = format!("{layers} layers frozen");
                    study.push(&name, with_frozen_layers(base, layers));
                }
            }
            Self::Negatives => add_negatives(&mut study, base)?,
            Self::Own => add_own_evaluations(&mut study, base)?,
        }
        for Variant { name, config, .. } in &study.variants {
            check_means(&config.stages, config.start.is_none())
                .with_context(|| format!("the variant \"{name}\" is not possible"))?;
        }
        Ok(study)
    }
}

/// Checks the inputs of a study that varies the training on preferences.
fn check_preference_study(base: &TrainConfig, inputs: StudyInputs<'_>) -> Result<()> {
    if inputs.introspection.is_some() {
        bail!(
            "--introspection has an effect only with --study automedeval\n\
             hint: remove it, or choose that study"
        );
    }
    if !base.stages.iter().any(|stage| stage.kind.learns_preferences()) {
        bail!(
            "the configuration has no preference stage, expected at least one to vary\n\
             hint: add a stage of kind \"rtdpo\" with [stages.preferences]"
        );
    }
    Ok(())
}

/// Adds the kinds of rejected evaluations: own ones with and without consistency, and changed ones.
fn add_own_evaluations(study: &mut StudyVariants, base: &TrainConfig) -> Result<()> {
    let preferences = || base.stages.iter().filter_map(|stage| stage.preferences.as_ref());
    if !preferences().any(|preferences| preferences.rejects_own) {
        bail!(
            "no preference stage rejects evaluations of the panel itself, expected one to vary\n\
             hint: add `own = true` to [stages.preferences]"
        );
    }
    if preferences().any(|preferences| preferences.consistency > 0.0) {
        study.push("own evaluations and consistency", base.clone());
    } else {
        study.skip("own evaluations and consistency", "no stage sets `consistency`");
    }
    study.push(
        "own evaluations",
        with_preferences(base, |preferences| preferences.consistency = 0.0),
    );
    let changed = with_preferences(base, |preferences| {
        (preferences.consistency, preferences.rejects_own) = (0.0, false);
    });
    study.push("changed evaluations", changed);
    study.push("no preference data", without_preference_stages(base));
    Ok(())
}

/// Adds all negatives together, and each alone.
fn add_negatives(study: &mut StudyVariants, base: &TrainConfig) -> Result<()> {
    let rejects_own = |stage: &StageConfig| {
        stage.preferences.as_ref().is_some_and(|preferences| preferences.rejects_own)
    };
    if base.stages.iter().filter(|stage| stage.kind.learns_preferences()).all(rejects_own) {
        bail!(
            "every preference stage rejects evaluations of the panel itself, so there are no negatives to vary\n\
             hint: remove `own` from [stages.preferences], or choose --study own"
        );
    }
    let single = Negative::ALL.map(|negative| (negative.name(), vec![negative]));
    for (name, negatives) in
        [("all ways".to_owned(), Negative::ALL.to_vec())].into_iter().chain(single)
    {
        match with_negatives(base, &negatives)? {
            Some(config) => study.push(&name, config),
            None => {
                study.skip(&name, "it applies to no member, or the file has too few such pairs");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::preference_variants::map_preference_stages;
    use super::*;
    use crate::checkpoints::panel::prompt_config::MEMBERS;
    use crate::support::terminal::interrupt::Interrupt;
    use crate::training::preferences::{
        PreferenceFolderConfig, read_preferences, write_phantom_preferences,
    };
    use crate::training::{RewardTokens, StageKind};

    fn base() -> TrainConfig {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/assets/recipes/mini_with_preferences.toml");
        TrainConfig::read(path.as_ref()).unwrap()
    }

    /// The preference stage of a variant, if it has one.
    fn stage(variant: &Variant) -> Option<&StageConfig> {
        variant.config.stages.iter().find(|s| s.kind.learns_preferences())
    }

    #[test]
    fn every_variant_changes_one_setting() {
        let base = base();
        let variants =
            AblationStudy::Ablation.variants(&base, StudyInputs::default()).unwrap().variants;
        let names: Vec<&str> = variants.iter().map(|v| v.folder.as_str()).collect();
        let expected = ["full", "no-reward-token", "no-preference-data", "no-frozen-layers"];
        assert_eq!(names, expected);
        let [full, token, data, layers] = [0, 1, 2, 3].map(|i| stage(&variants[i]));
        assert_eq!(full.unwrap().kind, StageKind::Rtdpo);
        assert_eq!(token.unwrap().kind, StageKind::Dpo);
        assert!(data.is_none() && variants[2].config.stages.len() + 1 == base.stages.len());
        assert_eq!(layers.unwrap().frozen_layers, Some(0));
        assert_eq!(variants[3].config.trunk_layers, 0);
        let frozen =
            AblationStudy::Frozen.variants(&base, StudyInputs::default()).unwrap().variants;
        let layers = frozen.iter().map(|v| stage(v).unwrap().frozen_layers.unwrap());
        assert_eq!(layers.collect::<Vec<_>>(), [5, 4, 3, 2, 1, 0]);
        let preference_stages =
            |v: &Variant| v.config.stages.iter().filter(|s| s.kind.learns_preferences()).count();
        let stages: Vec<usize> = frozen.iter().map(preference_stages).collect();
        assert_eq!(stages, [4, 1, 1, 1, 1, 1]);
        let variants =
            AblationStudy::Negatives.variants(&base, StudyInputs::default()).unwrap().variants;
        let negatives = variants
            .iter()
            .map(|v| stage(v).unwrap().preferences.as_ref().unwrap().negatives.len());
        assert_eq!(negatives.collect::<Vec<_>>(), [4, 1, 1, 1, 1]);
        let members = |config: &TrainConfig| -> Vec<String> {
            let variants =
                AblationStudy::Negatives.variants(config, StudyInputs::default()).unwrap().variants;
            let member_names = |v| stage(v).unwrap().members.join(" ");
            variants.iter().map(member_names).collect()
        };
        // Only the medical knowledge expert describes the image.
        assert_eq!(members(&base), ["", "", "", "", "medical_knowledge"]);
        let conclusion =
            map_preference_stages(&base, |stage| stage.members = vec!["conclusion".to_owned()]);
        assert_eq!(members(&conclusion), ["conclusion"; 4]);
        assert_eq!(
            AblationStudy::Bias.variants(&base, StudyInputs::default()).unwrap().variants.len(),
            2
        );
    }

    /// The variants of a configuration whose pairs come from a file.
    #[test]
    fn stages_with_a_file_are_varied() {
        let dir = tempfile::tempdir().unwrap();
        let folder = PreferenceFolderConfig {
            reward_tokens: Some(RewardTokens::default()),
            ..PreferenceFolderConfig::of_phantoms(dir.path().join("pairs"), 12)
        };
        write_phantom_preferences(&folder, &Interrupt::default()).unwrap();
        let file = folder.out.join("preferences.jsonl");
        let base = map_preference_stages(&base(), |stage| {
            let preferences = stage.preferences.as_mut().unwrap();
            (preferences.cases, preferences.file) = (0, Some(file.clone()));
        });
        let variants =
            AblationStudy::Ablation.variants(&base, StudyInputs::default()).unwrap().variants;
        let without_token = stage(&variants[1]).unwrap();
        assert_eq!(without_token.kind, StageKind::Dpo);
        assert!(without_token.strips_reward_tokens);
        // No stage of the variant trains with a token, also none on generated evaluations.
        let config = &variants[1].config;
        assert!(!config.stages.iter().any(StageConfig::trains_reward_tokens));
        let StudyVariants { variants, notes } =
            AblationStudy::Negatives.variants(&base, StudyInputs::default()).unwrap();
        let names: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names[0], "all ways");
        // Every other negative has a row, or a note about its pairs.
        assert_eq!(names.len() + notes.len(), 5, "{notes:?}");
        let members = stage(&variants[1]).unwrap().member_indices();
        assert!(!members.is_empty() && members.len() <= MEMBERS.len());
        // Lines without names cannot be selected.
        assert!(read_preferences(&file).unwrap().items.iter().all(|p| p.negatives.is_some()));
        let text = std::fs::read_to_string(&file).unwrap().replace("\"negatives\"", "\"of\"");
        std::fs::write(&file, text).unwrap();
        let error = format!(
            "{:#}",
            AblationStudy::Negatives.variants(&base, StudyInputs::default()).unwrap_err()
        );
        assert!(error.contains("line 1 has no `negatives`"), "{error}");
    }

    #[test]
    fn own_evaluations_are_compared_with_changed_ones() {
        let variants =
            |base: &TrainConfig| AblationStudy::Own.variants(base, StudyInputs::default());
        assert!(format!("{:#}", variants(&base()).unwrap_err()).contains("own = true"));
        let own = with_preferences(&base(), |preferences| {
            (preferences.rejects_own, preferences.consistency) = (true, 0.5);
        });
        let negatives = AblationStudy::Negatives.variants(&own, StudyInputs::default());
        assert!(format!("{:#}", negatives.unwrap_err()).contains("--study own"));
        let compared = variants(&own).unwrap().variants;
        let settings = compared.iter().map(|variant| {
            let preferences = stage(variant)?.preferences.as_ref()?;
            Some((preferences.rejects_own, preferences.consistency > 0.0))
        });
        let settings: Vec<_> = settings.collect();
        assert_eq!(settings, [Some((true, true)), Some((true, false)), Some((false, false)), None]);
        let plain = with_preferences(&own, |preferences| preferences.consistency = 0.0);
        let StudyVariants { variants, notes } = variants(&plain).unwrap();
        assert_eq!((variants.len(), notes.len()), (3, 1));
    }

    #[test]
    fn means_with_a_varied_stage_name_the_stage_in_its_place() {
        let mean = |name: &str| {
            let stage = json!({ "name": "mean", "kind": "mean", "mean_with": name });
            serde_json::from_value::<StageConfig>(stage).unwrap()
        };
        let mean_after = |name: &str| {
            let mut base = base();
            base.stages.push(mean(name));
            base
        };
        let named = |study: AblationStudy, base: &TrainConfig| -> Vec<String> {
            let variants = study.variants(base, StudyInputs::default()).unwrap().variants;
            variants
                .iter()
                .map(|v| v.config.stages.last().unwrap().mean_with.clone().unwrap())
                .collect()
        };
        let frozen = named(AblationStudy::Frozen, &mean_after("prefer"));
        assert_eq!(frozen[0], "prefer-conclusion");
        assert!(frozen[1..].iter().all(|name| name == "prefer"), "{frozen:?}");
        assert_eq!(named(AblationStudy::Bias, &mean_after("prefer")), ["prefer", "merging"]);
        assert_eq!(named(AblationStudy::Bias, &mean_after("settle")), ["settle"; 2]);
        // Without the stage, no stage is left that the mean could name.
        let mut first = mean_after("prefer");
        first.stages.retain(|stage| ["prefer", "mean"].contains(&stage.name.as_str()));
        let error = AblationStudy::Bias.variants(&first, StudyInputs::default()).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("\"without\"") && error.contains("no earlier stage"), "{error}");
    }

    #[test]
    fn configuration_without_preferences_is_rejected() {
        let error = AblationStudy::Bias
            .variants(&without_preference_stages(&base()), StudyInputs::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("hint:"), "{error}");
    }
}
