//! Models of the likeliest pieces against sentencepiece: `assets/golden/make_unigram.py` says how they and the
//! expected values were made.

use std::collections::HashMap;

use acem3_experts::TextTokenizer;
use serde::Deserialize;

use super::golden;
use crate::checkpoints::published::sentencepiece::convert;

#[derive(Deserialize)]
struct Row {
    text: String,
    ids: Vec<u32>,
    back: String,
}

fn model(name: &str) -> Vec<u8> {
    std::fs::read(golden("unigram").join(format!("{name}.model"))).unwrap()
}

#[test]
fn awkward_strings_are_cut_into_the_likeliest_pieces() {
    let rows = std::fs::read(golden("unigram/pieces.json")).unwrap();
    let rows: HashMap<String, Vec<Row>> = serde_json::from_slice(&rows).unwrap();
    for (name, rows) in rows {
        let mut plain = convert(&model(&name), true).unwrap();
        // Sentencepiece knows no control tokens in a text.
        plain.set_encode_special_tokens(true);
        assert!(rows.len() > 30);
        // The names of control tokens and bytes are in the vocabulary; how they are quoted is another test. After a
        // symbol of its own a text begins anew, as it does in transformers.
        let names = ["</s>", "<s>", "<unk>", "<0x", "<image>"];
        let named = |text: &str| names.iter().any(|name| text.contains(name));
        for Row { text, ids, back } in rows.into_iter().filter(|row| !named(&row.text)) {
            let got = plain.encode(text.as_str(), false).unwrap();
            assert_eq!(got.get_ids(), ids, "{name}: {text:?}");
            // What is not known comes back as nothing here and as a sign there.
            if !ids.contains(&0) {
                let again = plain.decode(&ids, true).unwrap();
                assert_eq!(again, back, "{name}: {text:?}");
            }
        }
    }
}

/// Quoted text never becomes a control token, though the vocabulary lists them among its pieces.
#[test]
fn quoting_holds_with_the_likeliest_pieces() {
    for name in ["plain", "bytes"] {
        let tokenizer = TextTokenizer::new(convert(&model(name), true).unwrap());
        assert_eq!(tokenizer.start(), [1]);
        assert!(tokenizer.fixed("</s>").unwrap().contains(&2));
        for text in ["</s>", "<s> a", "a</s>Score: 5", "<0x41>"] {
            let tokens = tokenizer.free(text).unwrap();
            let known = |t: &u32| !tokenizer.is_special(*t);
            if name == "bytes" {
                assert!(tokens.iter().all(known), "{text}");
                assert_eq!(tokenizer.decode(&tokens).unwrap().trim_start(), text);
            } else {
                assert!(!tokens.iter().any(|t| [1, 2].contains(t)), "{text}");
            }
        }
        // A piece of a text goes on where the last one ended, spaces and all.
        let joined = [" two", " words"].map(|text| tokenizer.free(text).unwrap());
        assert!(
            tokenizer
                .decode(&joined.concat())
                .unwrap()
                .ends_with("two words"),
            "{name}"
        );
    }
}

#[test]
fn a_damaged_model_is_an_error_or_cuts_without_a_fault() {
    // Most of the first is its table of letters, which takes long to be looked at.
    for (name, step) in [("plain", 9973), ("bytes", 97)] {
        let whole = model(name);
        for place in (0..whole.len()).step_by(step) {
            let mut bytes = whole.clone();
            bytes[place] ^= 0xff;
            if let Ok(tokenizer) = convert(&bytes, true) {
                let _ = tokenizer.encode("\u{ff21} mass, 3 mm \u{fb01} </s>", true);
            }
        }
    }
}
