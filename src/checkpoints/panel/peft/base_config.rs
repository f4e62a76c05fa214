//! `config.json` and `preprocessor_config.json` of the base, as transformers and vLLM read them
//! (`configuration_llava.py`, `image_processing_clip.py`, `image_processing_llava.py`).

use acem3_experts::decoder::DecoderConfig;
use acem3_projector::ProjectorKind;
use acem3_vision::processor::{CropSize, Pad, ResizeSize};
use acem3_vision::{SelectFeature, Selection, VisionConfig, VitVariant};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::served_tokenizer::ServedTokenizer;
use crate::checkpoints::panel::member::{Member, VisionSetup};

/// What to do with a model that the layout of the hub does not have.
const HINT: &str = "hint: train with `start = …` from a LLaVA checkpoint; other models can be judged \
                    with on this machine only";

/// Vision part of the configuration.
pub(super) struct VisionConfigs<'a> {
    setup: &'a VisionSetup,
    is_siglip: bool,
    /// Layers of the tower that the panel has.
    layers: usize,
}

impl<'a> VisionConfigs<'a> {
    /// Checks that the layout of the hub has the vision part of a member. `layers`: number of layers
    /// of its tower.
    ///
    /// # Errors
    ///
    /// It does not.
    pub(super) fn of_member(member: &'a Member, layers: usize) -> Result<Self> {
        let setup = member.vision.as_ref().context("the members see no images")?;
        if setup.projector.kind != ProjectorKind::Mlp2xGelu {
            bail!(
                "model.projector.kind is {}, expected mlp2x_gelu, which the layout of the hub \
                 has\n{HINT}",
                setup.projector.kind.name()
            );
        }
        let without_norm = VitVariant { post_norm: false, ..setup.vision.variant.clone() };
        let is_siglip = without_norm == VitVariant { post_norm: false, ..VitVariant::siglip() };
        let is_clip = without_norm == VitVariant { post_norm: false, ..VitVariant::clip() };
        if !(is_siglip || is_clip) || setup.selection.post_norm {
            bail!("the vision tower is neither a CLIP nor a SigLIP tower\n{HINT}");
        }
        if setup.tiling.is_some() {
            bail!("the members encode images in tiles\n{HINT}");
        }
        if !setup.processor.crop_rounding.is_default() {
            bail!("processor.centre is not supported by servers\n{HINT}");
        }
        let needed = setup.selection.state_index(setup.vision.num_hidden_layers)?;
        if layers < needed {
            bail!("the vision tower has {layers} layers, expected {needed}");
        }
        Ok(Self { setup, is_siglip, layers })
    }

    /// Returns `vision_feature_select_strategy`. Without a class token, `default` would drop a patch.
    fn strategy(&self) -> &'static str {
        match self.setup.selection.select_feature {
            SelectFeature::Patch if !self.is_siglip => "default",
            SelectFeature::Patch | SelectFeature::ClsPatch => "full",
        }
    }

    /// Returns the index of the layer whose output is used.
    fn feature_layer(&self) -> Result<i64> {
        let Selection { select_layer, .. } = self.setup.selection;
        if self.layers == self.setup.vision.num_hidden_layers {
            return Ok(select_layer);
        }
        // Counted from the first layer, because upper ones are missing.
        let index = self.setup.selection.state_index(self.setup.vision.num_hidden_layers)?;
        i64::try_from(index).context("too many layers")
    }

    fn tower(&self) -> Value {
        let VisionConfig { image_size, patch_size, num_channels, layer_norm_eps, .. } =
            self.setup.vision;
        let mut config = json!({
            "model_type": if self.is_siglip { "siglip_vision_model" } else { "clip_vision_model" },
            "hidden_size": self.setup.vision.hidden_size,
            "intermediate_size": self.setup.vision.intermediate_size,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.setup.vision.num_attention_heads,
            "image_size": image_size,
            "patch_size": patch_size,
            "num_channels": num_channels,
            "layer_norm_eps": layer_norm_eps,
            "hidden_act": self.setup.vision.hidden_act,
        });
        if self.is_siglip {
            config["vision_use_head"] = json!(false);
        }
        config
    }

    /// Returns the content of `preprocessor_config.json`.
    pub(super) fn preprocessor(&self) -> Value {
        let processor = &self.setup.processor;
        let size = match processor.size {
            ResizeSize::Exact { height, width } => json!({"height": height, "width": width}),
            ResizeSize::ShortestEdge { shortest_edge: edge } | ResizeSize::Number(edge) => {
                json!({"shortest_edge": edge})
            }
        };
        let crop_size = processor.crop_size.map(|size| match size {
            CropSize::Exact { height, width } => json!({"height": height, "width": width}),
            CropSize::Number(side) => json!({"height": side, "width": side}),
        });
        let pads = processor.pad == Pad::Square;
        let is_cropped = processor.do_center_crop.unwrap_or(crop_size.is_some());
        // The processor of SigLIP does not crop, that of LLaVA pads to a square.
        let class = match (pads, self.is_siglip && !is_cropped) {
            (true, _) => "LlavaImageProcessor",
            (false, true) => "SiglipImageProcessor",
            (false, false) => "CLIPImageProcessor",
        };
        let mut config = json!({
            "image_processor_type": class,
            "do_convert_rgb": true,
            "do_resize": processor.do_resize,
            "size": size,
            "resample": processor.resample,
            "do_rescale": processor.do_rescale,
            "rescale_factor": processor.rescale_factor,
            "do_normalize": processor.do_normalize,
            "image_mean": processor.image_mean,
            "image_std": processor.image_std,
        });
        if class != "SiglipImageProcessor" {
            config["do_center_crop"] = json!(is_cropped);
            config["crop_size"] = json!(crop_size.unwrap_or_else(|| {
                let side = self.setup.vision.image_size;
                json!({"height": side, "width": side})
            }));
        }
        if pads {
            config["do_pad"] = json!(true);
        }
        config
    }

    /// Returns the content of `processor_config.json`.
    pub(super) fn processor(&self) -> Value {
        json!({
            "processor_class": "LlavaProcessor",
            "image_token": ServedTokenizer::IMAGE,
            "patch_size": self.setup.vision.patch_size,
            "num_additional_image_tokens": usize::from(!self.is_siglip),
            "vision_feature_select_strategy": self.strategy(),
        })
    }

    /// Returns the content of `config.json`. `dtype`: the name of the element type.
    pub(super) fn model(
        &self,
        decoder: &DecoderConfig,
        tokenizer: &ServedTokenizer,
        dtype: &str,
    ) -> Result<Value> {
        Ok(json!({
            "architectures": ["LlavaForConditionalGeneration"],
            "model_type": "llava",
            "torch_dtype": dtype,
            "image_token_index": tokenizer.image_id,
            "image_seq_length": self.setup.vision.token_count(self.setup.selection),
            "projector_hidden_act": "gelu",
            "multimodal_projector_bias": true,
            "tie_word_embeddings": decoder.tie_word_embeddings,
            "vision_feature_layer": self.feature_layer()?,
            "vision_feature_select_strategy": self.strategy(),
            "text_config": decoder_config(decoder, tokenizer, dtype)?,
            "vision_config": self.tower(),
        }))
    }
}

/// Returns `text_config`.
fn decoder_config(
    decoder: &DecoderConfig,
    tokenizer: &ServedTokenizer,
    dtype: &str,
) -> Result<Value> {
    let (model_type, architecture) =
        match (decoder.attention_bias && !decoder.output_bias, decoder.sliding_window) {
            (true, _) => ("qwen2", "Qwen2ForCausalLM"),
            (false, Some(_)) => ("mistral", "MistralForCausalLM"),
            (false, None) => ("llama", "LlamaForCausalLM"),
        };
    let mut config = serde_json::to_value(decoder).context("cannot serialise the decoder")?;
    let fields = config.as_object_mut().context("the decoder is no object")?;
    for name in ["attention_bias", "output_bias", "sliding_window", "max_window_layers"] {
        fields.remove(name);
    }
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("model_type", json!(model_type));
    set("architectures", json!([architecture]));
    set("torch_dtype", json!(dtype));
    set("hidden_act", json!("silu"));
    set("vocab_size", json!(tokenizer.vocabulary));
    set("num_key_value_heads", json!(decoder.kv_heads()));
    set("head_dim", json!(decoder.head_size()));
    set("bos_token_id", json!(tokenizer.bos.as_ref().map(|(id, _)| id)));
    set("eos_token_id", json!(tokenizer.eos.0));
    match model_type {
        "qwen2" => {
            set("use_sliding_window", json!(decoder.sliding_window.is_some()));
            set("sliding_window", json!(decoder.sliding_window));
            set("max_window_layers", json!(decoder.max_window_layers));
        }
        "mistral" => set("sliding_window", json!(decoder.sliding_window)),
        _ => set("attention_bias", json!(decoder.attention_bias)),
    }
    let rope_type = fields.get("rope_scaling").and_then(|scaling| scaling.get("rope_type"));
    if rope_type.is_some_and(|kind| kind == "table") {
        bail!("rope_scaling is a table of factors, which `config.json` cannot express\n{HINT}");
    }
    Ok(config)
}
