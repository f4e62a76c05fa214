//! Module files of sentence-transformers: how the states of the tokens of a text become its
//! embedding.

use std::path::{Component, Path};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::pooling::PoolingMode;
use crate::support::files::regular_file;

/// Name of the list of modules.
pub(super) const MODULES_FILE: &str = "modules.json";
/// Name of the file with the input limit.
const LIMIT_FILE: &str = "sentence_bert_config.json";
/// Maximum size of a file, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Minimum number of tokens of a text: one between the start and end tokens.
const MIN_TOKENS: u64 = 3;
/// Poolings by their names in old files, in the order in which they are concatenated
/// (sentence-transformers' `pooling.py`).
const OLD_NAMES: [(&str, &str); 6] = [
    ("pooling_mode_cls_token", "cls"),
    ("pooling_mode_max_tokens", "max"),
    ("pooling_mode_mean_tokens", "mean"),
    ("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"),
    ("pooling_mode_weightedmean_tokens", "weightedmean"),
    ("pooling_mode_lasttoken", "lasttoken"),
];

/// Modules after the encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentenceModules {
    /// Poolings, which are concatenated.
    pub(super) modes: Vec<PoolingMode>,
    /// Width of the states that the pooling expects, if the file has it.
    pub(super) width: Option<usize>,
    /// True if embeddings are scaled to length one.
    pub(super) is_normalized: bool,
}

/// Limits of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InputLimits {
    /// Maximum number of tokens, start and end tokens included.
    pub(super) max_tokens: Option<usize>,
    /// True if texts are converted to lower case before the tokenizer.
    pub(super) is_lower_case: bool,
}

/// An entry of `modules.json`.
#[derive(Deserialize)]
struct ModuleEntry {
    path: String,
    #[serde(rename = "type")]
    class: String,
}

impl SentenceModules {
    /// Reads the modules of a folder; `None` if it has no `modules.json`.
    ///
    /// # Errors
    /// If a file is malformed, or a module or pooling is not supported. Errors name the file.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(MODULES_FILE);
        if !path.is_file() {
            return Ok(None);
        }
        let file = || path.display().to_string();
        let entries: Vec<ModuleEntry> = read_limited(&path).with_context(file)?;
        // The class has different packages in different versions.
        let class = |entry: &ModuleEntry| entry.class.rsplit('.').next().unwrap_or("").to_owned();
        let classes: Vec<String> = entries.iter().map(class).collect();
        let is_normalized = match classes.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["Transformer", "Pooling"] => false,
            ["Transformer", "Pooling", "Normalize"] => true,
            _ => bail!(
                "{}: modules {}, expected Transformer, Pooling and optionally Normalize\n\
                 hint: use a sentence encoder without other modules",
                file(),
                classes.join(", ")
            ),
        };
        let [encoder, pooling, ..] = entries.as_slice() else {
            bail!("{}: no modules", file());
        };
        ensure!(
            encoder.path.is_empty(),
            "{}: the encoder is in `{}`, expected in the top folder\n\
             hint: save the encoder again with a current version of sentence-transformers",
            file(),
            encoder.path
        );
        let pooling_folder = Path::new(&pooling.path);
        let mut parts = pooling_folder.components();
        ensure!(
            matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)),
            "{}: pooling path `{}`, expected the name of a folder",
            file(),
            pooling.path
        );
        let config = folder.join(pooling_folder).join("config.json");
        let fields = read_limited(&config).and_then(|fields| parse_pooling(&fields));
        let (modes, width) = fields.with_context(|| config.display().to_string())?;
        Ok(Some(Self { modes, width, is_normalized }))
    }
}

impl InputLimits {
    /// Reads the limits of a folder. Without a file there are none beyond those of the model.
    ///
    /// # Errors
    /// If the file is malformed. Errors name the file.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(LIMIT_FILE);
        if !path.is_file() {
            return Ok(Self::default());
        }
        let parse = |fields: Map<String, Value>| {
            let max_tokens = match fields.get("max_seq_length") {
                None | Some(Value::Null) => None,
                Some(value) => {
                    let limit = value.as_u64().filter(|limit| *limit >= MIN_TOKENS);
                    let limit = limit.with_context(|| {
                        format!("max_seq_length: expected at least {MIN_TOKENS}, found {value}")
                    })?;
                    Some(usize::try_from(limit).unwrap_or(usize::MAX))
                }
            };
            let is_lower_case = fields.get("do_lower_case").and_then(Value::as_bool);
            Ok(Self { max_tokens, is_lower_case: is_lower_case.unwrap_or(false) })
        };
        read_limited(&path).and_then(parse).with_context(|| path.display().to_string())
    }
}

/// Returns the poolings and the width of the states.
fn parse_pooling(fields: &Map<String, Value>) -> Result<(Vec<PoolingMode>, Option<usize>)> {
    let is_set = |name: &str| fields.get(name).and_then(Value::as_bool).unwrap_or(false);
    let names: Vec<String> = match fields.get("pooling_mode") {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(names)) => {
            let name = |name: &Value| name.as_str().map_or_else(|| name.to_string(), str::to_owned);
            names.iter().map(name).collect()
        }
        Some(other) => bail!("pooling_mode: expected a name or a list of names, found {other}"),
        None => {
            let active = OLD_NAMES.iter().filter(|(old, _)| is_set(old));
            active.map(|(_, name)| (*name).to_owned()).collect()
        }
    };
    let modes = names.iter().map(|name| PoolingMode::parse(name)).collect::<Result<Vec<_>>>()?;
    ensure!(modes.len() <= OLD_NAMES.len(), "{} poolings", modes.len());
    let mut names = ["embedding_dimension", "word_embedding_dimension"].iter();
    let width = names.find_map(|name| fields.get(*name)?.as_u64());
    // The default of sentence-transformers.
    let modes = if modes.is_empty() { vec![PoolingMode::Mean] } else { modes };
    Ok((modes, width.map(|width| usize::try_from(width).unwrap_or(usize::MAX))))
}

/// Reads a JSON file of limited size.
fn read_limited<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let hint = "hint: download all files of the encoder again, including those in subfolders";
    let metadata = std::fs::metadata(path);
    let size = metadata.with_context(|| format!("cannot be read\n{hint}"))?.len();
    ensure!(size <= MAX_BYTES, "{size} bytes, expected at most {MAX_BYTES}\n{hint}");
    let bytes = regular_file::read(path).with_context(|| format!("cannot be read\n{hint}"))?;
    serde_json::from_slice(&bytes).with_context(|| format!("malformed\n{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(modules: &Value, pooling: &Value) -> Result<Option<SentenceModules>> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join(MODULES_FILE), modules.to_string())?;
        std::fs::create_dir(folder.path().join("1_Pooling"))?;
        std::fs::write(folder.path().join("1_Pooling/config.json"), pooling.to_string())?;
        SentenceModules::read(folder.path())
    }

    fn entries(classes: &[(&str, &str)]) -> Value {
        let entry = |(path, class): &(&str, &str)| json!({"path": path, "type": format!("sentence_transformers.models.{class}")});
        classes.iter().map(entry).collect()
    }

    #[test]
    fn old_and_new_files_are_read() {
        let plain = entries(&[("", "Transformer"), ("1_Pooling", "Pooling")]);
        let old = json!({"word_embedding_dimension": 8, "pooling_mode_mean_tokens": true,
            "pooling_mode_cls_token": true, "pooling_mode_max_tokens": false});
        let modules = read(&plain, &old).unwrap().unwrap();
        assert_eq!(modules.modes, [PoolingMode::Cls, PoolingMode::Mean]);
        assert_eq!((modules.width, modules.is_normalized), (Some(8), false));
        let normalized =
            entries(&[("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]);
        let new = json!({"embedding_dimension": 8, "pooling_mode": "max"});
        let modules = read(&normalized, &new).unwrap().unwrap();
        assert_eq!((modules.modes, modules.is_normalized), (vec![PoolingMode::Max], true));
        assert_eq!(read(&plain, &json!({})).unwrap().unwrap().modes, [PoolingMode::Mean]);
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(SentenceModules::read(empty.path()).unwrap(), None);
        assert_eq!(InputLimits::read(empty.path()).unwrap(), InputLimits::default());
    }

    #[test]
    fn unsupported_and_hostile_files_are_named() {
        let error =
            |modules: &Value, pooling: &Value| format!("{:#}", read(modules, pooling).unwrap_err());
        let plain = entries(&[("", "Transformer"), ("1_Pooling", "Pooling")]);
        let dense = entries(&[("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense")]);
        let message = error(&dense, &json!({}));
        assert!(message.contains("modules.json: modules Transformer, Pooling, Dense"), "{message}");
        for path in ["../1_Pooling", "/etc", "", "1_Pooling/.."] {
            let modules = entries(&[("", "Transformer"), (path, "Pooling")]);
            assert!(
                error(&modules, &json!({})).contains("expected the name of a folder"),
                "{path}"
            );
        }
        let nested = entries(&[("0_Transformer", "Transformer"), ("1_Pooling", "Pooling")]);
        assert!(error(&nested, &json!({})).contains("the encoder is in `0_Transformer`"));
        for pooling in
            [json!({"pooling_mode": "lasttoken"}), json!({"pooling_mode_lasttoken": true})]
        {
            let message = error(&plain, &pooling);
            assert!(message.contains("1_Pooling/config.json: pooling `lasttoken`"), "{message}");
        }
        assert!(error(&plain, &json!({"pooling_mode": 3})).contains("expected a name"));
        assert!(error(&plain, &json!([])).contains("1_Pooling/config.json: malformed"));
        assert!(error(&json!({}), &json!({})).contains("modules.json: malformed"));
        let missing = entries(&[("", "Transformer"), ("9_Pooling", "Pooling")]);
        assert!(error(&missing, &json!({})).contains("hint: download all files"));
        let folder = tempfile::tempdir().unwrap();
        for limit in ["0", "2", "-1", "\"many\""] {
            let text = format!("{{\"max_seq_length\": {limit}}}");
            std::fs::write(folder.path().join(LIMIT_FILE), text).unwrap();
            let error = format!("{:#}", InputLimits::read(folder.path()).unwrap_err());
            assert!(error.contains("sentence_bert_config.json: max_seq_length"), "{error}");
        }
    }
}
