//! Preferences as raters write them.

use std::cmp::Ordering;

use super::target::normalize_name;

/// A rater's preference between two responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    /// `Greater` if the first response is preferred, `Equal` for a tie, `Less` for the second.
    Order(Ordering),
    /// Text: the position of the preferred response, a word for a tie, or a model name.
    Text(String),
}

/// Words for the first response, a tie and the second response, without case, spaces and
/// punctuation.
const POSITION_WORDS: [(Ordering, &[&str]); 3] = [
    (
        Ordering::Greater,
        &[
            "a",
            "1",
            "first",
            "left",
            "modela",
            "model1",
            "responsea",
            "response1",
            "answera",
            "answer1",
        ],
    ),
    (
        Ordering::Equal,
        &[
            "c",
            "0",
            "tie",
            "ties",
            "tied",
            "equal",
            "both",
            "bothequal",
            "bothgood",
            "bothbad",
            "tiebothbad",
            "neither",
            "nopreference",
            "draw",
            "same",
            "similar",
        ],
    ),
    (
        Ordering::Less,
        &[
            "b",
            "2",
            "second",
            "right",
            "modelb",
            "model2",
            "responseb",
            "response2",
            "answerb",
            "answer2",
        ],
    ),
];

impl Vote {
    /// Parses `>`, `=` or `<`; stores any other text as [`Vote::Text`].
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            ">" => Self::Order(Ordering::Greater),
            "=" => Self::Order(Ordering::Equal),
            "<" => Self::Order(Ordering::Less),
            text => Self::Text(text.to_owned()),
        }
    }

    /// Returns the text of an order of the responses of two models: `a`, `b` or `tie`, or another text that
    /// [`order`](Self::order) accepts if a model has such a name.
    pub fn text_of(order: Ordering, models: [&str; 2]) -> &'static str {
        let texts = match order {
            Ordering::Greater => ["a", "model_a", ">"],
            Ordering::Equal => ["tie", "equal", "="],
            Ordering::Less => ["b", "model_b", "<"],
        };
        let is_clear = |text: &&str| Self::parse(text).order(models) == Ok(order);
        texts.into_iter().find(is_clear).unwrap_or(texts[2])
    }

    /// Returns the position that a text stands for: `Greater` for the first response, `Equal` for a tie,
    /// `Less` for the second; `None` for any other text.
    pub(super) fn position(text: &str) -> Option<Ordering> {
        let plain = normalize_name(text);
        let position = POSITION_WORDS.iter().find(|(_, texts)| texts.contains(&plain.as_str()));
        position.map(|(order, _)| *order)
    }

    /// Returns the order of the responses of two models.
    ///
    /// # Errors
    ///
    /// If the text is neither a position nor a model, or if it is the position of one response and
    /// the model of the other.
    pub fn order(&self, models: [&str; 2]) -> Result<Ordering, String> {
        let text = match self {
            Self::Order(order) => return Ok(*order),
            Self::Text(text) => text,
        };
        let position = Self::position(text);
        let model = models.iter().position(|model| model == text);
        let model = model.map(|i| [Ordering::Greater, Ordering::Less][i]);
        let [a, b] = models;
        match (position, model) {
            (Some(position), Some(model)) if position != model => Err(format!(
                "ambiguous preference `{text}`: the name of one model and the position of the other\n\
                 hint: write >, = or < to compare {a} and {b} in this order"
            )),
            (position, model) => model.or(position).ok_or_else(|| {
                format!(
                    "unknown preference `{text}`\n\
                     hint: write >, = or <; a, b or tie; 1, 2 or 0; or one of {a} and {b}"
                )
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering::{Equal, Greater, Less};

    use super::*;

    #[test]
    fn orders_of_any_models_can_be_read_back() {
        let names = ["m", "a", "b", "tie", "equal", "model_a", "Model_B", "1", "second"];
        for first in names {
            for second in names.into_iter().filter(|name| *name != first) {
                for order in [Less, Equal, Greater] {
                    let text = Vote::text_of(order, [first, second]);
                    assert_eq!(Vote::parse(text).order([first, second]), Ok(order), "{text}");
                }
            }
        }
        assert_eq!([Less, Equal, Greater].map(|o| Vote::text_of(o, ["m", "n"])), ["b", "tie", "a"]);
    }

    #[test]
    fn votes_parse_positions_and_models() {
        let order = |text: &str, models| Vote::parse(text).order(models);
        let plain = ["m", "n"];
        for (text, expected) in [
            (">", Greater),
            (" Model_A ", Greater),
            ("tie (bothbad)", Equal),
            ("No preference", Equal),
            ("Response 2", Less),
            ("n", Less),
        ] {
            assert_eq!(order(text, plain), Ok(expected), "{text}");
        }
        assert!(order("o", plain).unwrap_err().contains("hint:"));
        assert_eq!(order("a", ["a", "b"]), Ok(Greater));
        let both = order("a", ["b", "a"]).unwrap_err();
        assert!(both.contains("position of the other"), "{both}");
        assert_eq!(order("tie", ["b", "tie"]).ok(), None);
    }
}
