//! Registry of published encoders by name.

use super::encoder::PublishedEncoder;
use super::layout::EncoderLayout;
use super::transformers;
use crate::config::{VisionConfig, VitVariant};
use crate::processor::{CropRounding, CropSize, ImageProcessor, ResizeSize};
use acem3_kernels::Activation;

/// Published encoder: name, repository and configuration.
#[derive(Clone, Copy, Debug)]
pub struct KnownEncoder {
    /// Short name.
    pub name: &'static str,
    /// Repository on the hub.
    pub repository: &'static str,
    layout: EncoderLayout,
    /// Hidden size, MLP size, number of blocks, number of heads, image side and patch side
    /// (pixels).
    sizes: [usize; 6],
    activation: Activation,
    preprocessing: KnownPreprocessing,
    /// Side of the stored grid of position embeddings, if it differs from the grid of patches.
    position_grid: Option<usize>,
}

/// Image preprocessing of a known encoder.
#[derive(Clone, Copy, Debug)]
enum KnownPreprocessing {
    /// Resize of the shortest edge to this many pixels, then a center crop; with mean and standard
    /// deviation per channel.
    CenterCrop(usize, [[f64; 3]; 2]),
    /// Resize to a square regardless of the aspect ratio; values from −1 to 1.
    Squash,
}

const CLIP_MEAN_STD: [[f64; 3]; 2] =
    [[0.481_454_66, 0.457_827_5, 0.408_210_73], [0.268_629_54, 0.261_302_58, 0.275_777_11]];
const IMAGENET_MEAN_STD: [[f64; 3]; 2] = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]];
/// Statistics of chest radiographs (`microsoft/rad-dino`).
const CHEST_MEAN_STD: [[f64; 3]; 2] = [[0.5307; 3], [0.2583; 3]];

const fn clip(name: &'static str, repository: &'static str, sizes: [usize; 6]) -> KnownEncoder {
    KnownEncoder {
        name,
        repository,
        layout: EncoderLayout::Clip,
        sizes,
        activation: Activation::QuickGelu,
        preprocessing: KnownPreprocessing::CenterCrop(sizes[4], CLIP_MEAN_STD),
        position_grid: None,
    }
}

const fn siglip(name: &'static str, repository: &'static str, sizes: [usize; 6]) -> KnownEncoder {
    KnownEncoder {
        layout: EncoderLayout::Siglip,
        activation: Activation::GeluPytorchTanh,
        preprocessing: KnownPreprocessing::Squash,
        ..clip(name, repository, sizes)
    }
}

const fn dinov2(
    name: &'static str,
    repository: &'static str,
    sizes: [usize; 6],
    preprocessing: KnownPreprocessing,
) -> KnownEncoder {
    KnownEncoder {
        layout: EncoderLayout::Dinov2,
        activation: Activation::Gelu,
        preprocessing,
        position_grid: if sizes[4] == 518 { None } else { Some(37) },
        ..clip(name, repository, sizes)
    }
}

/// All registered encoders. Other checkpoints of the same architectures are described by their
/// files.
pub const KNOWN_ENCODERS: &[KnownEncoder] = &[
    clip("clip-vit-b32", "openai/clip-vit-base-patch32", [768, 3072, 12, 12, 224, 32]),
    clip("clip-vit-b16", "openai/clip-vit-base-patch16", [768, 3072, 12, 12, 224, 16]),
    clip("clip-vit-l14", "openai/clip-vit-large-patch14", [1024, 4096, 24, 16, 224, 14]),
    clip("clip-vit-l14-336", "openai/clip-vit-large-patch14-336", [1024, 4096, 24, 16, 336, 14]),
    clip(
        "pubmedclip",
        "flaviagiammarino/pubmed-clip-vit-base-patch32",
        [768, 3072, 12, 12, 224, 32],
    ),
    KnownEncoder {
        layout: EncoderLayout::OpenClipTimm,
        activation: Activation::Gelu,
        ..clip(
            "biomedclip",
            "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224",
            [768, 3072, 12, 12, 224, 16],
        )
    },
    siglip("siglip-b16-224", "google/siglip-base-patch16-224", [768, 3072, 12, 12, 224, 16]),
    siglip("siglip-so400m-384", "google/siglip-so400m-patch14-384", [1152, 4304, 27, 16, 384, 14]),
    siglip("medsiglip-448", "google/medsiglip-448", [1152, 4304, 27, 16, 448, 14]),
    dinov2(
        "dinov2-small",
        "facebook/dinov2-small",
        [384, 1536, 12, 6, 224, 14],
        KnownPreprocessing::CenterCrop(256, IMAGENET_MEAN_STD),
    ),
    dinov2(
        "dinov2-base",
        "facebook/dinov2-base",
        [768, 3072, 12, 12, 224, 14],
        KnownPreprocessing::CenterCrop(256, IMAGENET_MEAN_STD),
    ),
    dinov2(
        "dinov2-large",
        "facebook/dinov2-large",
        [1024, 4096, 24, 16, 224, 14],
        KnownPreprocessing::CenterCrop(256, IMAGENET_MEAN_STD),
    ),
    dinov2(
        "rad-dino",
        "microsoft/rad-dino",
        [768, 3072, 12, 12, 518, 14],
        KnownPreprocessing::CenterCrop(518, CHEST_MEAN_STD),
    ),
];

/// Finds a registered encoder by its name or repository.
pub fn encoder_by_name(name: &str) -> Option<&'static KnownEncoder> {
    let mut entries = KNOWN_ENCODERS.iter();
    entries.find(|entry| entry.name == name || entry.repository == name)
}

/// Finds a registered encoder by the name of its repository without the owner.
///
/// Compares the last component of `name`, which may be a path or a hub id.
pub fn encoder_by_repository(name: &str) -> Option<&'static KnownEncoder> {
    let last_component = |path: &'static str| path.rsplit('/').next();
    let mut entries = KNOWN_ENCODERS.iter();
    entries.find(|entry| last_component(entry.repository) == name.rsplit('/').next())
}

impl KnownEncoder {
    /// Returns the encoder as described by its published files, without reading them.
    pub fn published_encoder(&self) -> PublishedEncoder {
        let [hidden, inner, layers, heads, image, patch] = self.sizes;
        let variant = match self.layout {
            EncoderLayout::Clip | EncoderLayout::OpenClip => VitVariant::clip(),
            EncoderLayout::Siglip => VitVariant::siglip(),
            EncoderLayout::OpenClipTimm => VitVariant::timm(),
            EncoderLayout::Dinov2 => VitVariant::dinov2(),
            EncoderLayout::InternVl | EncoderLayout::InternVlChat => VitVariant::intern_vit(),
        };
        let config = VisionConfig {
            hidden_size: hidden,
            intermediate_size: inner,
            num_hidden_layers: layers,
            num_attention_heads: heads,
            image_size: image,
            patch_size: patch,
            hidden_act: self.activation,
            variant: VitVariant { position_grid: self.position_grid, ..variant },
            ..transformers::default_config(match self.layout {
                // The layer norms of `timm` have the same epsilon as those of SigLIP.
                EncoderLayout::OpenClipTimm => EncoderLayout::Siglip,
                layout => layout,
            })
        };
        PublishedEncoder { layout: self.layout, config, processor: self.image_processor(image) }
    }

    fn image_processor(&self, side: usize) -> ImageProcessor {
        match self.preprocessing {
            KnownPreprocessing::CenterCrop(shortest_edge, [image_mean, image_std]) => {
                ImageProcessor {
                    size: ResizeSize::ShortestEdge { shortest_edge },
                    do_center_crop: Some(true),
                    crop_size: Some(CropSize::Number(side)),
                    crop_rounding: match self.layout {
                        EncoderLayout::OpenClip | EncoderLayout::OpenClipTimm => {
                            CropRounding::HalfToEven
                        }
                        _ => CropRounding::Down,
                    },
                    image_mean,
                    image_std,
                    ..ImageProcessor::default()
                }
            }
            KnownPreprocessing::Squash => ImageProcessor {
                pad: ImageProcessor::default().pad,
                ..ImageProcessor::square(side)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_match_the_input_size_of_their_networks() {
        for entry in KNOWN_ENCODERS {
            let published = entry.published_encoder();
            assert_eq!(published.check(), Ok(()), "{}", entry.name);
            assert_eq!(encoder_by_name(entry.repository).unwrap().name, entry.name);
        }
        assert!(encoder_by_name("clip").is_none());
        let local_copy = encoder_by_repository("/data/clip-vit-large-patch14-336").unwrap();
        assert_eq!(local_copy.name, "clip-vit-l14-336");
        assert!(encoder_by_repository("nobody/clip-tiny").is_none());
    }

    #[test]
    fn parameter_counts_match_published_weights() {
        // Vision tower without projection and attention pool, counted with `transformers` and
        // `timm`.
        for (name, count) in [
            ("clip-vit-b32", 87_456_000),
            ("clip-vit-l14-336", 303_507_456),
            ("biomedclip", 85_798_656),
            ("dinov2-base", 86_579_712),
        ] {
            let published = encoder_by_name(name).unwrap().published_encoder();
            assert_eq!(published.config.parameter_count(), count, "{name}");
        }
    }
}
