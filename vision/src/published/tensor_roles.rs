//! Maps the tensor names of a file to acem3's names and back.

use super::error::WeightsError;
use super::layout::{BLOCK_PREFIX, EncoderLayout, LayoutNames};

/// Role of a tensor in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorRole {
    /// A tensor of the encoder, with its acem3 name.
    Encoder(String),
    /// A part of the published model that patch features do not need, such as its text tower.
    Unused,
    /// Not part of any model of this layout.
    Unknown,
}

/// Tensor naming of one file: the layout, and the prefix of the encoder's tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRenaming {
    layout: EncoderLayout,
    prefix: String,
}

impl TensorRenaming {
    /// Creates the naming of a file whose encoder has this prefix.
    pub fn with_prefix(layout: EncoderLayout, prefix: &str) -> Self {
        Self { layout, prefix: prefix.to_owned() }
    }

    /// Finds the encoder among the tensors of a file by the name of its patch embedding.
    ///
    /// The encoder may be a part of any model. No encoder or several encoders are an error.
    pub fn find<'a>(
        layout: EncoderLayout,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, WeightsError> {
        let patch_embedding = layout.names().patch_embedding;
        let mut encoder_prefix: Option<&str> = None;
        for name in names {
            let Some(prefix) = name.strip_suffix(patch_embedding) else {
                continue;
            };
            if !(prefix.is_empty() || prefix.ends_with('.')) {
                continue;
            }
            if let Some(other) = encoder_prefix {
                return Err(WeightsError::SeveralEncoders {
                    first: format!("{other}{patch_embedding}"),
                    second: name.to_owned(),
                });
            }
            encoder_prefix = Some(prefix);
        }
        match encoder_prefix {
            Some(prefix) => Ok(Self { layout, prefix: prefix.to_owned() }),
            None => Err(WeightsError::NoEncoder { suffix: patch_embedding }),
        }
    }

    /// Returns the layout.
    pub fn layout(&self) -> EncoderLayout {
        self.layout
    }

    /// Returns the prefix of the encoder's tensors in the file.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the role of the tensor with this name in the file.
    pub fn role(&self, name_in_file: &str) -> TensorRole {
        let names = self.layout.names();
        let has_prefix =
            |name: &str, prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if let Some(rest) = name_in_file.strip_prefix(&self.prefix) {
            if let Some(acem3_name) = names.acem3_name(rest) {
                return TensorRole::Encoder(acem3_name);
            }
            if has_prefix(rest, names.unused_prefixes) {
                return TensorRole::Unused;
            }
        }
        if has_prefix(name_in_file, names.other_part_prefixes) {
            return TensorRole::Unused;
        }
        TensorRole::Unknown
    }

    /// Returns the name in the file of a tensor with an acem3 name.
    ///
    /// A tensor without a name in this layout keeps its acem3 name, with the prefix.
    pub fn name_in_file(&self, acem3_name: &str) -> String {
        let names = self.layout.names();
        let name = names.name_in_file(acem3_name).unwrap_or_else(|| acem3_name.to_owned());
        format!("{}{name}", self.prefix)
    }
}

impl LayoutNames {
    /// Converts a name in the file, without the encoder's prefix, to the acem3 name.
    fn acem3_name(&self, name_in_file: &str) -> Option<String> {
        if let Some((number, rest)) = split_block_number(name_in_file, self.block_prefix) {
            let rest = replace_prefix(rest, self.inside_block.iter().copied())?;
            return Some(format!("{BLOCK_PREFIX}{number}.{rest}"));
        }
        replace_prefix(name_in_file, self.outside_blocks.iter().copied())
    }

    /// Converts an acem3 name to the name in the file, without the encoder's prefix.
    fn name_in_file(&self, acem3_name: &str) -> Option<String> {
        let swap = |(in_file, acem3)| (acem3, in_file);
        if let Some((number, rest)) = split_block_number(acem3_name, BLOCK_PREFIX) {
            let rest = replace_prefix(rest, self.inside_block.iter().copied().map(swap))?;
            return Some(format!("{}{number}.{rest}", self.block_prefix));
        }
        replace_prefix(acem3_name, self.outside_blocks.iter().copied().map(swap))
    }
}

/// Splits a name after the prefix of the blocks: the number of the block and the text after its
/// dot.
fn split_block_number<'a>(name: &'a str, block_prefix: &str) -> Option<(&'a str, &'a str)> {
    let (number, rest) = name.strip_prefix(block_prefix)?.split_once('.')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some((number, rest))
}

/// Replaces the prefix of a name by the first matching pair.
///
/// A pair whose first text does not end in a dot or underscore matches only a complete name.
fn replace_prefix<'a>(
    name: &str,
    mut pairs: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<String> {
    pairs.find_map(|(from, to)| {
        let rest = name.strip_prefix(from)?;
        let is_prefix = from.ends_with(['.', '_']);
        (is_prefix != rest.is_empty()).then(|| format!("{to}{rest}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_prefix(layout: EncoderLayout, prefix: &str) -> TensorRenaming {
        let patch_embedding = format!("{prefix}{}", layout.names().patch_embedding);
        let renaming =
            TensorRenaming::find(layout, ["logit_scale", patch_embedding.as_str()]).unwrap();
        assert_eq!(renaming.prefix(), prefix);
        renaming
    }

    #[test]
    fn names_are_mapped_in_both_directions() {
        let cases = [
            (
                with_prefix(EncoderLayout::OpenClipTimm, "visual.trunk."),
                "visual.trunk.blocks.10.attn.qkv.weight",
                "encoder.layers.10.self_attn.qkv_proj.weight",
            ),
            (
                with_prefix(EncoderLayout::OpenClip, "visual."),
                "visual.transformer.resblocks.0.attn.in_proj_bias",
                "encoder.layers.0.self_attn.qkv_proj.bias",
            ),
            (
                with_prefix(EncoderLayout::Dinov2, ""),
                "encoder.layer.3.layer_scale2.lambda1",
                "encoder.layers.3.layer_scale2",
            ),
            (
                with_prefix(EncoderLayout::InternVl, "model.vision_tower."),
                "model.vision_tower.encoder.layer.3.lambda_2",
                "encoder.layers.3.layer_scale2",
            ),
            (
                with_prefix(EncoderLayout::InternVlChat, "vision_model."),
                "vision_model.encoder.layers.3.attn.qkv.bias",
                "encoder.layers.3.self_attn.qkv_proj.bias",
            ),
            (
                with_prefix(EncoderLayout::Clip, "model.vision_tower.vision_tower.vision_model."),
                "model.vision_tower.vision_tower.vision_model.pre_layrnorm.bias",
                "pre_layrnorm.bias",
            ),
            (
                with_prefix(EncoderLayout::Siglip, "vision_model."),
                "vision_model.embeddings.position_embedding.weight",
                "embeddings.position_embedding.weight",
            ),
        ];
        for (renaming, name_in_file, acem3_name) in cases {
            assert_eq!(renaming.role(name_in_file), TensorRole::Encoder(acem3_name.to_owned()));
            assert_eq!(renaming.name_in_file(acem3_name), name_in_file);
        }
    }

    #[test]
    fn unused_and_unknown_tensors_are_distinguished() {
        let timm = with_prefix(EncoderLayout::OpenClipTimm, "visual.trunk.");
        for name in
            ["text.transformer.embeddings.word_embeddings.weight", "visual.head.proj.weight"]
        {
            assert_eq!(timm.role(name), TensorRole::Unused);
        }
        for name in [
            "visual.trunk.blocks.x.norm1.weight",
            "visual.trunk.reg_token",
            "visual.trunk.cls_tokens",
            "optimizer.step",
        ] {
            assert_eq!(timm.role(name), TensorRole::Unknown, "{name}");
        }
        let siglip = with_prefix(EncoderLayout::Siglip, "vision_model.");
        assert_eq!(siglip.role("vision_model.head.probe"), TensorRole::Unused);
        let clip = with_prefix(EncoderLayout::Clip, "vision_model.");
        assert_eq!(clip.role("vision_model.head.probe"), TensorRole::Unknown);
    }

    #[test]
    fn file_must_contain_exactly_one_encoder() {
        let none = TensorRenaming::find(EncoderLayout::Clip, ["text_model.x", "my_conv1.weight"]);
        assert!(matches!(none, Err(WeightsError::NoEncoder { .. })));
        let two = ["a.embeddings.patch_embedding.weight", "b.embeddings.patch_embedding.weight"];
        let error = TensorRenaming::find(EncoderLayout::Clip, two).unwrap_err().to_string();
        assert!(error.contains("`b.embeddings"), "{error}");
    }
}
