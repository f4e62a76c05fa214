//! Settings that have no effect in a stage, because of its kind or of its file: an error, so that nobody
//! relies on them. Settings that depend on others, such as `padding` on `foreign`, are not checked.

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::stage_config::StageConfig;
use super::stage_kind::StageKind;

/// Groups of settings that have an effect in the same stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SettingGroup {
    /// Sources of examples: all stages that generate them.
    Sources,
    /// Sequences without a case, and findings: alignment and evaluations.
    Sequences,
    /// Answers to questions beside evaluations.
    Answers,
    /// Pairs of responses: evaluations and preferences.
    Pairs,
    /// Pairs and members of a stage that trains all members as one model on evaluations.
    JointPairs,
}

impl SettingGroup {
    /// Returns the group of a key; `None` for other settings.
    fn of(key: &str) -> Option<Self> {
        match key {
            "real" | "data_shares" => Some(Self::Sources),
            "comparing" | "copying" | "invented" | "doubting" => Some(Self::Sequences),
            "answering" => Some(Self::Answers),
            "foreign" | "foreign_phantoms" | "padding" | "varied" | "long" | "unrelated"
            | "other" => Some(Self::Pairs),
            "drilling" | "drilling_images" | "claim_words" | "consistent" | "easy" => {
                Some(Self::JointPairs)
            }
            _ => None,
        }
    }

    /// Returns true if a stage that generates its examples uses the settings.
    fn is_used_by(self, kind: StageKind) -> bool {
        use StageKind::{Align, Encoder, Heads, Mean, Sft};
        match self {
            Self::Sources => kind != Mean,
            Self::Sequences => matches!(kind, Align | Sft | Heads),
            Self::Answers => matches!(kind, Sft | Heads),
            Self::Pairs => !matches!(kind, Encoder | Align | Mean),
            Self::JointPairs => kind == Sft,
        }
    }
}

/// Checks that the settings of generated examples have an effect in a stage, as far as they differ from
/// their defaults.
///
/// # Errors
/// The error names the key.
pub(super) fn check_unused_settings(stage: &StageConfig) -> Result<()> {
    let defaults = json!({ "name": stage.name, "kind": stage.kind });
    for key in changed_keys(stage, defaults)? {
        let Some(group) = SettingGroup::of(&key) else {
            continue;
        };
        let reason = if !group.is_used_by(stage.kind) {
            format!("the stage has kind {}", json!(stage.kind))
        } else if stage.reads_file() {
            "the stage reads its examples from a file".to_owned()
        } else {
            continue;
        };
        bail!("{key} has no effect: {reason}\nhint: remove {key} from this stage");
    }
    Ok(())
}

/// Returns the keys of a stage whose values differ from those of a stage that has only the keys of
/// `other`.
///
/// # Errors
/// The other stage lacks a required key.
pub(super) fn changed_keys(stage: &StageConfig, other: Value) -> Result<Vec<String>> {
    let keys = |stage: &StageConfig| serde_json::to_value(stage).context("cannot write the stage");
    let (found, other) = (keys(stage)?, keys(&serde_json::from_value(other)?)?);
    let differs = |key: &&String| found.get(key.as_str()) != other.get(key.as_str());
    let keys = found.as_object().into_iter().flat_map(|fields| fields.keys());
    Ok(keys.filter(differs).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &str, setting: &str) -> Result<()> {
        let text = format!("name = \"a\"\nkind = {kind:?}\n{setting}");
        check_unused_settings(&toml::from_str(&text).unwrap())
    }

    #[test]
    fn settings_without_effect_are_rejected() {
        for (kind, setting) in [
            ("encoder", "answering = 0.2"),
            ("align", "easy = 0.3"),
            ("align", "foreign = 0.3"),
            ("align", "claim_words = 9"),
            ("heads", "drilling = 0.3"),
            ("dpo", "doubting = 0.5"),
            ("rtdpo", "copying = 0.1"),
            ("sft", "real = 0.5\n[evaluations]\nfile = \"a.jsonl\""),
        ] {
            let error = check(kind, setting).unwrap_err().to_string();
            let key = setting.split(' ').next().unwrap();
            assert!(error.starts_with(&format!("{key} has no effect")), "{kind}: {error}");
        }
    }

    #[test]
    fn every_key_has_a_group_or_is_used_by_all_kinds() {
        let stage: StageConfig = toml::from_str(
            "name = \"a\"\nkind = \"sft\"\ncopying = 0.1\ndrilling_images = 0.1\ninvented = 0.1\n\
             consistent = 0.1\nforeign = 0.1\nforeign_phantoms = 0.1\nvaried = 0.1\nlong = 0.1\n\
             unrelated = 0.1\nother = 0.1\ndata_shares = { slake = 1.0 }",
        )
        .unwrap();
        let fields = serde_json::to_value(&stage).unwrap();
        let fields = fields.as_object().unwrap().keys();
        let other: Vec<&String> = fields.filter(|key| SettingGroup::of(key).is_none()).collect();
        let schedule =
            ["name", "kind", "steps", "batch", "rate", "warmup", "clip", "frozen", "members"];
        assert_eq!(other, schedule);
    }

    #[test]
    fn settings_with_effect_are_accepted() {
        for (kind, setting) in [
            ("encoder", "real = 0.2"),
            ("align", "comparing = 0.3\ndoubting = 0.1"),
            ("sft", "easy = 0.3\ndrilling = 0.1\nconsistent = 0.1"),
            ("heads", "answering = 0.3"),
            ("dpo", "foreign = 0.5\nlong = 0.1"),
            ("sft", "[evaluations]\nfile = \"a.jsonl\""),
        ] {
            assert!(check(kind, setting).is_ok(), "{kind}: {setting}");
        }
    }
}
