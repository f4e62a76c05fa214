//! Tests of Gemma 3 against transformers. The script `assets/golden/make_gemma.py` generates the
//! checkpoints and the expected values.

use std::ops::Range;

use acem3_experts::decoder::{BatchLayout, CachedSequence, DecoderConfig, Head, KvCache, Trunk};
use acem3_experts::ops::AttentionMask;
use acem3_experts::prompt::{PAIR_TEXTS, PromptPiece, PromptToken, StagedPrompt};
use acem3_vision::VisionTower;
use candle::{Device, Tensor};
use serde_json::{Value, json};

use super::llava_variants::{Values, image_tiles, last_logits, load_values, prompt_names};
use super::{assert_near, load_member, to_token_ids};
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::published::config::CheckpointConfig;
use crate::judging::panel::image_encoder::ImageEncoder;

/// Number of layers of the trunk in these tests: one with and one without the sliding window.
const TRUNK_LAYERS: usize = 2;

fn load_decoder(member: &Member) -> (Trunk, Head) {
    let vb = member.weights.builder(&Device::Cpu);
    let trunk = Trunk::load(&vb, &member.decoder, TRUNK_LAYERS).unwrap();
    (trunk, Head::load(&vb, &member.decoder, TRUNK_LAYERS).unwrap())
}

/// A prompt in two stages, as the prefix cache computes them: text and image, then text.
struct Prompt {
    stages: Vec<(Tensor, Vec<Range<usize>>)>,
}

impl Prompt {
    fn new(trunk: &Trunk, values: &Values, image: Option<Tensor>) -> Self {
        let text = |key: &str| trunk.embed(&to_token_ids(&values[key])).unwrap();
        let Some(image) = image else {
            return Self { stages: vec![(text("head"), Vec::new())] };
        };
        let head = text("head");
        let start = head.dim(0).unwrap();
        let tokens = start..start + image.dim(0).unwrap();
        let first = Tensor::cat(&[head, image], 0).unwrap();
        Self { stages: vec![(first, vec![tokens]), (text("tail"), Vec::new())] }
    }

    /// Computes the logits of all tokens without caches.
    fn logits(&self, (trunk, head): (&Trunk, &Head)) -> Tensor {
        let parts: Vec<&Tensor> = self.stages.iter().map(|(tokens, _)| tokens).collect();
        let x = Tensor::cat(&parts, 0).unwrap();
        let ranges: Vec<Range<usize>> = self.stages[0].1.clone();
        let layout = BatchLayout {
            mask: AttentionMask::Bidirectional(ranges.into()),
            ..BatchLayout::causal(x.dim(0).unwrap())
        };
        let middle = trunk.forward(&x, &layout).unwrap();
        head.logits(&head.forward(&middle, &layout).unwrap()).unwrap()
    }

    /// Returns the last logits of the prompt and `count` greedily decoded tokens, with caches.
    fn decode_greedily(&self, (trunk, head): (&Trunk, &Head), count: usize) -> (Tensor, Vec<u32>) {
        let mut caches = (KvCache::new(trunk.depth()), KvCache::new(head.depth()));
        let mut step = |tokens: &Tensor, bidirectional: &[Range<usize>]| {
            let (trunk_cache, head_cache) = (&mut caches.0, &mut caches.1);
            let sequence = |cache| CachedSequence {
                bidirectional: bidirectional.to_vec(),
                ..CachedSequence::causal(tokens.dim(0).unwrap(), cache)
            };
            let hidden = trunk.forward_cached(tokens, &mut [sequence(trunk_cache)]).unwrap();
            let hidden = head.forward_cached(&hidden, &mut [sequence(head_cache)]).unwrap();
            head.logits(&hidden).unwrap()
        };
        let mut logits = None;
        for (tokens, bidirectional) in &self.stages {
            logits = Some(step(tokens, bidirectional));
        }
        let logits = logits.unwrap();
        let (mut last, mut generated) = (logits.clone(), Vec::new());
        while generated.len() < count {
            let row = last.get(last.dim(0).unwrap() - 1).unwrap();
            generated.push(row.argmax(0).unwrap().to_scalar::<u32>().unwrap());
            last = step(&trunk.embed(&generated[generated.len() - 1..]).unwrap(), &[]);
        }
        (logits, generated)
    }
}

fn assert_completion(member: &Member, values: &Values, name: &str, image: Option<Tensor>) {
    let (trunk, head) = load_decoder(member);
    let prompt = Prompt::new(&trunk, values, image);
    let expected = &values[&format!("{name}.logits")];
    let full = last_logits(&prompt.logits((&trunk, &head)), expected);
    assert_near(&full, expected, &format!("{name}: logits without caches"));
    let expected_tokens = to_token_ids(&values[&format!("{name}.greedy")]);
    let (cached, generated) = prompt.decode_greedily((&trunk, &head), expected_tokens.len());
    assert_near(&last_logits(&cached, expected), expected, &format!("{name}: logits"));
    assert_eq!(generated, expected_tokens, "{name}");
}

#[test]
fn images_match_reference_at_every_stage() {
    let (member, values) = (load_member("gemma3"), load_values("gemma3"));
    let vb = member.weights.builder(&Device::Cpu);
    let vision = member.vision.as_ref().unwrap();
    let encoder = ImageEncoder::load(vision, &vb, &Device::Cpu).unwrap();
    let tower = vb.pp("model.vision_tower.vision_model");
    let tower = VisionTower::load(&tower, &vision.vision, vision.selection).unwrap();
    assert_eq!(prompt_names(&values).len(), 5);
    for name in prompt_names(&values) {
        let (preprocessed, expected) = image_tiles(&encoder, &values, &name);
        let difference = (preprocessed.pixel_values - &expected.pixel_values).unwrap();
        let difference = difference.abs().unwrap().max_all().unwrap();
        // One grey level of 255, divided by the standard deviation.
        assert!(difference.to_scalar::<f32>().unwrap() <= 1.01 / 255.0 / 0.5, "{name}: pixels");
        let features = tower.forward(&expected.pixel_values).unwrap().squeeze(0).unwrap();
        assert_near(&features, &values[&format!("{name}.tower")], &format!("{name}: tower"));
        let tokens = encoder.project(&expected).unwrap();
        let expected_tokens = &values[&format!("{name}.image_tokens")];
        assert_near(&tokens, expected_tokens, &format!("{name}: image tokens"));
        assert_completion(&member, &values, &name, Some(tokens));
    }
    member.weights.check_all_used().unwrap();
}

/// Without the bidirectional attention of image tokens the logits differ from the reference, so the
/// other test covers it.
#[test]
fn image_tokens_attend_to_later_ones() {
    let (member, values) = (load_member("gemma3"), load_values("gemma3"));
    let (trunk, head) = load_decoder(&member);
    let image = values["odd.image_tokens"].clone();
    let mut prompt = Prompt::new(&trunk, &values, Some(image));
    prompt.stages[0].1.clear();
    let expected = &values["odd.logits"];
    let causal = last_logits(&prompt.logits((&trunk, &head)), expected);
    assert!(super::relative_difference(&causal, expected) > 1e-2);
}

#[test]
fn text_model_matches_reference() {
    let (member, values) = (load_member("gemma3-text"), load_values("gemma3-text"));
    assert!(member.vision.is_none());
    assert_completion(&member, &values, "text", None);
    member.weights.check_all_used().unwrap();
}

#[test]
fn prompt_tokens_match_reference() {
    let (member, values) = (load_member("gemma3"), load_values("gemma3"));
    let pieces = vec![
        PromptPiece::Trusted("Is there a mass in this image?".to_owned()),
        PromptPiece::Image,
        PromptPiece::Trusted("How large is it?\n".to_owned()),
    ];
    let pieces = member.chat_template.wrap(pieces);
    let prompt = StagedPrompt::new(&pieces, PAIR_TEXTS, &member.tokenizer.text).unwrap();
    let text = |key: &str| to_token_ids(&values[key]).into_iter().map(PromptToken::Token);
    let expected: Vec<PromptToken> =
        text("head").chain([PromptToken::Image]).chain(text("tail")).collect();
    assert_eq!(prompt.tokens().collect::<Vec<_>>(), expected);
}

fn parse_decoder(text_config: &Value) -> Result<DecoderConfig, String> {
    let config = json!({"model_type": "gemma3", "text_config": text_config,
        "vision_config": {"model_type": "siglip_vision_model", "image_size": 896, "patch_size": 14}});
    let map = config.as_object().unwrap().clone();
    let parsed = CheckpointConfig::parse(map, &[]).map_err(|error| format!("{error:#}"))?;
    Ok(parsed.decoder)
}

/// The fields of the published configuration of `google/medgemma-4b-it`.
#[test]
fn both_formats_of_the_configuration_are_equal() {
    let mut published = json!({"attention_bias": false, "attn_logit_softcapping": null,
        "cache_implementation": "hybrid", "final_logit_softcapping": null, "head_dim": 256,
        "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2560, "intermediate_size": 10240,
        "model_type": "gemma3_text", "num_attention_heads": 8, "num_hidden_layers": 14,
        "num_key_value_heads": 4, "query_pre_attn_scalar": 256, "rope_local_base_freq": 10_000,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "rope_theta": 1_000_000,
        "sliding_window": 1024, "sliding_window_pattern": 6, "vocab_size": 262_208});
    let decoder = parse_decoder(&published).unwrap();
    let windows: Vec<Option<usize>> = (4..13).map(|layer| decoder.window(layer)).collect();
    let (sliding, full) = (Some(1024), None);
    let expected = [sliding, full, sliding, sliding, sliding, sliding, sliding, full, sliding];
    assert_eq!(windows, expected);
    assert!(decoder.tie_word_embeddings && decoder.has_bidirectional_images());
    let fields = published.as_object_mut().unwrap();
    for old in ["rope_theta", "rope_scaling", "rope_local_base_freq", "sliding_window_pattern"] {
        fields.remove(old);
    }
    let full = json!({"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6});
    let types = (1..=14).map(|i| if i % 6 == 0 { "full_attention" } else { "sliding_attention" });
    fields.insert("layer_types".to_owned(), types.collect());
    fields.insert(
        "rope_parameters".to_owned(),
        json!({"full_attention": full,
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}),
    );
    assert_eq!(parse_decoder(&published).unwrap(), decoder);
}

#[test]
fn unsupported_settings_are_rejected() {
    let scaled = json!({"full_attention": {"rope_type": "default"},
        "sliding_attention": {"rope_type": "linear", "factor": 2.0}});
    for (text_config, expected) in [
        (json!({"attn_logit_softcapping": 50.0}), "attn_logit_softcapping"),
        (json!({"use_bidirectional_attention": true}), "use_bidirectional_attention"),
        (json!({"hidden_activation": "gelu"}), "hidden_activation is `gelu`"),
        (json!({"num_hidden_layers": 1, "layer_types": ["linear"]}), "`linear`"),
        (json!({"num_hidden_layers": 2, "layer_types": ["full_attention"]}), "1 entries"),
        (json!({"sliding_window_pattern": 0}), "sliding_window_pattern is 0"),
        (json!({"rope_parameters": scaled}), "sliding_attention has a scaling"),
        (json!({"query_pre_attn_scalar": 0}), "query_pre_attn_scalar is 0"),
    ] {
        let error = parse_decoder(&text_config).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
