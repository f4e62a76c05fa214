//! Bodies of responses, of limited size.

use reqwest::Response;

/// Reads a body up to a number of bytes. Returns `None` if it is longer.
///
/// The body is not decompressed, so a small response cannot become a large text. The timeout of the
/// request covers its body.
///
/// # Errors
///
/// The connection fails or the request times out.
pub async fn read_body(
    response: &mut Response,
    max_bytes: usize,
) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max_bytes {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// Reads the start of the body of an error response, up to a number of bytes. A body that cannot be
/// read is empty: the status of the response matters more.
pub async fn read_error_body(response: &mut Response, max_bytes: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let missing = max_bytes - body.len();
        body.extend_from_slice(chunk.get(..missing.min(chunk.len())).unwrap_or_default());
        if body.len() == max_bytes {
            break;
        }
    }
    body
}
