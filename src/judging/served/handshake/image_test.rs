//! Tests whether a model sees images: an image makes the prompt longer.

use acem3_experts::prompt::PromptPiece;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder as _};
use serde_json::value::RawValue;

use super::error::{HandshakeError, request_error};
use super::prompt_counter::PromptCounter;
use crate::judging::served::exchange::message::content_parts;
use crate::judging::served::transport::RequestError;

/// Side of the test image in pixels.
const SIDE: u32 = 64;

/// Returns the number of tokens of an image; `None` if the model does not see images.
///
/// # Errors
///
/// The server cannot be reached.
pub(super) async fn count_image_tokens(
    counter: PromptCounter<'_>,
) -> Result<Option<u64>, HandshakeError> {
    let Some(image) = test_image() else {
        return Ok(None);
    };
    let model = counter.model;
    let pieces = [PromptPiece::Image, PromptPiece::Trusted("What does it show?".to_owned())];
    let without = counter.count(&content_parts(&pieces, None), None).await;
    let without = without.map_err(request_error(model))?;
    let with = match counter.count(&content_parts(&pieces, Some(&image)), None).await {
        Ok(with) => with,
        // The server takes no images.
        Err(RequestError::Rejected(_) | RequestError::Failed(_) | RequestError::Broken(_)) => {
            return Ok(None);
        }
        Err(error) => return Err(request_error(model)(error)),
    };
    Ok(with.zip(without).and_then(|(with, without)| with.checked_sub(without)).filter(|n| *n > 0))
}

/// Returns a small image as a data URL: a bright square on a dark ground.
fn test_image() -> Option<Box<RawValue>> {
    let pixel = |i: u32| {
        let (x, y) = (i % SIDE, i / SIDE);
        let is_inside = (16..48).contains(&x) && (16..48).contains(&y);
        [if is_inside { 220_u8 } else { 40 }; 3]
    };
    let pixels: Vec<u8> = (0..SIDE * SIDE).flat_map(pixel).collect();
    let mut png = Vec::new();
    let written =
        PngEncoder::new(&mut png).write_image(&pixels, SIDE, SIDE, ExtendedColorType::Rgb8);
    written.ok()?;
    RawValue::from_string(format!("\"data:image/png;base64,{}\"", STANDARD.encode(png))).ok()
}
