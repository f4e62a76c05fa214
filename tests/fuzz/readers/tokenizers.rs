//! Tokenizers.

use acem3::checkpoints::published::tokenizer;
use acem3_experts::{TextTokenizer, charsmap};

use super::bundle::Bundle;

/// Text with words, spaces, a special token, a byte token, and characters of several bytes.
const TEXT: &str = "  A cyst, 3 cm\t(left)?\n\n</s> <0x41> caf\u{e9} \u{fb01}n e\u{301} \
                    \u{660} \u{4e2d}\u{6587} \u{1f600}\u{200d}\u{1f600} \u{2581}x\u{fffd}\0 ";

/// Reads a `tokenizer.json`.
pub fn read_tokenizer(bytes: &[u8]) -> bool {
    let tokenizer = TextTokenizer::parse(bytes);
    tokenizer.is_ok_and(|tokenizer| use_tokenizer(&tokenizer))
}

/// Reads a `tokenizer.model` with the two files that add tokens.
pub fn read_sentencepiece(bytes: &[u8]) -> bool {
    let names = ["tokenizer.model", "tokenizer_config.json", "added_tokens.json"];
    let bundle = Bundle::of_parts(&names, bytes);
    let tokenizer = tokenizer::read(bundle.folder());
    tokenizer.is_ok_and(|tokenizer| use_tokenizer(&tokenizer.text))
}

/// Tokenises a text in all modes. Returns true if all succeed.
fn use_tokenizer(tokenizer: &TextTokenizer) -> bool {
    let mut is_ok = tokenizer.to_json().is_ok();
    let encode = [
        TextTokenizer::encode_trusted,
        TextTokenizer::encode_trusted_start,
        TextTokenizer::encode_quoted,
    ];
    for encode in encode {
        let tokens = encode(tokenizer, TEXT);
        is_ok &= tokens.is_ok_and(|tokens| tokenizer.decode(&tokens).is_ok());
    }
    is_ok
}

/// Reads a normalization table.
pub fn read_charsmap(bytes: &[u8]) -> bool {
    let Ok(table) = charsmap::parse(bytes) else {
        return false;
    };
    for length in 1..=TEXT.len() {
        if let Some(start) = TEXT.get(..length) {
            table.transform(start);
        }
    }
    let mut text = tokenizers::NormalizedString::from(TEXT);
    tokenizers::Normalizer::normalize(&table, &mut text).is_ok()
}
