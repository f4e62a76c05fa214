//! The image of a pair as a part of a message.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::data::images::encode_png;
use crate::judging::judge::JudgeJob;

/// Encodes the image of a pair as a URL with its bytes; `None` if it has no image.
///
/// # Errors
/// If the image cannot be encoded.
pub(crate) fn encode_image_url(job: &JudgeJob) -> Result<Option<String>> {
    let Some(image) = &job.image else {
        return Ok(None);
    };
    let bytes = encode_png(&image.decoded).with_context(|| image.name.clone())?;
    Ok(Some(format!("data:image/png;base64,{}", STANDARD.encode(bytes))))
}

/// Returns the messages of a request: one user message with the text and the image.
pub(crate) fn user_message(text: &str, image: Option<&str>) -> Value {
    let mut content = Vec::new();
    if let Some(url) = image {
        content.push(json!({"type": "image_url", "image_url": {"url": url}}));
    }
    content.push(json!({"type": "text", "text": text}));
    json!([{"role": "user", "content": content}])
}
