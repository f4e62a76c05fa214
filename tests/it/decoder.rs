//! Decoder and projector compared with the reference implementations.
//!
//! `assets/golden/make_decoder.py` and `make_decoder_kinds.py` generate the expected values.

use std::collections::HashMap;
use std::path::PathBuf;

use acem3_experts::decoder::{BatchLayout, CachedSequence, DecoderConfig, Head, KvCache, Trunk};
use acem3_experts::ops::AttentionMask;
use acem3_experts::train::Parameters;
use acem3_kernels::cross_entropy;
use acem3_kernels::rms_norm;
use acem3_projector::{Projector, ProjectorConfig, ProjectorKind};
use candle::backprop::GradStore;
use candle::{DType, Device, Tensor, Var};
use candle_nn::VarBuilder;

const DECODERS: [&str; 8] =
    ["llama", "mistral", "vicuna", "qwen2", "qwen2-window", "llama3", "linear", "mistral-window"];

fn golden_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets/golden/decoder").join(name)
}

/// A tiny reference model: configuration, weights and expected values.
struct Golden {
    config: DecoderConfig,
    weights: HashMap<String, Tensor>,
    values: HashMap<String, Tensor>,
}

impl Golden {
    fn load(name: &str) -> Self {
        let json = std::fs::read_to_string(golden_path(&format!("{name}.json"))).unwrap();
        let file = golden_path(&format!("{name}.safetensors"));
        let all = candle::safetensors::load(file, &Device::Cpu).unwrap();
        let (mut weights, mut values) = (HashMap::new(), HashMap::new());
        for (key, value) in all {
            match key.strip_prefix("weight.") {
                Some(key) => weights.insert(key.to_owned(), value.to_dtype(DType::F32).unwrap()),
                None => values.insert(key, value),
            };
        }
        Self { config: serde_json::from_str(&json).unwrap(), weights, values }
    }

    fn var_builder(&self) -> VarBuilder<'static> {
        VarBuilder::from_tensors(self.weights.clone(), DType::F32, &Device::Cpu)
    }

    fn load_parts(&self, depth: usize) -> (Trunk, Head) {
        load_parts(&self.var_builder(), &self.config, depth)
    }

    fn integers(&self, name: &str) -> Vec<u32> {
        let flat = self.values[name].flatten_all().unwrap();
        let integers = flat.to_dtype(DType::U32).unwrap();
        integers.to_vec1().unwrap()
    }

    /// Returns the token ids of both sequences and the number of tokens per sequence.
    fn input_ids(&self) -> (Vec<u32>, usize) {
        (self.integers("input_ids"), self.values["input_ids"].dim(1).unwrap())
    }

    /// Returns a value for all tokens of both sequences, one row per token.
    fn token_rows(&self, name: &str) -> Tensor {
        self.values[name].flatten_to(1).unwrap()
    }
}

fn load_parts(vb: &VarBuilder, config: &DecoderConfig, depth: usize) -> (Trunk, Head) {
    (Trunk::load(vb, config, depth).unwrap(), Head::load(vb, config, depth).unwrap())
}

/// Returns the layout of two sequences of `t` tokens.
fn two_sequences(t: usize) -> BatchLayout {
    BatchLayout {
        batch_size: 2,
        positions: (0..2).flat_map(|_| 0..t as u32).collect(),
        mask: AttentionMask::Causal,
    }
}

/// Fails if two tensors differ by more than `tolerance` times the largest expected magnitude.
fn assert_near(got: &Tensor, want: &Tensor, tolerance: f32, label: &str) {
    assert_eq!(got.dims(), want.dims(), "{label}");
    let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let (got, want) = (flat(got), flat(want));
    let scale = want.iter().fold(0f32, |max, v| max.max(v.abs()));
    assert!(scale > 0.0, "{label}: all expected values are zero");
    for (i, (got, want)) in got.iter().zip(&want).enumerate() {
        let error = (got - want).abs() / scale;
        assert!(
            error <= tolerance,
            "{label}: {got} at index {i}, expected {want}; relative error {error}"
        );
    }
}

#[test]
fn states_and_logits_match_transformers_at_any_depth() {
    for name in DECODERS {
        let golden = Golden::load(name);
        let layers = golden.config.num_hidden_layers;
        let (ids, t) = golden.input_ids();
        for depth in 0..=layers {
            let label = |part: &str| format!("{name}, {part} of a trunk of {depth} layers");
            let (trunk, head) = golden.load_parts(depth);
            assert_eq!((trunk.depth(), head.depth()), (depth, layers - depth));
            let embedded = trunk.embed(&ids).unwrap();
            assert_near(&embedded, &golden.token_rows("hidden.0"), 1e-6, &label("input"));
            let middle = trunk.forward(&embedded, &two_sequences(t)).unwrap();
            if depth < layers {
                let want = golden.token_rows(&format!("hidden.{depth}"));
                assert_near(&middle, &want, 1e-4, &label("output"));
            }
            let top = head.forward(&middle, &two_sequences(t)).unwrap();
            // In transformers, the last state is the output of the final norm.
            let norm = &golden.weights["model.norm.weight"];
            let normed = rms_norm(&top, norm, golden.config.rms_norm_eps).unwrap();
            let last = golden.token_rows(&format!("hidden.{layers}"));
            assert_near(&normed, &last, 1e-4, &label("last state"));
            let logits = head.logits(&top).unwrap();
            assert_near(&logits, &golden.token_rows("logits"), 1e-4, &label("logits"));
        }
    }
}

/// Processes new tokens of each sequence and returns the most probable next token of each.
fn greedy_step(
    (trunk, head): (&Trunk, &Head),
    tokens: &[Vec<u32>],
    caches: &mut [(KvCache, KvCache)],
) -> Vec<u32> {
    let counts: Vec<usize> = tokens.iter().map(Vec::len).collect();
    let (mut trunk_sequences, mut head_sequences) = (Vec::new(), Vec::new());
    for ((trunk_cache, head_cache), count) in caches.iter_mut().zip(&counts) {
        trunk_sequences.push(CachedSequence::causal(*count, trunk_cache));
        head_sequences.push(CachedSequence::causal(*count, head_cache));
    }
    let x = trunk.embed(&tokens.concat()).unwrap();
    let x = trunk.forward_cached(&x, &mut trunk_sequences).unwrap();
    let x = head.forward_cached(&x, &mut head_sequences).unwrap();
    let mut end = 0u32;
    let last_rows: Vec<u32> = counts
        .iter()
        .map(|n| {
            end += *n as u32;
            end - 1
        })
        .collect();
    let last_rows = Tensor::new(last_rows, &Device::Cpu).unwrap();
    let last_states = x.index_select(&last_rows, 0).unwrap();
    let logits = head.logits(&last_states).unwrap();
    logits.argmax(1).unwrap().to_vec1().unwrap()
}

#[test]
fn greedy_decoding_with_caches_matches_transformers() {
    for name in DECODERS {
        let golden = Golden::load(name);
        let want = [0, 1].map(|row| golden.integers(&format!("greedy.{row}")));
        let (ids, t) = golden.input_ids();
        let layers = golden.config.num_hidden_layers;
        for depth in 0..=layers {
            let (trunk, head) = golden.load_parts(depth);
            let empty = || (KvCache::new(depth), KvCache::new(layers - depth));
            let mut caches = vec![empty(), empty()];
            // Each prompt is processed in two steps, split at different positions.
            let (first, second) = ids.split_at(t);
            let starts = [first[..3].to_vec(), second[..7].to_vec()];
            greedy_step((&trunk, &head), &starts, &mut caches);
            let rest = [first[3..].to_vec(), second[7..].to_vec()];
            let mut generated = [Vec::new(), Vec::new()];
            let mut tokens = greedy_step((&trunk, &head), &rest, &mut caches);
            for _ in 0..want[0].len() {
                let inputs: Vec<Vec<u32>> = tokens.iter().map(|token| vec![*token]).collect();
                for (generated, token) in generated.iter_mut().zip(&tokens) {
                    generated.push(*token);
                }
                tokens = greedy_step((&trunk, &head), &inputs, &mut caches);
            }
            assert_eq!(generated, want, "{name}, trunk of {depth} layers");
            assert_eq!(caches[0].0.len(), t + want[0].len());
        }
    }
}

/// Computes the masked loss of a golden file with the training code. Returns loss, gradients and
/// trainable weights.
fn loss_and_gradients(
    golden: &Golden,
    depth: usize,
    frozen: &[String],
) -> (f32, GradStore, Vec<(String, Var)>) {
    let parameters = Parameters::from_tensors(golden.weights.clone()).unwrap().freeze(frozen);
    let vb = parameters.builder();
    let (trunk, head) = load_parts(&vb, &golden.config, depth);
    let (ids, t) = golden.input_ids();
    let x = trunk.embed(&ids).unwrap();
    let x = trunk.forward(&x, &two_sequences(t)).unwrap();
    let x = head.forward(&x, &two_sequences(t)).unwrap();
    let weights = golden.token_rows("weights").to_vec1::<f32>().unwrap();
    // As in training, only rows with a target go through the output layer.
    let rows: Vec<usize> = (0..2 * t).filter(|i| weights[*i] > 0.0).collect();
    let target_rows: Vec<u32> = rows.iter().map(|i| *i as u32).collect();
    let target_rows = Tensor::new(target_rows, &Device::Cpu).unwrap();
    let target_states = x.index_select(&target_rows, 0).unwrap();
    let logits = head.logits(&target_states).unwrap();
    let targets = golden.integers("targets");
    let targets: Vec<u32> = rows.iter().map(|i| targets[*i]).collect();
    let weights: Vec<f32> = rows.iter().map(|i| weights[*i]).collect();
    let loss = cross_entropy(&logits, &targets, &weights).unwrap();
    let grads = loss.backward().unwrap();
    (loss.to_scalar().unwrap(), grads, parameters.trainable())
}

#[test]
fn loss_and_gradients_match_torch() {
    for name in ["llama", "mistral"] {
        let golden = Golden::load(name);
        let want = golden.values["loss"].to_vec1::<f32>().unwrap()[0];
        for depth in [0, 2] {
            let (loss, grads, vars) = loss_and_gradients(&golden, depth, &[]);
            assert!((loss - want).abs() / want < 1e-5, "{name}: {loss} {want}");
            assert_eq!(vars.len(), golden.weights.len());
            for (key, var) in vars {
                let got = grads.get(&var).unwrap_or_else(|| panic!("{key}: no gradient"));
                let label = format!("{name}, gradient of {key}");
                assert_near(got, &golden.values[&format!("grad.{key}")], 1e-4, &label);
            }
        }
    }
}

#[test]
fn frozen_trunk_does_not_change_other_gradients() {
    let golden = Golden::load("llama");
    let frozen = ["model.embed_tokens.", "model.layers.0.", "model.layers.1."].map(str::to_owned);
    let (_, grads, vars) = loss_and_gradients(&golden, 2, &frozen);
    // The embedding and nine weights of each of the two lower layers are frozen.
    assert_eq!(vars.len(), golden.weights.len() - 19);
    for (key, var) in vars {
        let got = grads.get(&var).unwrap_or_else(|| panic!("{key}: no gradient"));
        assert_near(got, &golden.values[&format!("grad.{key}")], 1e-4, &key);
    }
}

#[test]
fn missing_and_misshapen_weights_are_named() {
    let mut golden = Golden::load("llama");
    let key = "model.layers.1.self_attn.k_proj.weight";
    let weight = golden.weights.remove(key).unwrap();
    let missing = Trunk::load(&golden.var_builder(), &golden.config, 2);
    let error = missing.unwrap_err().to_string();
    assert!(error.contains(key), "{error}");
    // The head starts above this layer and does not need the weight.
    Head::load(&golden.var_builder(), &golden.config, 2).unwrap();
    let transposed = weight.t().unwrap().contiguous().unwrap();
    golden.weights.insert(key.to_owned(), transposed);
    let error = Trunk::load(&golden.var_builder(), &golden.config, 2).unwrap_err();
    assert!(error.to_string().contains("k_proj"), "{error}");
}

#[test]
fn projectors_and_gradients_match_torch() {
    let file = golden_path("projectors.safetensors");
    let all = candle::safetensors::load(file, &Device::Cpu).unwrap();
    let kinds = [("linear", ProjectorKind::Linear, 2), ("mlp2x_gelu", ProjectorKind::Mlp2xGelu, 4)];
    for (name, kind, count) in kinds {
        let prefix = format!("{name}.weight.");
        let weights: HashMap<String, Tensor> = all
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?.to_owned(), value.clone())))
            .collect();
        let parameters = Parameters::from_tensors(weights).unwrap();
        let config = ProjectorConfig { kind, vision_hidden_size: 6, hidden_size: 8 };
        let projector = Projector::load(&parameters.builder(), &config).unwrap();
        let tokens = projector.forward(&all["features"]).unwrap();
        assert_near(&tokens, &all[&format!("{name}.tokens")], 1e-5, name);
        // `seed` is the gradient of the loss with respect to the tokens.
        let loss = (tokens * &all[&format!("{name}.seed")]).unwrap();
        let grads = loss.sum_all().unwrap().backward().unwrap();
        let vars = parameters.trainable();
        assert_eq!(vars.len(), count);
        for (key, var) in vars {
            let got = grads.get(&var).unwrap_or_else(|| panic!("{key}: no gradient"));
            assert_near(got, &all[&format!("{name}.grad.{key}")], 1e-4, &key);
        }
    }
}
