//! A preference in the words people use.

use std::cmp::Ordering;

use super::target::plain;

/// Which of two responses somebody prefers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    /// The first, neither, or the second.
    Order(Ordering),
    /// What somebody wrote: the place of the better one, that there is none, or the name of its model.
    Words(String),
}

/// Words for the first of two, for neither, and for the second, without case, spaces and punctuation.
const WORDS: [(Ordering, &[&str]); 3] = [
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
    /// A vote: `>`, `=` or `<`, else words.
    pub fn read(text: &str) -> Self {
        match text.trim() {
            ">" => Self::Order(Ordering::Greater),
            "=" => Self::Order(Ordering::Equal),
            "<" => Self::Order(Ordering::Less),
            words => Self::Words(words.to_owned()),
        }
    }

    /// The order of the two responses of these models.
    ///
    /// # Errors
    ///
    /// If the words name neither a place nor a model, or the place of one and the model of the other.
    pub fn order(&self, models: [&str; 2]) -> Result<Ordering, String> {
        let words = match self {
            Self::Order(order) => return Ok(*order),
            Self::Words(words) => words,
        };
        let plain = plain(words);
        let place = WORDS.iter().find(|(_, of)| of.contains(&plain.as_str()));
        let place = place.map(|(order, _)| *order);
        let model = models.iter().position(|model| model == words);
        let model = model.map(|i| [Ordering::Greater, Ordering::Less][i]);
        let [a, b] = models;
        match (place, model) {
            (Some(place), Some(model)) if place != model => Err(format!(
                "the preference `{words}` is the name of one model and the place of another\n\
                 hint: write >, = or <, of {a} and {b} in this order"
            )),
            (place, model) => model.or(place).ok_or_else(|| {
                format!(
                    "the preference `{words}` cannot be told\n\
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
    fn places_names_and_what_could_be_both() {
        let order = |text: &str, models| Vote::read(text).order(models);
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
        assert!(both.contains("place of another"), "{both}");
        assert_eq!(order("tie", ["b", "tie"]).ok(), None);
    }
}
