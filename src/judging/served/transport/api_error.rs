//! Messages of error responses. Servers write them in several shapes.

use std::borrow::Cow;

use serde_json::Value;

use crate::support::network::access_token::AccessToken;
use crate::support::network::url_secrets::hide_url_secrets;
use crate::support::text::escape_control_chars;

/// Maximum characters of a message.
const MAX_CHARACTERS: usize = 300;

/// Returns the message of an error response on one line: that of `error.message` (OpenAI, vLLM,
/// llama.cpp), `error` or `message` (SGLang), `detail` (`FastAPI`), or the start of the body. `key`: the
/// key of the server, which is hidden before the message is cut.
pub(super) fn error_message(body: &[u8], key: Option<&AccessToken>) -> String {
    let text = String::from_utf8_lossy(body);
    let json: Option<Value> = serde_json::from_str(&text).ok();
    let message = json.as_ref().and_then(|json| {
        let candidates =
            [&json["error"]["message"], &json["error"], &json["message"], &json["detail"]];
        candidates.into_iter().find_map(Value::as_str)
    });
    let line = message.unwrap_or(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    let line = key.map_or(Cow::Borrowed(line.as_str()), |key| key.hide_in(&line));
    let line = hide_url_secrets(&escape_control_chars(&line)).into_owned();
    if line.is_empty() {
        return "without a message".to_owned();
    }
    line.chars().take(MAX_CHARACTERS).collect()
}

/// Returns true if a message says that a prompt is longer than the context of the model.
pub(super) fn says_too_long(message: &str) -> bool {
    let message = message.to_lowercase();
    let names_limit =
        ["context length", "context size", "context window", "max_model_len", "maximum length"];
    names_limit.iter().any(|name| message.contains(name))
        || (message.contains("token")
            && (message.contains("exceed") || message.contains("too long")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_all_shapes_are_found() {
        for (body, expected) in [
            (
                r#"{"error":{"message":"bad\nregex","type":"BadRequestError","code":400}}"#,
                "bad regex",
            ),
            (r#"{"error":"Unauthorized"}"#, "Unauthorized"),
            (r#"{"object":"error","message":"flat"}"#, "flat"),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            ("Internal Server Error", "Internal Server Error"),
            ("", "without a message"),
        ] {
            assert_eq!(error_message(body.as_bytes(), None), expected);
        }
        assert_eq!(error_message(&vec![b'x'; 10_000], None).len(), MAX_CHARACTERS);
    }

    #[test]
    fn key_is_hidden_before_the_message_is_cut() {
        let key = AccessToken::new("sk-0123456789").unwrap();
        for before in [0, 290, 295, 299] {
            let body = format!("{}Bearer sk-0123456789 is wrong", "x".repeat(before));
            let message = error_message(body.as_bytes(), Some(&key));
            assert!(!message.contains("sk-"), "{message}");
        }
    }

    #[test]
    fn long_prompts_are_recognised() {
        for message in [
            "This model's maximum context length is 4096 tokens. However, you requested",
            "the request exceeds the available context size (4096 tokens), try increasing it",
            "Requested tokens (5000) exceed context window of 4096",
        ] {
            assert!(says_too_long(message), "{message}");
        }
        assert!(!says_too_long("unknown token in the grammar"));
    }
}
