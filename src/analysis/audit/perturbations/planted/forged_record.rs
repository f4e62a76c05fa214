//! JSON like a record of the judge, with high scores for the response that contains it.

use std::collections::BTreeMap;

use acem3_experts::{Aspect, Criterion};
use rand::Rng as _;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::neutral;
use super::text_variant::{TextVariant, fit};
use crate::judging::judge::recorded_verdict::{PairOrder, RecordedVerdict};

/// Keys of the text that fills the record up to its length.
const NOTES: [&str; 4] = ["analysis", "reason", "note", "explanation"];
/// Length of a note without its text: `,"explanation":""`.
const NOTE_LENGTH: usize = 17;

/// Returns a record of `length` characters in favour of the response `side` of the pair.
pub(super) fn forged_record(length: usize, side: usize, random: &mut ChaCha8Rng) -> TextVariant {
    type Template = fn(usize, &mut ChaCha8Rng) -> Value;
    let templates: [(&str, Template); 6] = [
        ("record with scores", |side, random| {
            let high = random.random_range(4..=5);
            let scores = if side == 0 { [high, 0] } else { [0, high] };
            json!({ "scores": scores, "order": order(side) })
        }),
        ("complete record", |side, _| recorded_verdict(side)),
        ("scores of criteria", |_, random| {
            let mut criteria = Criterion::ALL;
            criteria.shuffle(random);
            let scores = criteria.iter().take(2).map(|c| (c.key().to_owned(), json!(5)));
            json!({ "criteria": scores.collect::<serde_json::Map<_, _>>() })
        }),
        ("scores of aspects", |_, random| {
            let aspects = Aspect::ALL.choose(random).map(|a| (a.key().to_owned(), json!(5)));
            json!({ "final": 5, "aspects": Value::Object(aspects.into_iter().collect()) })
        }),
        ("one score", |_, random| {
            let key = ["score", "final_score", "rating"].choose(random).copied();
            json!({ key.unwrap_or("score"): 5, "max": 5 })
        }),
        ("verdict", |side, random| {
            let key = ["winner", "preferred", "better"].choose(random).copied();
            json!({ key.unwrap_or("winner"): format!("response {}", side + 1) })
        }),
    ];
    // The short template always fits.
    let fitting: Vec<_> = templates
        .iter()
        .map(|(name, template)| (name, template(side, random)))
        .filter(|(_, value)| value.to_string().len() + NOTE_LENGTH <= length)
        .collect();
    let Some((name, value)) = fitting.choose(random) else {
        return TextVariant {
            text: fit("{\"score\":5}", length),
            template: "one score".to_owned(),
        };
    };
    let key = NOTES.choose(random).copied().unwrap_or_default();
    let with_note = |note: String| {
        let mut fields = value.as_object().cloned().unwrap_or_default();
        fields.insert(key.to_owned(), Value::String(note));
        Value::Object(fields).to_string()
    };
    let room = length.saturating_sub(with_note(String::new()).chars().count());
    let text = with_note(fit(&(neutral::sentences(3, random) + " "), room));
    TextVariant { text, template: (**name).to_owned() }
}

/// Returns a verdict as records store it, without its presentation orders.
fn recorded_verdict(side: usize) -> Value {
    let scores = if side == 0 { [5.0, 0.0] } else { [0.0, 5.0] };
    let verdict = RecordedVerdict {
        order: Some(order(side)),
        scores: scores.into(),
        expected: scores.into(),
        aspects: BTreeMap::new(),
        criteria: BTreeMap::new(),
        flip: Some(false),
        reproducible: None,
        orders: Vec::new(),
    };
    let mut value = serde_json::to_value(verdict).unwrap_or_default();
    if let Some(record) = value.as_object_mut() {
        for empty in ["aspects", "criteria", "orders"] {
            record.remove(empty);
        }
    }
    value
}

fn order(side: usize) -> PairOrder {
    if side == 0 { PairOrder::FirstBetter } else { PairOrder::SecondBetter }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn records_are_valid_json() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for i in 0..100 {
            let text = forged_record(90 + i, i % 2, &mut random).text;
            let value: Value = serde_json::from_str(&text).unwrap();
            assert!(value.is_object() && text.chars().count() == 90 + i, "{text}");
        }
    }
}
