//! Registry of encoders by name.

use super::encoder::Published;
use super::hub;
use super::layout::Layout;
use crate::config::{Form, VisionConfig};
use crate::processor::{Centre, CropSize, ImageProcessor, Size};
use acem3_kernels::Activation;

/// A published encoder: its repository and configuration.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Short name.
    pub name: &'static str,
    /// Its repository on the hub.
    pub repository: &'static str,
    layout: Layout,
    /// Width, MLP width, blocks, heads, and sides of image and patch in pixels.
    sizes: [usize; 6],
    act: Activation,
    view: View,
    /// Side of the stored grid of positions, where it is another one.
    position_grid: Option<usize>,
}

/// How images are prepared.
#[derive(Clone, Copy, Debug)]
enum View {
    /// The shorter edge to a length, the middle cut out, with mean and deviation.
    Middle(usize, [[f64; 3]; 2]),
    /// Squeezed into a square, values from −1 to 1.
    Squash,
}

const CLIP: [[f64; 3]; 2] = [
    [0.481_454_66, 0.457_827_5, 0.408_210_73],
    [0.268_629_54, 0.261_302_58, 0.275_777_11],
];
const IMAGENET: [[f64; 3]; 2] = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]];
/// Of chest radiographs (`microsoft/rad-dino`).
const CHEST: [[f64; 3]; 2] = [[0.5307; 3], [0.2583; 3]];

const fn clip(name: &'static str, repository: &'static str, sizes: [usize; 6]) -> Entry {
    Entry {
        name,
        repository,
        layout: Layout::Clip,
        sizes,
        act: Activation::QuickGelu,
        view: View::Middle(sizes[4], CLIP),
        position_grid: None,
    }
}

const fn siglip(name: &'static str, repository: &'static str, sizes: [usize; 6]) -> Entry {
    Entry {
        layout: Layout::Siglip,
        act: Activation::GeluPytorchTanh,
        view: View::Squash,
        ..clip(name, repository, sizes)
    }
}

const fn dinov2(
    name: &'static str,
    repository: &'static str,
    sizes: [usize; 6],
    view: View,
) -> Entry {
    Entry {
        layout: Layout::Dinov2,
        act: Activation::Gelu,
        view,
        position_grid: if sizes[4] == 518 { None } else { Some(37) },
        ..clip(name, repository, sizes)
    }
}

/// All registered encoders. Other checkpoints of the same architectures are read from their own files.
pub const ENTRIES: &[Entry] = &[
    clip(
        "clip-vit-b32",
        "openai/clip-vit-base-patch32",
        [768, 3072, 12, 12, 224, 32],
    ),
    clip(
        "clip-vit-b16",
        "openai/clip-vit-base-patch16",
        [768, 3072, 12, 12, 224, 16],
    ),
    clip(
        "clip-vit-l14",
        "openai/clip-vit-large-patch14",
        [1024, 4096, 24, 16, 224, 14],
    ),
    clip(
        "clip-vit-l14-336",
        "openai/clip-vit-large-patch14-336",
        [1024, 4096, 24, 16, 336, 14],
    ),
    clip(
        "pubmedclip",
        "flaviagiammarino/pubmed-clip-vit-base-patch32",
        [768, 3072, 12, 12, 224, 32],
    ),
    Entry {
        layout: Layout::OpenClipTimm,
        act: Activation::Gelu,
        ..clip(
            "biomedclip",
            "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224",
            [768, 3072, 12, 12, 224, 16],
        )
    },
    siglip(
        "siglip-b16-224",
        "google/siglip-base-patch16-224",
        [768, 3072, 12, 12, 224, 16],
    ),
    siglip(
        "siglip-so400m-384",
        "google/siglip-so400m-patch14-384",
        [1152, 4304, 27, 16, 384, 14],
    ),
    siglip(
        "medsiglip-448",
        "google/medsiglip-448",
        [1152, 4304, 27, 16, 448, 14],
    ),
    dinov2(
        "dinov2-small",
        "facebook/dinov2-small",
        [384, 1536, 12, 6, 224, 14],
        View::Middle(256, IMAGENET),
    ),
    dinov2(
        "dinov2-base",
        "facebook/dinov2-base",
        [768, 3072, 12, 12, 224, 14],
        View::Middle(256, IMAGENET),
    ),
    dinov2(
        "dinov2-large",
        "facebook/dinov2-large",
        [1024, 4096, 24, 16, 224, 14],
        View::Middle(256, IMAGENET),
    ),
    dinov2(
        "rad-dino",
        "microsoft/rad-dino",
        [768, 3072, 12, 12, 518, 14],
        View::Middle(518, CHEST),
    ),
];

/// The encoder of that name or repository.
pub fn known(name: &str) -> Option<&'static Entry> {
    let mut entries = ENTRIES.iter();
    entries.find(|entry| entry.name == name || entry.repository == name)
}

/// The encoder whose repository has that name, whoever holds it: the last part of a path or hub id.
pub fn called(name: &str) -> Option<&'static Entry> {
    let last = |path: &'static str| path.rsplit('/').next();
    let mut entries = ENTRIES.iter();
    entries.find(|entry| last(entry.repository) == name.rsplit('/').next())
}

impl Entry {
    /// What its files are expected to say; with random weights it needs no files at all.
    pub fn published(&self) -> Published {
        let [hidden, inner, layers, heads, image, patch] = self.sizes;
        let form = match self.layout {
            Layout::Clip | Layout::OpenClip => Form::clip(),
            Layout::Siglip => Form::siglip(),
            Layout::OpenClipTimm => Form::timm(),
            Layout::Dinov2 => Form::dinov2(),
        };
        let config = VisionConfig {
            hidden_size: hidden,
            intermediate_size: inner,
            num_hidden_layers: layers,
            num_attention_heads: heads,
            image_size: image,
            patch_size: patch,
            hidden_act: self.act,
            form: Form {
                position_grid: self.position_grid,
                ..form
            },
            ..hub::defaults(match self.layout {
                Layout::OpenClipTimm => Layout::Siglip,
                layout => layout,
            })
        };
        Published {
            layout: self.layout,
            config,
            processor: self.processor(image),
        }
    }

    fn processor(&self, side: usize) -> ImageProcessor {
        match self.view {
            View::Middle(shortest_edge, [image_mean, image_std]) => ImageProcessor {
                size: Size::ShortestEdge { shortest_edge },
                do_center_crop: Some(true),
                crop_size: Some(CropSize::Number(side)),
                centre: match self.layout {
                    Layout::OpenClip | Layout::OpenClipTimm => Centre::HalfToEven,
                    _ => Centre::Down,
                },
                image_mean,
                image_std,
                ..ImageProcessor::default()
            },
            View::Squash => ImageProcessor {
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
    fn every_entry_is_a_network_whose_processor_fits() {
        for entry in ENTRIES {
            let published = entry.published();
            assert_eq!(published.check(), Ok(()), "{}", entry.name);
            assert_eq!(known(entry.repository).unwrap().name, entry.name);
        }
        assert!(known("clip").is_none());
        let copy = called("/data/clip-vit-large-patch14-336").unwrap();
        assert_eq!(copy.name, "clip-vit-l14-336");
        assert!(called("nobody/clip-tiny").is_none());
    }

    #[test]
    fn weights_are_as_many_as_published() {
        // Of the vision tower without projection and attention pool, by `transformers` and `timm`.
        for (name, count) in [
            ("clip-vit-b32", 87_456_000),
            ("clip-vit-l14-336", 303_507_456),
            ("biomedclip", 85_798_656),
            ("dinov2-base", 86_579_712),
        ] {
            let published = known(name).unwrap().published();
            assert_eq!(published.config.parameters(), count, "{name}");
        }
    }
}
