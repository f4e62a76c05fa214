//! The files of a repository that a checkpoint is loaded from.
//!
//! Repositories often contain the same weights in several formats, and training states. Only one format
//! of the weights and the files that describe the model are downloaded.

/// Selects files of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFilter {
    /// Names, which must exist, and patterns with `*`, which may match nothing.
    Patterns(Vec<String>),
    /// The files of a checkpoint or panel: configuration, tokenizer, and one format of the weights
    /// (safetensors, else PyTorch, else the only GGUF file), from the top folder.
    Panel,
    /// The files of a vision encoder: its configuration, that of its image processor, and one file of
    /// weights, in the layout of transformers, else of `open_clip`. For a panel, as `Panel`.
    Encoder,
}

/// A file that a filter needs and a repository lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissingFile {
    /// The file, or a pattern for its name.
    pub(super) file: String,
    /// The text after `hint:`.
    pub(super) hint: String,
}

/// Suffixes of the files that describe a model.
const DESCRIPTIONS: [&str; 5] = [".json", ".toml", ".model", ".txt", ".jinja"];
/// Prefixes of training states, and of the weights in their authors' format.
const NOT_WEIGHTS: [&str; 6] = [
    "consolidated",
    "optimizer",
    "rng_state",
    "scheduler",
    "trainer_state",
    "training_args",
];

impl FileFilter {
    /// Selects from all files of a repository.
    pub(super) fn select(&self, names: &[impl AsRef<str>]) -> Result<Vec<String>, MissingFile> {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let names = names.as_slice();
        match self {
            Self::Patterns(patterns) => matching(patterns, names),
            Self::Panel => panel(names),
            Self::Encoder if names.contains(&"panel.toml") => panel(names),
            Self::Encoder => encoder(names),
        }
    }
}

fn matching(patterns: &[String], names: &[&str]) -> Result<Vec<String>, MissingFile> {
    let missing_file = |file: &str| MissingFile {
        file: file.to_owned(),
        hint: listed(names),
    };
    let exact = |pattern: &&String| !pattern.contains('*');
    if let Some(missing) = patterns
        .iter()
        .filter(exact)
        .find(|name| !names.contains(&name.as_str()))
    {
        return Err(missing_file(missing));
    }
    let is_selected = |name: &&&str| patterns.iter().any(|pattern| matches(pattern, name));
    let chosen: Vec<String> = names
        .iter()
        .filter(is_selected)
        .map(|n| (*n).to_owned())
        .collect();
    if chosen.is_empty() {
        return Err(missing_file(&patterns.join(", ")));
    }
    Ok(chosen)
}

fn panel(names: &[&str]) -> Result<Vec<String>, MissingFile> {
    let top = |name: &&&str| !name.contains('/') && !name.starts_with('.');
    let skipped = |name: &str| NOT_WEIGHTS.iter().any(|start| name.starts_with(start));
    let ending = |end: &str| -> Vec<&str> {
        let of = names.iter().filter(top).filter(|name| name.ends_with(end));
        of.copied().filter(|name| !skipped(name)).collect()
    };
    let (safetensors, torch, gguf) = (ending(".safetensors"), ending(".bin"), ending(".gguf"));
    let weights = match (safetensors.is_empty(), torch.is_empty()) {
        // The projector may be in PyTorch format beside safetensors.
        (false, _) => [safetensors, ending("mm_projector.bin")].concat(),
        (true, false) => torch,
        (true, true) => gguf,
    };
    if let [first, second, ..] = weights.as_slice()
        && first.strip_suffix(".gguf").is_some()
    {
        return Err(MissingFile {
            file: "*.gguf that is the only GGUF file".to_owned(),
            hint: format!(
                "the repository has {} ({first}, {second}, …): download one of them, and name its folder",
                weights.len()
            ),
        });
    }
    if weights.is_empty() {
        return Err(MissingFile {
            file: "*.safetensors, *.bin or *.gguf".to_owned(),
            hint: listed(names),
        });
    }
    let described = |name: &&&str| DESCRIPTIONS.iter().any(|end| name.ends_with(end));
    let mut chosen: Vec<&str> = names
        .iter()
        .filter(top)
        .filter(described)
        .copied()
        .collect();
    chosen.retain(|name| !skipped(name));
    chosen.extend(weights);
    Ok(chosen.into_iter().map(str::to_owned).collect())
}

fn encoder(names: &[&str]) -> Result<Vec<String>, MissingFile> {
    // The configuration and the weights of each layout, the preferred file first.
    const LAYOUTS: [(&str, [&str; 2]); 2] = [
        ("config.json", ["model.safetensors", "pytorch_model.bin"]),
        (
            "open_clip_config.json",
            ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"],
        ),
    ];
    let images = ["preprocessor_config.json", "processor_config.json"];
    let exists = |name: &&str| names.contains(name);
    for (config, weights) in LAYOUTS {
        // In the layout of transformers, the image processor has a file of its own.
        let is_complete = config != "config.json" || images.iter().any(exists);
        let weights = weights.into_iter().find(exists);
        if let (true, true, Some(weights)) = (exists(&config), is_complete, weights) {
            let chosen = [config]
                .into_iter()
                .chain(images.into_iter().filter(exists));
            let chosen = chosen.chain([weights]).map(str::to_owned);
            return Ok(chosen.collect());
        }
    }
    Err(MissingFile {
        file: "config.json with preprocessor_config.json and model.safetensors or \
               pytorch_model.bin, or open_clip_config.json with its weights"
            .to_owned(),
        hint: listed(names),
    })
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => "the repository has no files".to_owned(),
        names => {
            let first: Vec<&str> = names.iter().take(8).copied().collect();
            let more = if names.len() > 8 { ", …" } else { "" };
            format!("the repository has {}{more}", first.join(", "))
        }
    }
}

/// True if a name matches a pattern; `*` matches any text, also across `/`.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    name.char_indices()
        .map(|(i, _)| i)
        .chain([name.len()])
        .any(|i| name.get(i..).is_some_and(|name| matches(rest, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, fits) in [
            ("*.json", "config.json", true),
            ("*.json", "a/config.json", true),
            ("*.json", "config.jsonl", false),
            ("model-*-of-*.bin", "model-1-of-2.bin", true),
            ("model-*", "pytorch_model-1", false),
            ("*", "", true),
            ("a", "a", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn a_panel_has_one_format_of_the_weights() {
        let of = |names: &[&str]| FileFilter::Panel.select(names);
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
        assert_eq!(
            of(&all).unwrap(),
            ["config.json", "tokenizer.json", "model.safetensors"]
        );
        let torch = [
            "config.json",
            "mm_projector.bin",
            "pytorch_model-1.bin",
            "optimizer.bin",
        ];
        assert_eq!(
            of(&torch).unwrap(),
            ["config.json", "mm_projector.bin", "pytorch_model-1.bin"]
        );
        assert_eq!(of(&["a.gguf"]).unwrap(), ["a.gguf"]);
        let error = of(&["a.gguf", "b.gguf"]).unwrap_err();
        assert!(error.hint.contains("has 2"), "{error:?}");
        assert!(of(&["config.json"]).is_err());
    }

    #[test]
    fn an_encoder_has_one_file_of_weights() {
        let of = |names: &[&str]| FileFilter::Encoder.select(names);
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
            of(&both).unwrap(),
            [
                "config.json",
                "preprocessor_config.json",
                "model.safetensors"
            ]
        );
        let open_clip = [
            "config.json",
            "open_clip_config.json",
            "open_clip_pytorch_model.bin",
            "tokenizer.json",
        ];
        assert_eq!(
            of(&open_clip).unwrap(),
            ["open_clip_config.json", "open_clip_pytorch_model.bin"]
        );
        let panel = ["panel.toml", "eyes.safetensors", "tokenizer.json"];
        assert_eq!(of(&panel).unwrap().len(), 3);
        let error = of(&["config.json", "model.safetensors"]).unwrap_err();
        assert!(error.file.contains("preprocessor_config.json"), "{error:?}");
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
