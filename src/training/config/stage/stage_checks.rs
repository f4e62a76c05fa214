//! Checks of a stage's configuration.

use acem3_experts::ModelConfig;
use acem3_experts::decoder::DecoderConfig;
use anyhow::{Context as _, Result, anyhow, bail};

use super::frozen_part::FrozenPart;
use super::stage_config::StageConfig;
use super::stage_kind::StageKind;
use super::unused_settings::check_unused_settings;
use crate::training::config::judging_config::JudgingConfig;
use crate::training::config::validation_indices::VALIDATION_START;

/// Maximum batch size. All examples of a step are in memory at the same time.
const MAX_BATCH: usize = 1 << 16;
/// Maximum number of sentences about something else in a response.
const MAX_PADDING: usize = 1000;

/// Checks that a stage can run on a decoder of this shape.
///
/// # Errors
/// Errors name the key and the expected value.
pub(crate) fn check_stage(stage: &StageConfig, model: &ModelConfig) -> Result<()> {
    if stage.is_mean() {
        return Ok(());
    }
    let decoder = &model.decoder;
    check_numbers(stage)?;
    check_members(stage)?;
    let layers = decoder.num_hidden_layers;
    if let Some(frozen) = stage.frozen_layers
        && frozen >= layers
    {
        bail!("frozen_layers is {frozen}, expected fewer than the decoder's {layers} layers");
    }
    check_evaluations(stage, layers)?;
    check_stripped_tokens(stage)?;
    check_lora(stage, decoder)?;
    check_preferences(stage)?;
    check_unused_settings(stage)
}

/// Checks that a stage trains on a file if there are no generated examples for it: they are pairs of
/// responses about images, by the rubric of ACE-M³.
///
/// # Errors
/// The stage has no file.
pub(crate) fn check_examples(
    stage: &StageConfig,
    model: &ModelConfig,
    judging: &JudgingConfig,
) -> Result<()> {
    if stage.reads_file() || stage.is_mean() {
        return Ok(());
    }
    if !judging.takes_generated_examples() {
        let trains_image_parts = matches!(stage.kind, StageKind::Encoder | StageKind::Align);
        if trains_image_parts && !model.is_text_only() {
            return Ok(());
        }
        bail!(
            "the stage generates pairs of the rubric ace_m3, and [judging] has another rubric or form\n\
             hint: set `file` in [stages.evaluations] (kinds sft and heads) or [stages.preferences] \
             (kinds dpo, rtdpo and adto)"
        );
    }
    if !model.is_text_only() {
        return Ok(());
    }
    bail!(
        "the stage generates examples about images, and the model is a text model\n\
         hint: set `file` in [stages.evaluations] (kinds sft and heads) or [stages.preferences] \
         (kinds dpo, rtdpo and adto), or start from a model with a vision tower"
    )
}

fn check_numbers(stage: &StageConfig) -> Result<()> {
    for (key, value) in [
        ("batch", stage.batch as f64),
        ("steps", stage.steps as f64),
        ("rate", stage.learning_rate),
        ("clip", stage.clip_norm),
    ] {
        if !(value.is_finite() && value > 0.0) {
            // `clip` has a default, the others have none.
            let missing = if value == 0.0 && key != "clip" { " or missing" } else { "" };
            bail!("{key} is {value}{missing}, expected a positive number");
        }
    }
    if stage.batch > MAX_BATCH {
        bail!("batch is {}, expected at most {MAX_BATCH}", stage.batch);
    }
    let examples = stage.steps.checked_mul(stage.batch as u64);
    if examples.is_none_or(|n| n > VALIDATION_START) {
        bail!(
            "steps is {}: with a batch of {} the stage has more than {VALIDATION_START} examples, expected fewer",
            stage.steps,
            stage.batch
        );
    }
    for (key, value) in [
        ("real", stage.data_set_proportion),
        ("answering", stage.answer_proportion),
        ("comparing", stage.comparison_proportion),
        ("copying", stage.copying_proportion),
        ("drilling", stage.quoting_proportion),
        ("drilling_images", stage.quoting_image_proportion),
        ("invented", stage.invented_proportion),
        ("consistent", stage.consistency_proportion),
        ("doubting", stage.wrong_finding_proportion),
        ("easy", stage.easy_proportion),
        ("foreign", stage.foreign_proportion),
        ("foreign_phantoms", stage.foreign_phantom_proportion.unwrap_or_default()),
        ("long", stage.long_answer_proportion),
        ("unrelated", stage.unrelated_answer_proportion),
        ("other", stage.other_answer_proportion),
        ("varied", stage.varied_proportion),
    ] {
        if !(0.0..=1.0).contains(&value) {
            bail!("{key} is {value}, expected a proportion from 0 to 1");
        }
    }
    if stage.max_claim_words == 0 {
        bail!("claim_words is 0, expected at least one word");
    }
    if !(1..=MAX_PADDING).contains(&stage.max_padding) {
        bail!("padding is {}, expected 1 to {MAX_PADDING} sentences", stage.max_padding);
    }
    Ok(())
}

fn check_members(stage: &StageConfig) -> Result<()> {
    for name in &stage.members {
        stage.member_names.index(name).context("members")?;
    }
    if let Some(from) = &stage.from {
        stage.member_names.index(from).context("from")?;
        if stage.is_per_member() {
            bail!(
                "from: the stage trains members separately, expected one that trains all as one model"
            );
        }
    }
    let trains_heads = stage.kind == StageKind::Heads || stage.kind.learns_preferences();
    if !trains_heads && !stage.members.is_empty() {
        bail!("members: a stage that trains all members as one model must not name members");
    }
    Ok(())
}

fn check_evaluations(stage: &StageConfig, decoder_layers: usize) -> Result<()> {
    let trains_evaluations = matches!(stage.kind, StageKind::Sft | StageKind::Heads);
    if stage.evaluations.is_some() && !trains_evaluations {
        bail!("[stages.evaluations] requires a stage of kind \"sft\" or \"heads\"");
    }
    let is_cached = stage.evaluations.as_ref().is_some_and(|e| e.cache_dtype.is_some());
    if is_cached && stage.frozen_part(decoder_layers) == FrozenPart::Nothing {
        bail!(
            "[stages.evaluations]: store caches the activations of frozen layers, but the vision tower is not frozen\n\
             hint: `frozen_layers = N` freezes N layers of the decoder and everything before them; or remove store"
        );
    }
    if stage.has_reward_token && !trains_evaluations {
        bail!(
            "rewarded requires a stage of kind \"sft\" or \"heads\"\n\
             hint: remove it; kinds \"rtdpo\" and \"adto\" always have reward tokens"
        );
    }
    Ok(())
}

fn check_stripped_tokens(stage: &StageConfig) -> Result<()> {
    if stage.strips_reward_tokens && stage.trains_reward_tokens() {
        bail!(
            "strip_tokens removes the reward tokens that the stage trains with\n\
             hint: remove it, or use kind \"dpo\" without `rewarded`"
        );
    }
    if stage.strips_reward_tokens && !stage.reads_file() {
        bail!(
            "strip_tokens removes reward tokens from a file, and the stage generates its examples\n\
             hint: remove it"
        );
    }
    Ok(())
}

fn check_lora(stage: &StageConfig, decoder: &DecoderConfig) -> Result<()> {
    let Some(lora) = &stage.lora else {
        return Ok(());
    };
    if stage.kind == StageKind::Encoder {
        bail!(
            "[stages.lora] adapts the decoder, which a stage of kind \"encoder\" does not train\n\
             hint: remove the table from this stage"
        );
    }
    lora.check(decoder, &stage.frozen_prefixes())
        .map_err(|problem| anyhow!("[stages.lora]: {problem}"))
}

fn check_preferences(stage: &StageConfig) -> Result<()> {
    match (&stage.preferences, stage.kind.learns_preferences()) {
        (Some(preferences), true) => {
            preferences.check()?;
            let members = stage.member_indices();
            preferences.check_negatives(members.into_iter().map(|i| stage.member_names.get(i)))
        }
        (None, false) => Ok(()),
        (None, true) => bail!(
            "a preference stage requires the table [stages.preferences]\n\
             hint: add it with `cases = 1000`"
        ),
        (Some(_), false) => {
            bail!("[stages.preferences] requires a stage of kind \"rtdpo\", \"adto\" or \"dpo\"")
        }
    }
}
