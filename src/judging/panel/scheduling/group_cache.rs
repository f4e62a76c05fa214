//! Caches of a group of members that share a trunk. They never affect verdicts.

use std::collections::HashMap;
use std::sync::Arc;

use acem3_experts::generate::{ImageTokens, PrefixCache};
use anyhow::{Context as _, Result};

use crate::data::cases::UnscoredReason;
use crate::data::images::LoadedImage;
use crate::judging::judge::Unscored;
use crate::judging::panel::trunk_group::TrunkGroup;

/// Maximum number of cached image tokens per trunk group.
const MAX_CACHED_TOKENS: usize = 1 << 14;

/// Caches of a trunk group.
#[derive(Default)]
pub(in crate::judging::panel) struct GroupCache {
    /// Keys and values of prompts that later prompts start with.
    pub(in crate::judging::panel) prefixes: PrefixCache,
    images: HashMap<String, Arc<ImageTokens>>,
}

impl GroupCache {
    /// Returns the tokens of an image. Each image is encoded alone, so its tokens do not depend on
    /// other images.
    pub(in crate::judging::panel) fn encode_image(
        &mut self,
        group: &TrunkGroup,
        image: &LoadedImage,
    ) -> Result<Result<Option<Arc<ImageTokens>>, Unscored>> {
        let Some(image_encoder) = &group.image_encoder else {
            return Ok(Ok(None));
        };
        let key = image.sha256.to_string();
        if let Some(tokens) = self.images.get(&key) {
            return Ok(Ok(Some(tokens.clone())));
        }
        let encoded = image_encoder.encode(&image.decoded).with_context(|| image.name.clone())?;
        let tokens = match encoded {
            Ok(tokens) => tokens,
            Err(error) => {
                let message = format!("{}: {error}", image.name);
                return Ok(Err(Unscored::new(UnscoredReason::Image, message)));
            }
        };
        let tokens = Arc::new(ImageTokens { key: key.clone(), tokens });
        let lengths = self.images.values().map(|cached| cached.tokens.dim(0));
        let cached_tokens = lengths.sum::<candle::Result<usize>>()?;
        if cached_tokens + tokens.tokens.dim(0)? > MAX_CACHED_TOKENS {
            self.images.clear();
        }
        self.images.insert(key, tokens.clone());
        Ok(Ok(Some(tokens)))
    }
}
