//! Writes the files of the cases: random weights, a tokenizer, images and prompts.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use acem3_conclusion::prompt_source;
use acem3_experts::generate::GenerationTask;
use acem3_experts::prompt::{EvaluationFormat, FormatStep, PromptForm, PromptToken, TokenStep};
use acem3_experts::{Aspect, Criterion};
use acem3_vision::published::encoder_by_name;
use acem3_vision::{PublishedEncoder, VisionConfig};
use anyhow::{Context as _, Result};
use candle::{DType, Device, Tensor};
use regex::Regex;
use serde_json::{Value, json};

use super::prompts::{BenchCase, LAYOUT, Prompts};
use super::{TRUNK_LAYERS, WRITTEN_TOKENS};
use crate::model_files::{HIDDEN, LAYERS, VOCABULARY, published_config, random_part};
use crate::test_images;

/// Number of cases.
const CASES: usize = 4;
/// Number of members.
pub(super) const MEMBERS: usize = 4;
/// Words of each answer.
const ANSWER_WORDS: usize = 40;
/// Stands for the image in the list of tokens for transformers. `-2 - i` stands for a token of the
/// text of expert `i`.
const IMAGE_TOKEN: i64 = -1;
/// Words of questions and answers.
const WORDS: &str = "the left right lung shows a small round opacity near hilum without pleural \
    effusion heart size is normal there no fracture of rib mass in upper lobe likely benign";

/// Returns the vision tower.
pub(crate) fn encoder() -> Result<PublishedEncoder> {
    let mut encoder =
        encoder_by_name("clip-vit-l14-336").context("unknown encoder")?.published_encoder();
    encoder.config.variant.post_norm = false;
    Ok(encoder)
}

/// Writes all files to a folder, unless they are there.
pub(super) fn write(folder: &Path) -> Result<()> {
    let last = folder.join("prompts.json");
    if last.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    write_vision(folder)?;
    let trunk = random_part(0..TRUNK_LAYERS, &["model.embed_tokens"], &[])?;
    candle::safetensors::save(&trunk, folder.join("trunk.safetensors"))?;
    for member in 0..MEMBERS {
        write_member(folder, member, &trunk)?;
    }
    let cases: Vec<BenchCase> = (0..CASES).map(create_case).collect();
    for (i, case) in cases.iter().enumerate() {
        fs::write(folder.join(&case.image), test_images::jpeg(i)?)?;
    }
    let tokenizer = create_tokenizer(&cases)?.to_string();
    fs::write(folder.join("tokenizer.json"), &tokenizer)?;
    fs::write(folder.join("cases.json"), serde_json::to_vec(&cases)?)?;
    let prompts = Prompts::new(tokenizer.as_bytes())?;
    let cases = cases.iter().map(|case| describe_prompts(&prompts, case));
    fs::write(last, json!(cases.collect::<Result<Vec<_>>>()?).to_string())?;
    Ok(())
}

/// Writes the tower in the form of transformers, and the projector.
pub(crate) fn write_vision(folder: &Path) -> Result<()> {
    let tower = folder.join("tower");
    fs::create_dir_all(&tower)?;
    let config = encoder()?.config;
    let mut published = serde_json::to_value(&config)?;
    published["model_type"] = json!("clip_vision_model");
    published["architectures"] = json!(["CLIPVisionModel"]);
    fs::write(tower.join("config.json"), published.to_string())?;
    candle::safetensors::save(&random_tower(&config)?, tower.join("model.safetensors"))?;
    let mut projector = HashMap::new();
    for (name, inputs) in [("0", config.hidden_size), ("2", HIDDEN)] {
        let weight = Tensor::randn(0f32, 0.02, (HIDDEN, inputs), &Device::Cpu)?;
        projector.insert(format!("{name}.weight"), weight);
        let bias = Tensor::zeros(HIDDEN, DType::F32, &Device::Cpu)?;
        projector.insert(format!("{name}.bias"), bias);
    }
    Ok(candle::safetensors::save(&projector, folder.join("projector.safetensors"))?)
}

/// Creates the tensors of the tower, including the last norm, which transformers requires.
fn random_tower(config: &VisionConfig) -> Result<HashMap<String, Tensor>> {
    let mut config = config.clone();
    config.variant.post_norm = true;
    let tensors = config.tensor_shapes().into_iter().map(|(name, shape)| {
        let values = match shape.len() {
            1 if name.contains("norm") && name.ends_with("weight") => {
                Tensor::ones(shape, DType::F32, &Device::Cpu)
            }
            1 if name.ends_with("bias") => Tensor::zeros(shape, DType::F32, &Device::Cpu),
            _ => Tensor::randn(0f32, 0.02, shape, &Device::Cpu),
        };
        Ok((name, values?))
    });
    tensors.collect()
}

/// Writes a member in the form of transformers: a folder with the shared trunk and its own layers.
fn write_member(folder: &Path, member: usize, trunk: &HashMap<String, Tensor>) -> Result<()> {
    let path = folder.join(format!("member-{member}"));
    fs::create_dir_all(&path)?;
    let head = random_part(TRUNK_LAYERS..LAYERS, &["lm_head"], &["model.norm"])?;
    candle::safetensors::save(&head, path.join("head.safetensors"))?;
    fs::hard_link(folder.join("trunk.safetensors"), path.join("trunk.safetensors"))?;
    let files = trunk.keys().map(|name| (name, "trunk.safetensors"));
    let files = files.chain(head.keys().map(|name| (name, "head.safetensors")));
    let files: HashMap<&String, &str> = files.collect();
    let index = json!({"metadata": {}, "weight_map": files});
    fs::write(path.join("model.safetensors.index.json"), index.to_string())?;
    fs::write(path.join("config.json"), published_config().to_string())?;
    Ok(())
}

/// Creates a case with pseudo-random words.
fn create_case(index: usize) -> BenchCase {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let text = |count: usize, seed: usize| {
        let word = |i: usize| words[(i * i * 7 + i * (seed + 3) + index * 11 + seed) % words.len()];
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    };
    BenchCase {
        image: format!("case-{index}.jpg"),
        question: format!("Is there {}?", text(10, 1)),
        answers: [text(ANSWER_WORDS, 2), text(ANSWER_WORDS, 5)].map(|text| format!("{text}.")),
    }
}

/// Creates a tokenizer with one token per word. So the text of an expert has the same number of tokens
/// in the prompt of the conclusion model.
fn create_tokenizer(cases: &[BenchCase]) -> Result<Value> {
    let merge =
        prompt_source(PromptForm::pair(LAYOUT)).context("pairs have no conclusion model")?;
    let mut text = format!("{} {merge} ", LAYOUT.source());
    let mut add = |part: &str| text.extend([part, " "]);
    for case in cases {
        add(&case.question);
        case.answers.iter().for_each(|answer| add(answer));
    }
    for aspect in Aspect::ALL {
        add(aspect.name());
    }
    for criterion in Criterion::ALL {
        add(criterion.name());
    }
    for step in EvaluationFormat::for_aspect(Aspect::Expression).steps() {
        if let FormatStep::Literal(part) = step {
            add(part);
        }
    }
    let mut names = vec!["unk".to_owned()];
    names.extend((0..=5).map(|score| score.to_string()));
    names.extend((0..Aspect::ALL.len()).map(placeholder));
    let pattern = Regex::new(r"\w+|[^\w\s]+")?;
    let words: BTreeSet<&str> = pattern.find_iter(&text).map(|word| word.as_str()).collect();
    for word in words {
        if !names.iter().any(|name| name == word) {
            names.push(word.to_owned());
        }
    }
    names.extend((names.len()..VOCABULARY).map(|token| format!("w{token}")));
    let vocabulary: HashMap<String, usize> =
        names.into_iter().enumerate().map(|(token, name)| (name, token)).collect();
    Ok(json!({"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "unk"}}))
}

/// Returns the word that stands for each word of an expert's text.
fn placeholder(expert: usize) -> String {
    format!("expert{expert}")
}

/// Lists the tokens of all prompts of a case for transformers.
fn describe_prompts(prompts: &Prompts, case: &BenchCase) -> Result<Value> {
    let texts: Vec<String> = (0..Aspect::ALL.len())
        .map(|expert| vec![placeholder(expert); WRITTEN_TOKENS].join(" "))
        .collect();
    let mut placeholders = HashMap::new();
    for expert in 0..Aspect::ALL.len() {
        for token in prompts.tokenizer.encode_quoted(&placeholder(expert))? {
            placeholders.insert(token, IMAGE_TOKEN - 1 - i64::try_from(expert)?);
        }
    }
    let list = |task: &GenerationTask| -> Vec<i64> {
        let mut tokens: Vec<i64> = task
            .prompt
            .tokens()
            .map(|token| match token {
                PromptToken::Image => IMAGE_TOKEN,
                PromptToken::Token(id) => placeholders.get(&id).copied().unwrap_or(i64::from(id)),
            })
            .collect();
        if let Some(TokenStep::Literal(heading)) = task.format.first() {
            tokens.extend(heading.iter().copied().map(i64::from));
        }
        tokens
    };
    let orders = [false, true].map(|swapped| {
        let experts = prompts.expert_tasks(case, swapped, None)?;
        let conclusion = prompts.conclusion_task(case, swapped, None, &texts)?;
        let experts: Vec<Vec<i64>> = experts.iter().map(list).collect();
        Ok(json!({"experts": experts, "conclusion": list(&conclusion)}))
    });
    let orders = orders.into_iter().collect::<Result<Vec<Value>>>()?;
    Ok(json!({"image": case.image, "orders": orders}))
}
