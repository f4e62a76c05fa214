//! The fields of a configuration, each taken once: what is left over is known to change nothing, or
//! is an error.

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Fields that say how a model was trained, saved or sampled from, not what it computes
/// (transformers' `configuration_utils.py` and its models' configurations, LLaVA's `train.py`).
const HARMLESS: [&str; 88] = [
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_flash_attn_2_enabled",
    "_name_or_path",
    "add_cross_attention",
    "architectures",
    "attention_dropout",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dropout",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
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
    "mm_projector_lr",
    "mm_resampler_type",
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
];

/// The fields of one object, and where it stands in the file.
pub(crate) struct ConfigFields {
    place: String,
    left: Map<String, Value>,
}

impl ConfigFields {
    /// The fields of an object at a place such as `text_config.`, or at the top.
    pub(crate) fn new(place: &str, left: Map<String, Value>) -> Self {
        Self {
            place: place.to_owned(),
            left,
        }
    }

    /// Takes a field. One that is absent or null is `None`.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>> {
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let shown: String = value.to_string().chars().take(60).collect();
                let value = serde_json::from_value(value);
                value
                    .map(Some)
                    .with_context(|| format!("{}{name} is {shown}", self.place))
            }
        }
    }

    /// Takes a field that has a default.
    pub(crate) fn or<T: DeserializeOwned>(&mut self, name: &str, default: T) -> Result<T> {
        Ok(self.take(name)?.unwrap_or(default))
    }

    /// Takes a field that has to be there.
    pub(crate) fn need<T: DeserializeOwned>(&mut self, name: &str) -> Result<T> {
        let value = self.take(name)?;
        value.with_context(|| format!("{}{name} is missing", self.place))
    }

    /// Whether a field is there, null or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }

    /// Takes an object.
    pub(super) fn object(&mut self, name: &str) -> Result<Option<Self>> {
        let map = self.take::<Map<String, Value>>(name)?;
        Ok(map.map(|map| Self::new(&format!("{}{name}.", self.place), map)))
    }

    /// Takes a field that may only have this value, or be absent.
    pub(crate) fn only(&mut self, name: &str, value: impl Into<Value>) -> Result<()> {
        let value = value.into();
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(()),
            Some(got) if got == value => Ok(()),
            Some(got) => bail!(
                "{}{name} is {got}, only {value} is supported\n\
                 hint: this checkpoint computes something that this program does not",
                self.place
            ),
        }
    }

    /// An error when anything is left that might change what is computed.
    pub(super) fn finish(self, ignored: &[String]) -> Result<()> {
        match self.unknown(ignored) {
            Some(unknown) => bail!(
                "{unknown}\n\
                 hint: if it changes nothing that is computed, list it under ignore_config in \
                 a panel's file"
            ),
            None => Ok(()),
        }
    }

    /// What is said of the first field left that might change what is computed.
    pub(crate) fn unknown(&self, ignored: &[String]) -> Option<String> {
        let unknown = |(name, value): &(&String, &Value)| {
            !value.is_null()
                && HARMLESS.binary_search(&name.as_str()).is_err()
                && !ignored.contains(name)
        };
        let (name, value) = self.left.iter().find(unknown)?;
        let shown: String = value.to_string().chars().take(60).collect();
        Some(format!(
            "{}{name} is {shown}, and this program does not know what it means",
            self.place
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_an_error_unless_it_is_ignored() {
        assert!(HARMLESS.is_sorted());
        let map = serde_json::json!({"use_cache": true, "logit_softcap": 30.0, "other": null});
        let fields = || ConfigFields::new("", map.as_object().cloned().unwrap_or_default());
        let error = fields().finish(&[]).unwrap_err().to_string();
        assert!(error.contains("logit_softcap is 30.0"), "{error}");
        assert!(fields().finish(&["logit_softcap".to_owned()]).is_ok());
    }
}
