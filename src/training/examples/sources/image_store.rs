//! Images of the data sets in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use acem3_experts::train::TrainingImage;
use acem3_vision::{DecodedImage, TileGrid};
use anyhow::Result;
use rand_chacha::ChaCha8Rng;

use super::pixels::{Augmentation, ImagePreparation};
use crate::support::digest::Digest;

/// Images by key.
pub(crate) struct ImageStore {
    preparation: ImagePreparation,
    images: BTreeMap<String, DataSetImage>,
}

/// An image in memory.
enum DataSetImage {
    /// Preprocessed as one encoder input.
    Whole { pixels: Arc<[f32]>, grid: TileGrid },
    /// Not preprocessed, because tiles take several times the memory of the image.
    Decoded(DecodedImage),
}

impl ImageStore {
    /// Creates an empty store.
    pub(crate) fn new(preparation: ImagePreparation) -> Self {
        Self { preparation, images: BTreeMap::new() }
    }

    /// Returns true if the store has the image.
    pub(crate) fn contains(&self, key: &str) -> bool {
        self.images.contains_key(key)
    }

    /// Adds an image.
    ///
    /// # Errors
    /// The image is too elongated to be resized.
    pub(crate) fn insert(&mut self, key: &str, image: &DecodedImage) -> Result<()> {
        let pixels = self.preparation.prepare_whole(image)?;
        let stored = if self.preparation.has_tiles() {
            // Only a check: the tiles are made again for each example.
            self.preparation.prepare(image)?;
            DataSetImage::Decoded(image.clone())
        } else {
            DataSetImage::Whole { pixels, grid: TileGrid::whole((image.height(), image.width())) }
        };
        self.images.insert(key.to_owned(), stored);
        Ok(())
    }

    /// Returns an image with a random change; `None` for an unknown key.
    pub(crate) fn augmented(&self, key: &str, rng: &mut ChaCha8Rng) -> Option<TrainingImage> {
        let image = self.images.get(key)?;
        let change = Augmentation::sample(rng);
        match image {
            DataSetImage::Whole { pixels, grid } => Some(TrainingImage {
                pixels: change.apply(pixels, self.preparation.side()),
                grid: *grid,
                tokens: self.preparation.token_count(grid),
            }),
            // The size is that of an image that was preprocessed before, so this cannot fail.
            DataSetImage::Decoded(image) => change.apply_to_tiles(image, &self.preparation).ok(),
        }
    }

    /// Returns an image as one encoder input with a random change; `None` for an unknown key.
    pub(crate) fn augmented_whole(&self, key: &str, rng: &mut ChaCha8Rng) -> Option<Arc<[f32]>> {
        let image = self.images.get(key)?;
        let change = Augmentation::sample(rng);
        let side = self.preparation.side();
        match image {
            DataSetImage::Whole { pixels, .. } => Some(change.apply(pixels, side)),
            DataSetImage::Decoded(image) => {
                Some(change.apply(&self.preparation.prepare_whole(image).ok()?, side))
            }
        }
    }

    /// Returns each key with the hash of its image.
    pub(crate) fn digests(&self) -> impl Iterator<Item = (&String, Digest)> {
        self.images.iter().map(|(key, image)| {
            let bytes: Vec<u8> = match image {
                DataSetImage::Whole { pixels, .. } => {
                    pixels.iter().copied().flat_map(f32::to_le_bytes).collect()
                }
                DataSetImage::Decoded(image) => {
                    let size = [image.width(), image.height()];
                    let rows = (0..image.height()).flat_map(|y| image.row(y).iter().copied());
                    size.into_iter().flat_map(usize::to_le_bytes).chain(rows).collect()
                }
            };
            (key, Digest::sha256(&bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rand::SeedableRng;

    use super::*;
    use crate::checkpoints::hub::HubDownloads;
    use crate::training::TrainConfig;

    /// Returns the preprocessing of a training that starts from a tiny LLaVA-NeXT.
    fn tiled_preparation() -> ImagePreparation {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let start = root.join("assets/golden/checkpoints/llava-next");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("train.toml");
        let text = format!(
            "name = \"x\"\nseed = 1\ntrunk_layers = 1\nstart = {start:?}\n[[stages]]\nname = \"s\"\n\
             kind = \"sft\"\nsteps = 1\nbatch = 1\nrate = 1e-3\n"
        );
        std::fs::write(&path, text).unwrap();
        let (config, _) = TrainConfig::load(&path, HubDownloads::default()).unwrap();
        ImagePreparation::of_training(&config).unwrap()
    }

    /// An image with tiles has the shift, contrast and brightness of the image without.
    #[test]
    fn tiles_change_like_the_complete_image() {
        let data = (0..60 * 30).flat_map(|i| [(i % 60 * 4) as u8, (i / 60 * 8) as u8, 90]);
        let image = DecodedImage::from_rgb(60, 30, data.collect()).unwrap();
        let mut store = ImageStore::new(tiled_preparation());
        store.insert("a", &image).unwrap();
        let mut difference = 0f32;
        for seed in 0..4 {
            let rng = || ChaCha8Rng::seed_from_u64(seed);
            let tiled = store.augmented("a", &mut rng()).unwrap();
            let whole = store.augmented_whole("a", &mut rng()).unwrap();
            assert_eq!(tiled.pixels.len(), tiled.grid.inputs * whole.len());
            assert_eq!(tiled.tokens, store.preparation.token_count(&tiled.grid));
            assert_eq!((tiled.grid.inputs, tiled.grid.rows, tiled.grid.columns), (3, 1, 2));
            // The complete image is the first input. Resizing before or after the shift differs a
            // little.
            let pairs = tiled.pixels.iter().zip(whole.iter());
            let total: f32 = pairs.map(|(a, b)| (a - b).abs()).sum();
            difference = difference.max(total / whole.len() as f32);
        }
        assert!(difference < 0.25, "{difference}");
        assert!(store.augmented("b", &mut ChaCha8Rng::seed_from_u64(1)).is_none());
        assert_eq!(store.digests().count(), 1);
    }
}
