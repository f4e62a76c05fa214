//! Selection of the files to download from a repository.
//!
//! Repositories often contain the same weights in several formats, and training states. Only one
//! format of the weights and the files that describe the model are downloaded.

/// Selection of files of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFilter {
    /// Names of files that must exist, and patterns with `*` that may match nothing.
    Patterns(Vec<String>),
    /// Files of a checkpoint or panel in the top folder: configuration, tokenizer, and one format
    /// of the weights. Prefers safetensors, then PyTorch, then a single GGUF file.
    Panel,
    /// Files of a vision encoder: configuration, image processor configuration and one weight file.
    /// Prefers the layout of transformers to that of `open_clip`. Selects the same files as
    /// [`Self::Panel`] if the repository is a panel.
    Encoder,
    /// Files of a text encoder: those of [`Self::Panel`] and, if `modules.json` lists modules of
    /// sentence-transformers, the configuration of each module.
    SentenceEncoder,
}

/// A required file that the repository does not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissingFile {
    /// Name of the file, or a pattern.
    pub(super) file: String,
    /// The text after `hint:`.
    pub(super) hint: String,
}

/// Suffixes of files that describe a model.
const DESCRIPTION_SUFFIXES: [&str; 5] = [".json", ".toml", ".model", ".txt", ".jinja"];
/// Prefixes of files that are not downloaded: training states, and `consolidated` weights in the
/// format of Meta and Mistral.
const EXCLUDED_PREFIXES: [&str; 6] =
    ["consolidated", "optimizer", "rng_state", "scheduler", "trainer_state", "training_args"];

impl FileFilter {
    /// Selects from the names of all files of a repository.
    pub(super) fn select(&self, names: &[impl AsRef<str>]) -> Result<Vec<String>, MissingFile> {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let names = names.as_slice();
        match self {
            Self::Patterns(patterns) => select_by_patterns(patterns, names),
            Self::Panel => select_panel(names),
            Self::Encoder if names.contains(&"panel.toml") => select_panel(names),
            Self::Encoder => select_encoder(names),
            Self::SentenceEncoder => select_sentence_encoder(names),
        }
    }
}

fn select_by_patterns(patterns: &[String], names: &[&str]) -> Result<Vec<String>, MissingFile> {
    let missing_file =
        |file: &str| MissingFile { file: file.to_owned(), hint: describe_names(names) };
    let is_exact = |pattern: &&String| !pattern.contains('*');
    if let Some(missing) =
        patterns.iter().filter(is_exact).find(|name| !names.contains(&name.as_str()))
    {
        return Err(missing_file(missing));
    }
    let is_selected = |name: &&&str| patterns.iter().any(|pattern| matches_pattern(pattern, name));
    let chosen: Vec<String> = names.iter().filter(is_selected).map(|n| (*n).to_owned()).collect();
    if chosen.is_empty() {
        return Err(missing_file(&patterns.join(", ")));
    }
    Ok(chosen)
}

fn select_panel(names: &[&str]) -> Result<Vec<String>, MissingFile> {
    let is_top_level = |name: &&&str| !name.contains('/') && !name.starts_with('.');
    let is_excluded = |name: &str| EXCLUDED_PREFIXES.iter().any(|start| name.starts_with(start));
    let with_suffix = |suffix: &str| -> Vec<&str> {
        let matching = names.iter().filter(is_top_level).filter(|name| name.ends_with(suffix));
        matching.copied().filter(|name| !is_excluded(name)).collect()
    };
    let (safetensors, torch, gguf) =
        (with_suffix(".safetensors"), with_suffix(".bin"), with_suffix(".gguf"));
    let weights = match (safetensors.is_empty(), torch.is_empty()) {
        // The projector may be in PyTorch format although the other weights are in safetensors.
        (false, _) => [safetensors, with_suffix("mm_projector.bin")].concat(),
        (true, false) => torch,
        (true, true) => gguf,
    };
    if let [first, second, ..] = weights.as_slice()
        && first.strip_suffix(".gguf").is_some()
    {
        return Err(MissingFile {
            file: "*.safetensors or *.bin, or a single *.gguf".to_owned(),
            hint: format!(
                "the repository has {} .gguf files ({first}, {second}, …); download one of them \
                 and pass its path",
                weights.len()
            ),
        });
    }
    if weights.is_empty() {
        return Err(MissingFile {
            file: "*.safetensors, *.bin or *.gguf".to_owned(),
            hint: describe_names(names),
        });
    }
    let is_description = |name: &&&str| DESCRIPTION_SUFFIXES.iter().any(|end| name.ends_with(end));
    let mut chosen: Vec<&str> =
        names.iter().filter(is_top_level).filter(is_description).copied().collect();
    chosen.retain(|name| !is_excluded(name));
    chosen.extend(weights);
    chosen.extend(select_included_tower(names));
    Ok(chosen.into_iter().map(str::to_owned).collect())
}

/// Selects the files of a vision tower in a folder `vit` of the repository (HuatuoGPT-Vision): its
/// configurations and one weight file.
fn select_included_tower<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let with_suffix = |suffix: &'static str| {
        let in_tower = names.iter().copied().filter(|name| name.starts_with("vit/"));
        in_tower.filter(move |name| name.ends_with(suffix))
    };
    let weights = with_suffix(".safetensors").chain(with_suffix(".bin")).next();
    with_suffix(".json").chain(weights).collect()
}

fn select_sentence_encoder(names: &[&str]) -> Result<Vec<String>, MissingFile> {
    let mut chosen = select_panel(names)?;
    if names.contains(&"modules.json") {
        // Each module has a folder, such as `1_Pooling`. `select_panel` selects those of `vit`.
        let is_module = |name: &&&str| {
            let folder = name.strip_suffix("/config.json");
            folder.is_some_and(|folder| !folder.contains('/') && folder != "vit")
        };
        chosen.extend(names.iter().filter(is_module).map(|name| (*name).to_owned()));
    }
    Ok(chosen)
}

fn select_encoder(names: &[&str]) -> Result<Vec<String>, MissingFile> {
    // Configuration and weight files of each layout, in order of preference.
    const LAYOUTS: [(&str, [&str; 2]); 2] = [
        ("config.json", ["model.safetensors", "pytorch_model.bin"]),
        ("open_clip_config.json", ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"]),
    ];
    let processor_files = ["preprocessor_config.json", "processor_config.json"];
    let exists = |name: &&str| names.contains(name);
    for (config, weights) in LAYOUTS {
        // In the layout of transformers, the image processor has a separate file.
        let is_complete = config != "config.json" || processor_files.iter().any(exists);
        let weights = weights.into_iter().find(exists);
        if let (true, true, Some(weights)) = (exists(&config), is_complete, weights) {
            let chosen = [config].into_iter().chain(processor_files.into_iter().filter(exists));
            let chosen = chosen.chain([weights]).map(str::to_owned);
            return Ok(chosen.collect());
        }
    }
    Err(MissingFile {
        file: "config.json with preprocessor_config.json and model.safetensors or \
               pytorch_model.bin, or open_clip_config.json with its weights"
            .to_owned(),
        hint: describe_names(names),
    })
}

fn describe_names(names: &[&str]) -> String {
    match names {
        [] => "the repository has no files".to_owned(),
        names => {
            let first: Vec<&str> = names.iter().take(8).copied().collect();
            let more = if names.len() > 8 { ", …" } else { "" };
            format!("the repository has {}{more}", first.join(", "))
        }
    }
}

/// Returns true if a name matches a pattern. `*` matches any text, including `/`.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    name.char_indices()
        .map(|(i, _)| i)
        .chain([name.len()])
        .any(|i| name.get(i..).is_some_and(|name| matches_pattern(rest, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("*.json", "config.json", true),
            ("*.json", "a/config.json", true),
            ("*.json", "config.jsonl", false),
            ("model-*-of-*.bin", "model-1-of-2.bin", true),
            ("model-*", "pytorch_model-1", false),
            ("*", "", true),
            ("a", "a", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn panel_filter_selects_the_included_vision_tower() {
        let names = [
            "config.json",
            "model.safetensors",
            "vit/tower/config.json",
            "vit/tower/preprocessor_config.json",
            "vit/tower/pytorch_model.bin",
            "vit/tower/tf_model.h5",
        ];
        let selected = FileFilter::Panel.select(&names).unwrap();
        let expected =
            [names[0], names[1], names[2], names[3], names[4]].map(str::to_owned).to_vec();
        assert_eq!(selected, expected);
    }

    #[test]
    fn panel_filter_selects_one_weight_format() {
        let select = |names: &[&str]| FileFilter::Panel.select(names);
        let all = [
            ".gitattributes",
            "README.md",
            "config.json",
            "flax_model.msgpack",
            "model.safetensors",
            "onnx/model.onnx",
            "pytorch_model.bin",
            "tokenizer.json",
            "training_args.bin",
        ];
        assert_eq!(select(&all).unwrap(), ["config.json", "tokenizer.json", "model.safetensors"]);
        let torch = ["config.json", "mm_projector.bin", "pytorch_model-1.bin", "optimizer.bin"];
        assert_eq!(
            select(&torch).unwrap(),
            ["config.json", "mm_projector.bin", "pytorch_model-1.bin"]
        );
        assert_eq!(select(&["a.gguf"]).unwrap(), ["a.gguf"]);
        let error = select(&["a.gguf", "b.gguf"]).unwrap_err();
        assert!(error.hint.contains("has 2"), "{error:?}");
        assert!(select(&["config.json"]).is_err());
    }

    #[test]
    fn encoder_filter_selects_one_weight_file() {
        let select = |names: &[&str]| FileFilter::Encoder.select(names);
        let both = [
            "README.md",
            "config.json",
            "merges.txt",
            "model.safetensors",
            "open_clip_config.json",
            "open_clip_model.safetensors",
            "preprocessor_config.json",
            "pytorch_model.bin",
        ];
        assert_eq!(
            select(&both).unwrap(),
            ["config.json", "preprocessor_config.json", "model.safetensors"]
        );
        let open_clip = [
            "config.json",
            "open_clip_config.json",
            "open_clip_pytorch_model.bin",
            "tokenizer.json",
        ];
        assert_eq!(
            select(&open_clip).unwrap(),
            ["open_clip_config.json", "open_clip_pytorch_model.bin"]
        );
        let panel = ["panel.toml", "tower.safetensors", "tokenizer.json"];
        assert_eq!(select(&panel).unwrap().len(), 3);
        let error = select(&["config.json", "model.safetensors"]).unwrap_err();
        assert!(error.file.contains("preprocessor_config.json"), "{error:?}");
    }

    #[test]
    fn sentence_encoder_filter_selects_configurations_of_modules() {
        let select = |names: &[&str]| FileFilter::SentenceEncoder.select(names).unwrap();
        let names = [
            "1_Pooling/config.json",
            "config.json",
            "model.safetensors",
            "modules.json",
            "onnx/deep/config.json",
            "onnx/model.onnx",
            "pytorch_model.bin",
        ];
        assert_eq!(
            select(&names),
            ["config.json", "modules.json", "model.safetensors", "1_Pooling/config.json"]
        );
        let plain = ["1_Pooling/config.json", "config.json", "pytorch_model.bin"];
        assert_eq!(select(&plain), ["config.json", "pytorch_model.bin"]);
    }

    #[test]
    fn names_must_exist_and_patterns_may_match_nothing() {
        let select = |names: &[&str]| {
            let names = names.iter().map(|n| (*n).to_owned()).collect();
            FileFilter::Patterns(names).select(&["a.json", "b.bin"])
        };
        assert_eq!(select(&["a.json", "*.gguf"]).unwrap(), ["a.json"]);
        assert_eq!(select(&["c.json", "*"]).unwrap_err().file, "c.json");
        assert!(select(&["*.gguf"]).is_err());
    }
}
