//! Fields of a configuration, each consumed once. An unconsumed field is an error unless it is
//! known not to affect the computation.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::support::text::shell_word::quote_shell_word;

/// Fields about training, storage, sampling or videos, which do not affect the computation (transformers'
/// `configuration_utils.py` and its models' configurations, `train.py` of LLaVA and
/// LLaVA-NeXT).
const IGNORED_FIELDS: [&str; 105] = [
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_flash_attn_2_enabled",
    "_name_or_path",
    "add_cross_attention",
    "add_faster_video",
    "add_time_instruction",
    "architectures",
    "attention_dropout",
    "attn_implementation",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "delay_load",
    "diversity_penalty",
    "do_sample",
    "dropout",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "faster_token_stride",
    "finetuning_task",
    "force_sample",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "freeze_mm_mlp_adapter",
    "freeze_mm_vision_resampler",
    "id2label",
    "ignore_index",
    "image_crop_resolution",
    "image_grid_pinpoints",
    "image_seq_length",
    "image_split_resolution",
    "image_token_id",
    "image_token_index",
    "initializer_factor",
    "initializer_range",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "length_penalty",
    "max_length",
    "max_sequence_length",
    "min_length",
    "mm_hidden_size",
    "mm_newline_position",
    "mm_projector_lr",
    "mm_resampler_location",
    "mm_resampler_type",
    "mm_spatial_pool_mode",
    "mm_spatial_pool_out_channels",
    "mm_spatial_pool_stride",
    "mm_tunable_parts",
    "mm_use_im_patch_token",
    "mm_vision_tower_lr",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "pad_token_id",
    "pos_skipping_range",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "projection_dim",
    "pruned_heads",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "tokenizer_model_max_length",
    "tokenizer_padding_side",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "tune_mm_mlp_adapter",
    "tune_mm_vision_resampler",
    "typical_p",
    "unfreeze_mm_vision_tower",
    "use_bfloat16",
    "use_cache",
    "use_mm_proj",
    "use_pos_skipping",
    "video_token_id",
    "video_token_index",
    "vision_tower_pretrained",
];

/// The folder of the checkpoint in [`SERVE_HINT`], which [`with_folder`] replaces.
const FOLDER: &str = "FOLDER";
/// What to do with a checkpoint that acem3 does not compute.
const SERVE_HINT: &str = "hint: if vLLM supports the model, run `vllm serve FOLDER --port 8000` (with \
     --trust-remote-code if config.json has `auto_map`), and judge with --panel \
     http://127.0.0.1:8000/v1 --model FOLDER; SGLang and llama.cpp can serve it in the same way";

/// Returns the error of a checkpoint that acem3 does not compute: what is unsupported, and what computes
/// it. `alternative`: what else the user can do, starting with a verb.
pub(super) fn unsupported(message: &str, alternative: &str) -> anyhow::Error {
    anyhow::anyhow!("{message}\n{SERVE_HINT}\nhint: or {alternative}")
}

/// Names the folder of the checkpoint in the error of [`unsupported`]; other errors stay as they are.
pub(super) fn with_folder(error: anyhow::Error, folder: &Path) -> anyhow::Error {
    let message = error.to_string();
    if !message.contains(SERVE_HINT) {
        return error;
    }
    let folder = quote_shell_word(&folder.display().to_string());
    anyhow::anyhow!(message.replace(SERVE_HINT, &SERVE_HINT.replace(FOLDER, &folder)))
}

/// Returns true if two values are equal. The integer 1 equals the number 1.0.
fn is_equal(found: &Value, expected: &Value) -> bool {
    match (found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected)) => found.total_cmp(&expected).is_eq(),
        _ => found == expected,
    }
}

/// Unconsumed fields of an object, with the path of the object in the file.
pub(crate) struct ConfigFields {
    path: String,
    remaining: Map<String, Value>,
}

impl ConfigFields {
    /// Wraps an object at a path such as `text_config.`; empty for the root.
    pub(crate) fn new(path: &str, fields: Map<String, Value>) -> Self {
        Self { path: path.to_owned(), remaining: fields }
    }

    /// Consumes a field. Returns `None` if it is absent or null.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>> {
        match self.remaining.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let excerpt: String = value.to_string().chars().take(60).collect();
                let value = serde_json::from_value(value);
                value.map(Some).with_context(|| format!("{}{name} is {excerpt}", self.path))
            }
        }
    }

    /// Consumes a field with a default.
    pub(crate) fn take_or<T: DeserializeOwned>(&mut self, name: &str, default: T) -> Result<T> {
        Ok(self.take(name)?.unwrap_or(default))
    }

    /// Consumes a required field.
    pub(crate) fn require<T: DeserializeOwned>(&mut self, name: &str) -> Result<T> {
        let value = self.take(name)?;
        value.with_context(|| format!("{}{name} is missing", self.path))
    }

    /// Returns true if a field exists, null included.
    pub(super) fn has(&self, name: &str) -> bool {
        self.remaining.contains_key(name)
    }

    /// Consumes an object.
    pub(super) fn take_object(&mut self, name: &str) -> Result<Option<Self>> {
        let map = self.take::<Map<String, Value>>(name)?;
        Ok(map.map(|map| Self::new(&format!("{}{name}.", self.path), map)))
    }

    /// Consumes a field. Returns an error if it is set to a value other than `value`.
    pub(crate) fn expect_value(&mut self, name: &str, value: impl Into<Value>) -> Result<()> {
        let value = value.into();
        match self.remaining.remove(name) {
            None | Some(Value::Null) => Ok(()),
            Some(found) if is_equal(&found, &value) => Ok(()),
            Some(found) => {
                let message = format!("{}{name} is {found}, only {value} is supported", self.path);
                Err(unsupported(&message, "use a checkpoint without this feature"))
            }
        }
    }

    /// Returns an error if an unknown field is left that may affect the computation.
    pub(super) fn finish(self, ignored: &[String]) -> Result<()> {
        match self.describe_unknown(ignored) {
            Some(unknown) => bail!(
                "{unknown}\n\
                 hint: if the field does not affect the computation, list it under ignore_config in \
                 a members file"
            ),
            None => Ok(()),
        }
    }

    /// Describes the first unknown field that may affect the computation.
    pub(crate) fn describe_unknown(&self, ignored: &[String]) -> Option<String> {
        let unknown = |(name, value): &(&String, &Value)| {
            !value.is_null()
                && IGNORED_FIELDS.binary_search(&name.as_str()).is_err()
                && !ignored.contains(name)
        };
        let (name, value) = self.remaining.iter().find(unknown)?;
        let excerpt: String = value.to_string().chars().take(60).collect();
        Some(format!("{}{name} is {excerpt}, unknown field", self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_field_is_error_unless_ignored() {
        assert!(IGNORED_FIELDS.is_sorted());
        let map = serde_json::json!({"use_cache": true, "logit_softcap": 30.0, "other": null});
        let fields = || ConfigFields::new("", map.as_object().cloned().unwrap_or_default());
        let error = fields().finish(&[]).unwrap_err().to_string();
        assert!(error.contains("logit_softcap is 30.0"), "{error}");
        assert!(fields().finish(&["logit_softcap".to_owned()]).is_ok());
        let map = serde_json::json!({"partial_rotary_factor": 1, "mlp_bias": true});
        let mut fields = ConfigFields::new("", map.as_object().cloned().unwrap_or_default());
        assert!(fields.expect_value("partial_rotary_factor", 1.0).is_ok());
        let error = fields.expect_value("mlp_bias", false).unwrap_err().to_string();
        assert!(error.contains("vllm serve"), "{error}");
    }
}
