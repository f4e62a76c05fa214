//! `adapter_config.json`: ranks, factors, and the features that change the computation.

use std::path::Path;

use anyhow::{Context, Result, bail};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::checkpoints::published::config_json::{ADAPTER_CONFIG_FILE, read_json};

/// What to do with an adapter that acem3 does not compute.
const MERGE_HINT: &str = "hint: merge the adapter into its base with peft (`merge_and_unload`, then \
                          `save_pretrained` of model and tokenizer), and use the merged model";
/// Maximum number of entries of `rank_pattern` and of `alpha_pattern`.
const MAX_PATTERNS: usize = 4096;
/// Maximum size of a compiled pattern in bytes.
const MAX_PATTERN_SIZE: usize = 1 << 20;

/// Fields of features that acem3 does not compute.
const REFUSED_FIELDS: [&str; 12] = [
    "alora_invocation_tokens",
    "arrow_config",
    "fan_in_fan_out",
    "kasa_config",
    "layer_replication",
    "lora_bias",
    "monteclora_config",
    "target_parameters",
    "trainable_token_indices",
    "use_bdlora",
    "use_dora",
    "use_qalora",
];

/// Fields about the base, fields that only affect the training, and fields whose effect the names of the
/// tensors show.
const IGNORED_FIELDS: [&str; 22] = [
    "auto_mapping",
    "base_model_name_or_path",
    "corda_config",
    "ensure_weight_tying",
    "eva_config",
    "exclude_modules",
    "inference_mode",
    "layers_pattern",
    "layers_to_transform",
    "loftq_config",
    "lora_dropout",
    "lora_ga_config",
    "megatron_config",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "target_modules",
    "target_parameters_to_tie",
    "task_type",
    "velora_config",
];

/// Values of `init_lora_weights` that leave the base as it is.
const PLAIN_INITS: [&str; 4] = ["gaussian", "eva", "orthogonal", "mica"];

/// Fields of the file.
#[derive(Deserialize)]
struct AdapterFields {
    peft_type: Option<String>,
    #[serde(default = "default_rank")]
    r: usize,
    #[serde(default = "default_alpha")]
    lora_alpha: f64,
    use_rslora: Option<bool>,
    rank_pattern: Option<Map<String, Value>>,
    alpha_pattern: Option<Map<String, Value>>,
    bias: Option<Value>,
    init_lora_weights: Option<Value>,
    modules_to_save: Option<Vec<String>>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

fn default_rank() -> usize {
    8
}

fn default_alpha() -> f64 {
    8.0
}

/// Settings of an adapter.
pub(super) struct AdapterConfig {
    /// Modules whose weights the file of the adapter must replace.
    pub(super) replaced_modules: Vec<String>,
    rank: usize,
    alpha: f64,
    /// True to divide `alpha` by the root of the rank.
    is_rank_stabilised: bool,
    rank_pattern: Vec<(Regex, f64)>,
    alpha_pattern: Vec<(Regex, f64)>,
}

impl AdapterConfig {
    /// Reads the file of a folder. `ignored`: unknown fields that do not affect the computation.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the adapter has a feature that acem3 does not compute. The message
    /// names the file.
    pub(super) fn read(folder: &Path, ignored: &[String]) -> Result<Self> {
        let path = folder.join(ADAPTER_CONFIG_FILE);
        let config = read_json(&path).and_then(|map| Self::parse(map, ignored));
        config.with_context(|| path.display().to_string())
    }

    fn parse(map: Map<String, Value>, ignored: &[String]) -> Result<Self> {
        let fields: AdapterFields =
            serde_json::from_value(Value::Object(map)).context("not an adapter configuration")?;
        let kind = fields.peft_type.as_deref().unwrap_or("missing");
        if kind != "LORA" {
            bail!("peft_type is {kind}, only LORA is supported\n{MERGE_HINT}");
        }
        if let Some(bias) = fields.bias.filter(|bias| !bias.is_null() && bias != "none") {
            bail!("bias is {bias}, only \"none\" is supported\n{MERGE_HINT}");
        }
        check_initialisation(fields.init_lora_weights.as_ref())?;
        check_others(&fields.others, ignored)?;
        if fields.r == 0 || !fields.lora_alpha.is_finite() {
            bail!(
                "r is {} and lora_alpha {}, expected a positive rank and a finite number",
                fields.r,
                fields.lora_alpha
            );
        }
        Ok(Self {
            replaced_modules: fields.modules_to_save.unwrap_or_default(),
            rank: fields.r,
            alpha: fields.lora_alpha,
            is_rank_stabilised: fields.use_rslora.unwrap_or(false),
            rank_pattern: parse_pattern("rank_pattern", fields.rank_pattern)?,
            alpha_pattern: parse_pattern("alpha_pattern", fields.alpha_pattern)?,
        })
    }

    /// Returns the rank of the adapter of a module.
    pub(super) fn rank(&self, module: &str) -> usize {
        first_match(&self.rank_pattern, module).map_or(self.rank, |rank| rank as usize)
    }

    /// Returns the `alpha` that, divided by the rank, is the factor of `B · A` of a module: that of the
    /// file, or with `use_rslora` the one that gives `lora_alpha / √r`.
    pub(super) fn alpha(&self, module: &str) -> f64 {
        let alpha = first_match(&self.alpha_pattern, module).unwrap_or(self.alpha);
        if self.is_rank_stabilised { alpha * (self.rank(module) as f64).sqrt() } else { alpha }
    }
}

/// Checks that no feature is on that acem3 does not compute.
fn check_others(fields: &Map<String, Value>, ignored: &[String]) -> Result<()> {
    for (name, value) in fields.iter().filter(|(_, value)| is_active(value)) {
        let excerpt: String = value.to_string().chars().take(60).collect();
        if REFUSED_FIELDS.contains(&name.as_str()) {
            bail!("{name} is {excerpt}, which is not supported\n{MERGE_HINT}");
        }
        if !IGNORED_FIELDS.contains(&name.as_str()) && !ignored.contains(name) {
            bail!(
                "{name} is {excerpt}, unknown field\n{MERGE_HINT}; if the field does not affect the \
                 computation, list it under ignore_config in a panel file"
            );
        }
    }
    Ok(())
}

/// Returns true unless a value means that a feature is off.
fn is_active(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// Checks that the initialisation did not change the weights of the base.
fn check_initialisation(value: Option<&Value>) -> Result<()> {
    let name = match value {
        None | Some(Value::Null | Value::Bool(_)) => return Ok(()),
        Some(value) => value.as_str().unwrap_or_default().to_lowercase(),
    };
    if PLAIN_INITS.contains(&name.as_str()) {
        return Ok(());
    }
    bail!(
        "init_lora_weights is {}: peft changed the weights of the base when it made the adapter, so \
         the published base is another one\n\
         hint: save the adapter again with `path_initial_model_for_weight_conversion` of peft's \
         `save_pretrained`, or merge it (`merge_and_unload`) and use the merged model",
        value.unwrap_or(&Value::Null)
    )
}

/// Parses a map from patterns of module names to numbers. A pattern matches the end of a name, after a
/// dot or at its start (`get_pattern_key` in peft's `utils/other.py`).
fn parse_pattern(name: &str, map: Option<Map<String, Value>>) -> Result<Vec<(Regex, f64)>> {
    let map = map.unwrap_or_default();
    if map.len() > MAX_PATTERNS {
        bail!("{name} has {} entries, expected at most {MAX_PATTERNS}", map.len());
    }
    let patterns = map.into_iter().map(|(key, value)| {
        let pattern = format!(r"^(?:.*\.)?(?:{key})$");
        let regex = RegexBuilder::new(&pattern).size_limit(MAX_PATTERN_SIZE).build();
        let regex = regex.with_context(|| format!("{name}: {key:?} is not a pattern"))?;
        let number = value.as_f64().filter(|number| {
            number.is_finite() && (name != "rank_pattern" || value.as_u64().is_some_and(|r| r > 0))
        });
        let number = number.with_context(|| format!("{name}: {key:?} is {value}"))?;
        Ok((regex, number))
    });
    patterns.collect()
}

/// Returns the number of the first pattern that matches, in the order of the file.
fn first_match(patterns: &[(Regex, f64)], module: &str) -> Option<f64> {
    patterns.iter().find(|(regex, _)| regex.is_match(module)).map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;

    fn parse(config: &Value) -> Result<AdapterConfig> {
        let ignored = ["harmless".to_owned()];
        AdapterConfig::parse(config.as_object().cloned().unwrap_or_default(), &ignored)
    }

    #[test]
    fn patterns_select_rank_and_alpha_as_in_peft() {
        let config = parse(&json!({
            "peft_type": "LORA", "r": 4, "lora_alpha": 8, "use_rslora": true,
            "rank_pattern": {r"layers\.0\.self_attn\.q_proj": 16, "q_proj": 9},
            "alpha_pattern": {"^model.layers.1.mlp.up_proj": 3},
        }));
        let config = config.unwrap();
        let rank = |module: &str| config.rank(module);
        assert_eq!(rank("model.layers.0.self_attn.q_proj"), 16);
        assert_eq!(rank("model.layers.10.self_attn.q_proj"), 9);
        assert_eq!(rank("model.layers.0.self_attn.fq_proj"), 4);
        assert!((config.alpha("model.layers.2.mlp.up_proj") - 16.0).abs() < 1e-12);
        assert!((config.alpha("model.layers.1.mlp.up_proj") - 6.0).abs() < 1e-12);
        assert!((config.alpha("model.layers.1.self_attn.q_proj") - 24.0).abs() < 1e-12);
    }

    #[test]
    fn other_features_are_refused() {
        assert!(IGNORED_FIELDS.is_sorted() && REFUSED_FIELDS.is_sorted());
        let plain = json!({"peft_type": "LORA", "use_dora": false, "loftq_config": {}, "bias": "none", "harmless": 1});
        assert!(parse(&plain).is_ok());
        for (name, value) in [
            ("use_dora", json!(true)),
            ("fan_in_fan_out", json!(true)),
            ("lora_bias", json!(true)),
            ("bias", json!("all")),
            ("peft_type", json!("IA3")),
            ("peft_type", json!(null)),
            ("init_lora_weights", json!("pissa_niter_16")),
            ("init_lora_weights", json!("loftq")),
            ("trainable_token_indices", json!([1, 2])),
            ("layer_replication", json!([[0, 4], [2, 5]])),
            ("target_parameters", json!(["experts.down_proj"])),
            ("feature_of_tomorrow", json!({"factor": 2})),
            ("r", json!(0)),
            ("lora_alpha", json!(null)),
            ("rank_pattern", json!({"q_proj": 0})),
            ("rank_pattern", json!({"q_(proj": 2})),
            ("alpha_pattern", json!({"q_proj": "8"})),
        ] {
            let mut config = plain.clone();
            config[name] = value;
            let error = format!("{:#}", parse(&config).err().unwrap());
            assert!(error.contains(name) || name == "lora_alpha", "{error}");
        }
    }
}
