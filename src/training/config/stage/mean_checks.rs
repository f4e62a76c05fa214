//! Checks of stages of kind `mean`.

use anyhow::{Result, bail};
use serde_json::json;

use super::stage_config::StageConfig;
use super::stage_kind::StageKind;
use super::unused_settings::changed_keys;

/// Checks that every stage of kind `mean` names an earlier stage and has no keys of a training, and that
/// no other stage names one. `is_decoder_new`: the training starts from random weights, so stages that
/// come before any training of the decoder have none, and cannot be named.
///
/// # Errors
/// Errors name the stage and the key.
pub(crate) fn check_means(stages: &[StageConfig], is_decoder_new: bool) -> Result<()> {
    for (i, stage) in stages.iter().enumerate() {
        let name = &stage.name;
        match (&stage.mean_with, stage.is_mean()) {
            (None, false) => {}
            (Some(_), false) => bail!("stage {name}: mean_with requires kind = \"mean\""),
            (None, true) => bail!(
                "stage {name}: the kind mean requires `mean_with`\n\
                 hint: `mean_with = \"NAME\"` names an earlier stage"
            ),
            (Some(other), true) => {
                let Some(named) = stages[..i].iter().position(|earlier| earlier.name == *other)
                else {
                    bail!("stage {name}: mean_with: no earlier stage has the name {other:?}");
                };
                if is_decoder_new && stages[..=named].iter().all(|s| s.kind == StageKind::Encoder) {
                    bail!(
                        "stage {name}: mean_with: {other} trains the encoder alone, before there is a decoder\n\
                         hint: name a later stage"
                    );
                }
                check_untrained(stage)?;
            }
        }
    }
    Ok(())
}

/// Checks that a stage of means has no other keys than its name, its kind and `mean_with`.
fn check_untrained(stage: &StageConfig) -> Result<()> {
    let allowed = json!({ "name": stage.name, "kind": stage.kind, "mean_with": stage.mean_with });
    match changed_keys(stage, allowed)?.first() {
        Some(key) => bail!(
            "stage {}: the kind mean trains nothing, so {key} has no effect\nhint: remove {key}",
            stage.name
        ),
        None => Ok(()),
    }
}
