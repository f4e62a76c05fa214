//! Which files of a repository are wanted.
//!
//! Repositories hold the same weights in several forms, and states of their training; a panel needs
//! one form and what describes it.

/// Which files to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Names, which must be there, and patterns with `*`, which may match nothing.
    Files(Vec<String>),
    /// What a checkpoint or panel is loaded from: configuration, tokenizer, and one form of the
    /// weights (safetensors, else PyTorch's, else the one GGUF file), from the top folder.
    Panel,
    /// What a vision encoder is loaded from: its configuration, that of its images, and one file of
    /// weights, in the form of transformers, else of `open_clip`; of a panel all that a panel needs.
    Encoder,
}

/// What is missing of what was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unmet {
    /// The file, or what its name should be like.
    pub(super) file: String,
    /// What to do.
    pub(super) hint: String,
}

/// Endings of the files that describe a model.
const DESCRIPTIONS: [&str; 5] = [".json", ".toml", ".model", ".txt", ".jinja"];
/// States of a training, which no inference needs; and the weights again, in their authors' form.
const NOT_WEIGHTS: [&str; 6] = [
    "consolidated",
    "optimizer",
    "rng_state",
    "scheduler",
    "trainer_state",
    "training_args",
];

impl Wanted {
    /// The files to have of those there are.
    pub(super) fn choose(&self, names: &[&str]) -> Result<Vec<String>, Unmet> {
        match self {
            Self::Files(patterns) => files(patterns, names),
            Self::Panel => panel(names),
            Self::Encoder if names.contains(&"panel.toml") => panel(names),
            Self::Encoder => encoder(names),
        }
    }
}

fn files(patterns: &[String], names: &[&str]) -> Result<Vec<String>, Unmet> {
    let unmet = |file: &str| Unmet {
        file: file.to_owned(),
        hint: there_are(names),
    };
    let exact = |pattern: &&String| !pattern.contains('*');
    if let Some(missing) = patterns
        .iter()
        .filter(exact)
        .find(|name| !names.contains(&name.as_str()))
    {
        return Err(unmet(missing));
    }
    let wanted = |name: &&&str| patterns.iter().any(|pattern| matches(pattern, name));
    let chosen: Vec<String> = names
        .iter()
        .filter(wanted)
        .map(|n| (*n).to_owned())
        .collect();
    if chosen.is_empty() {
        return Err(unmet(&patterns.join(", ")));
    }
    Ok(chosen)
}

fn panel(names: &[&str]) -> Result<Vec<String>, Unmet> {
    let top = |name: &&&str| !name.contains('/') && !name.starts_with('.');
    let skipped = |name: &str| NOT_WEIGHTS.iter().any(|start| name.starts_with(start));
    let ending = |end: &str| -> Vec<&str> {
        let of = names.iter().filter(top).filter(|name| name.ends_with(end));
        of.copied().filter(|name| !skipped(name)).collect()
    };
    let (safetensors, torch, gguf) = (ending(".safetensors"), ending(".bin"), ending(".gguf"));
    let weights = match (safetensors.is_empty(), torch.is_empty()) {
        // A projector may be in PyTorch's form beside weights that are not.
        (false, _) => [safetensors, ending("mm_projector.bin")].concat(),
        (true, false) => torch,
        (true, true) => gguf,
    };
    if let [first, second, ..] = weights.as_slice()
        && first.strip_suffix(".gguf").is_some()
    {
        return Err(Unmet {
            file: "*.gguf that is the only one".to_owned(),
            hint: format!(
                "it holds {} ({first}, {second}, …): download the one you mean, and name the folder it is in",
                weights.len()
            ),
        });
    }
    if weights.is_empty() {
        return Err(Unmet {
            file: "*.safetensors, *.bin or *.gguf".to_owned(),
            hint: there_are(names),
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

fn encoder(names: &[&str]) -> Result<Vec<String>, Unmet> {
    // The configuration and the weights of each form, the better file first.
    const FORMS: [(&str, [&str; 2]); 2] = [
        ("config.json", ["model.safetensors", "pytorch_model.bin"]),
        (
            "open_clip_config.json",
            ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"],
        ),
    ];
    let images = ["preprocessor_config.json", "processor_config.json"];
    let there = |name: &&str| names.contains(name);
    for (config, weights) in FORMS {
        // What transformers reads alone says how images are prepared in a file of its own.
        let whole = config != "config.json" || images.iter().any(there);
        let weights = weights.into_iter().find(there);
        if let (true, true, Some(weights)) = (there(&config), whole, weights) {
            let chosen = [config].into_iter().chain(images.into_iter().filter(there));
            let chosen = chosen.chain([weights]).map(str::to_owned);
            return Ok(chosen.collect());
        }
    }
    Err(Unmet {
        file: "config.json with preprocessor_config.json and model.safetensors or \
               pytorch_model.bin, or open_clip_config.json with its weights"
            .to_owned(),
        hint: there_are(names),
    })
}

fn there_are(names: &[&str]) -> String {
    match names {
        [] => "there is no file in it".to_owned(),
        names => {
            let first: Vec<&str> = names.iter().take(8).copied().collect();
            let more = if names.len() > 8 { ", …" } else { "" };
            format!("there are {}{more}", first.join(", "))
        }
    }
}

/// Whether a name fits a pattern, in which `*` stands for any text, `/` among it.
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
    fn a_panel_takes_one_form_of_the_weights() {
        let of = |names: &[&str]| Wanted::Panel.choose(names);
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
        assert!(error.hint.contains("holds 2"), "{error:?}");
        assert!(of(&["config.json"]).is_err());
    }

    #[test]
    fn an_encoder_takes_one_file_of_weights() {
        let of = |names: &[&str]| Wanted::Encoder.choose(names);
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
    fn a_name_must_be_there_and_a_pattern_may_match_nothing() {
        let wanted = |names: &[&str]| {
            let names = names.iter().map(|n| (*n).to_owned()).collect();
            Wanted::Files(names).choose(&["a.json", "b.bin"])
        };
        assert_eq!(wanted(&["a.json", "*.gguf"]).unwrap(), ["a.json"]);
        assert_eq!(wanted(&["c.json", "*"]).unwrap_err().file, "c.json");
        assert!(wanted(&["*.gguf"]).is_err());
    }
}
