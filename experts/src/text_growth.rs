//! Growth of a text by the normalizers and decoders in a `tokenizer.json`.
//!
//! A chain of replacements, each of which doubles a text, is a file of a few kilobytes that makes a
//! short text take gigabytes.

use serde_json::{Map, Value};

use crate::Error;
use crate::charsmap::MAX_REPLACEMENT_LEN;

/// Maximum growth of a text, in bytes per byte. Known tokenizers have a normalization table and
/// write a space as U+2581.
const MAX_GROWTH: usize = 3 * MAX_REPLACEMENT_LEN;

/// Checks a parsed `tokenizer.json`.
///
/// # Errors
/// The normalizers or the decoders make a text grow too much.
pub(crate) fn check_tokenizer(json: &Value) -> Result<(), Error> {
    for part in ["normalizer", "decoder"] {
        let growth = json.get(part).map_or(1, max_growth);
        if growth > MAX_GROWTH {
            return Err(Error::Tokenizer(format!(
                "{part}: a text can become {growth} times as long, expected at most {MAX_GROWTH}"
            )));
        }
    }
    Ok(())
}

/// Returns the maximum growth by all steps in a value.
fn max_growth(json: &Value) -> usize {
    let product = |growth: usize, value: &Value| growth.saturating_mul(max_growth(value));
    match json {
        Value::Array(values) => values.iter().fold(1, product),
        Value::Object(fields) => fields.values().fold(step_growth(fields), product),
        _ => 1,
    }
}

/// Returns the maximum growth by one step: a replacement, a normalization table or a prefix.
fn step_growth(fields: &Map<String, Value>) -> usize {
    let length = |value: Option<&Value>| value.and_then(Value::as_str).map_or(0, str::len);
    if fields.contains_key("precompiled_charsmap") {
        return MAX_REPLACEMENT_LEN;
    }
    // A prefix is added once to each text; only a long one matters.
    let prefix = length(fields.get("prepend"));
    let content = length(fields.get("content"));
    let pattern = fields.get("pattern").and_then(|pattern| pattern.get("String"));
    let replacement = content.div_ceil(length(pattern).max(1)).max(1);
    replacement.saturating_mul(1 + prefix / 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn replace(pattern: &str, content: &str) -> Value {
        json!({"type": "Replace", "pattern": {"String": pattern}, "content": content})
    }

    fn check(normalizers: &[Value]) -> Result<(), Error> {
        check_tokenizer(&json!({"normalizer": {"type": "Sequence", "normalizers": normalizers}}))
    }

    #[test]
    fn chain_of_replacements_is_limited() {
        let error = check(&vec![replace("a", "aa"); 20]).unwrap_err().to_string();
        assert!(error.contains("normalizer: a text can become 1048576 times as long"), "{error}");
        let json = json!({"decoder": replace("", &"a".repeat(1000))});
        assert!(check_tokenizer(&json).is_err());
        assert!(check(&[json!({"type": "Prepend", "prepend": "a".repeat(100_000)})]).is_err());
    }

    #[test]
    fn steps_of_known_tokenizers_are_accepted() {
        let table = json!({"type": "Precompiled", "precompiled_charsmap": ""});
        let spaces =
            json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u{2581}"});
        check(&[table, spaces]).unwrap();
        let prepend = json!({"type": "Prepend", "prepend": "\u{2581}"});
        check(&[prepend, replace(" ", "\u{2581}"), replace("``", "\"")]).unwrap();
    }
}
