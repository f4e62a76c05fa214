//! Maps tensor names of a file to acem3's names and back.

use super::error::WeightsError;
use super::layout::{BLOCKS, Layout, Names};

/// Role of a tensor of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// One of its tensors; the name is ours.
    Encoder(String),
    /// A part of the published model that patch features do not need, such as its text tower.
    Unused,
    /// Not part of any model of this layout.
    Unknown,
}

/// The names of one file: a layout, and where in the file the encoder lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renaming {
    layout: Layout,
    prefix: String,
}

impl Renaming {
    /// Finds the encoder among a file's tensors by its patch embedding, whatever model it is a part of.
    pub fn find<'a>(
        layout: Layout,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, WeightsError> {
        let anchor = layout.names().anchor;
        let mut found: Option<&str> = None;
        for name in names {
            let Some(prefix) = name.strip_suffix(anchor) else {
                continue;
            };
            if !(prefix.is_empty() || prefix.ends_with('.')) {
                continue;
            }
            if let Some(other) = found {
                return Err(WeightsError::Several {
                    first: format!("{other}{anchor}"),
                    second: name.to_owned(),
                });
            }
            found = Some(prefix);
        }
        match found {
            Some(prefix) => Ok(Self {
                layout,
                prefix: prefix.to_owned(),
            }),
            None => Err(WeightsError::NoEncoder { expected: anchor }),
        }
    }

    /// The layout.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// What comes before the names of the encoder's tensors in the file.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What the tensor of that name is.
    pub fn place(&self, stored: &str) -> Place {
        let names = self.layout.names();
        let begins = |all: &[&str], name: &str| all.iter().any(|start| name.starts_with(start));
        if let Some(rest) = stored.strip_prefix(&self.prefix) {
            if let Some(ours) = names.ours(rest) {
                return Place::Encoder(ours);
            }
            if begins(names.unused, rest) {
                return Place::Unused;
            }
        }
        if begins(names.others, stored) {
            return Place::Unused;
        }
        Place::Unknown
    }

    /// The file's name of one of our tensors; what has no name in this layout keeps ours.
    pub fn stored(&self, ours: &str) -> String {
        let names = self.layout.names();
        let stored = names.stored(ours).unwrap_or_else(|| ours.to_owned());
        format!("{}{stored}", self.prefix)
    }
}

impl Names {
    fn ours(&self, stored: &str) -> Option<String> {
        if let Some((number, rest)) = numbered(stored, self.blocks) {
            let rest = translate(rest, self.inside.iter().copied())?;
            return Some(format!("{BLOCKS}{number}.{rest}"));
        }
        translate(stored, self.outside.iter().copied())
    }

    fn stored(&self, ours: &str) -> Option<String> {
        let turned = |(stored, ours)| (ours, stored);
        if let Some((number, rest)) = numbered(ours, BLOCKS) {
            let rest = translate(rest, self.inside.iter().copied().map(turned))?;
            return Some(format!("{}{number}.{rest}", self.blocks));
        }
        translate(ours, self.outside.iter().copied().map(turned))
    }
}

/// A block's number and what follows it.
fn numbered<'a>(name: &'a str, blocks: &str) -> Option<(&'a str, &'a str)> {
    let (number, rest) = name.strip_prefix(blocks)?.split_once('.')?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then_some((number, rest))
}

/// Replaces the beginning of a name; one that does not end in a dot or underscore is a whole name.
fn translate<'a>(
    name: &str,
    mut pairs: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<String> {
    pairs.find_map(|(from, to)| {
        let rest = name.strip_prefix(from)?;
        let open = from.ends_with(['.', '_']);
        (open != rest.is_empty()).then(|| format!("{to}{rest}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(layout: Layout, prefix: &str) -> Renaming {
        let anchor = format!("{prefix}{}", layout.names().anchor);
        let renaming = Renaming::find(layout, ["logit_scale", anchor.as_str()]).unwrap();
        assert_eq!(renaming.prefix(), prefix);
        renaming
    }

    #[test]
    fn names_are_those_of_the_publishers() {
        let cases = [
            (
                at(Layout::OpenClipTimm, "visual.trunk."),
                "visual.trunk.blocks.10.attn.qkv.weight",
                "encoder.layers.10.self_attn.qkv_proj.weight",
            ),
            (
                at(Layout::OpenClip, "visual."),
                "visual.transformer.resblocks.0.attn.in_proj_bias",
                "encoder.layers.0.self_attn.qkv_proj.bias",
            ),
            (
                at(Layout::Dinov2, ""),
                "encoder.layer.3.layer_scale2.lambda1",
                "encoder.layers.3.layer_scale2",
            ),
            (
                at(
                    Layout::Clip,
                    "model.vision_tower.vision_tower.vision_model.",
                ),
                "model.vision_tower.vision_tower.vision_model.pre_layrnorm.bias",
                "pre_layrnorm.bias",
            ),
            (
                at(Layout::Siglip, "vision_model."),
                "vision_model.embeddings.position_embedding.weight",
                "embeddings.position_embedding.weight",
            ),
        ];
        for (renaming, stored, ours) in cases {
            assert_eq!(renaming.place(stored), Place::Encoder(ours.to_owned()));
            assert_eq!(renaming.stored(ours), stored);
        }
    }

    #[test]
    fn unused_and_unknown_tensors_are_distinguished() {
        let timm = at(Layout::OpenClipTimm, "visual.trunk.");
        for name in [
            "text.transformer.embeddings.word_embeddings.weight",
            "visual.head.proj.weight",
        ] {
            assert_eq!(timm.place(name), Place::Unused);
        }
        for name in [
            "visual.trunk.blocks.x.norm1.weight",
            "visual.trunk.reg_token",
            "visual.trunk.cls_tokens",
            "optimizer.step",
        ] {
            assert_eq!(timm.place(name), Place::Unknown, "{name}");
        }
        let siglip = at(Layout::Siglip, "vision_model.");
        assert_eq!(siglip.place("vision_model.head.probe"), Place::Unused);
        let clip = at(Layout::Clip, "vision_model.");
        assert_eq!(clip.place("vision_model.head.probe"), Place::Unknown);
    }

    #[test]
    fn a_file_without_or_with_two_encoders_is_an_error() {
        let none = Renaming::find(Layout::Clip, ["text_model.x", "my_conv1.weight"]);
        assert!(matches!(none, Err(WeightsError::NoEncoder { .. })));
        let two = [
            "a.embeddings.patch_embedding.weight",
            "b.embeddings.patch_embedding.weight",
        ];
        let error = Renaming::find(Layout::Clip, two).unwrap_err().to_string();
        assert!(error.contains("`b.embeddings"), "{error}");
    }
}
