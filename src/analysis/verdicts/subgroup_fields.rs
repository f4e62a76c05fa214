//! Subgroups: what is known of a case beside its verdict.

use serde_json::Value;

use super::verdict::PairVerdict;

/// Subgroups that data sets tell of, each with the names of its field in different sets.
const DIMENSIONS: [(&str, &[&str]); 6] = [
    ("data set", &["dataset", "data_set"]),
    (
        "question type",
        &["answer_type", "question_type", "content_type", "question"],
    ),
    ("modality", &["modality", "kind"]),
    ("organ", &["organ", "location", "image_organ"]),
    ("language", &["lang", "language", "q_lang"]),
    ("scenario", &["scenario"]),
];

/// Answers of up to so many words are in a bin.
const LENGTHS: [(usize, &str); 4] = [
    (5, "1-5 words"),
    (20, "6-20 words"),
    (80, "21-80 words"),
    (usize::MAX, "over 80 words"),
];

/// The subgroups of verdicts: name, and the field that tells it. A field with one value throughout, or
/// a value of its own for almost every case, makes no subgroups.
pub fn dimensions(verdicts: &[PairVerdict]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, fields) in DIMENSIONS {
        for field in fields.iter().filter(|field| varies(verdicts, field)) {
            let several = fields.iter().filter(|f| varies(verdicts, f)).count() > 1;
            let name = if several {
                format!("{name} ({field})")
            } else {
                name.to_owned()
            };
            found.push((name, (*field).to_owned()));
        }
    }
    found
}

fn varies(verdicts: &[PairVerdict], field: &str) -> bool {
    let mut values: Vec<String> = Vec::new();
    for value in verdicts.iter().filter_map(|v| v.field(field)) {
        if !values.contains(&value) {
            values.push(value);
        }
        if values.len() > 40 {
            return false;
        }
    }
    values.len() > 1
}

impl PairVerdict {
    /// A field's value as text, where it is one value.
    pub fn field(&self, name: &str) -> Option<String> {
        match self.meta.get(name)? {
            Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            _ => None,
        }
    }
}

/// The bin of an answer with so many words, and the bin's place.
pub fn length_bin(words: usize) -> (usize, &'static str) {
    let mut bins = LENGTHS.iter().enumerate();
    let found = bins.find(|(_, (most, _))| words <= *most);
    found.map_or((0, ""), |(i, (_, name))| (i, name))
}

/// The words of a text; scripts without spaces count by their characters.
pub fn words(text: &str) -> usize {
    let dense =
        |c: &char| matches!(u32::from(*c), 0x3040..=0x30FF | 0x3400..=0x9FFF | 0xAC00..=0xD7AF);
    let word = |word: &str| {
        let characters = word.chars().filter(dense).count();
        characters + usize::from(word.chars().any(|c| c.is_alphanumeric() && !dense(&c)))
    };
    text.split_whitespace().map(word).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_two_scripts() {
        assert_eq!(words("No - a small, bright mass."), 5);
        assert_eq!(words("肺部 CT"), 3);
        assert_eq!(words(""), 0);
        assert_eq!(length_bin(5).1, "1-5 words");
        assert_eq!(length_bin(6), (1, "6-20 words"));
        assert_eq!(length_bin(999).1, "over 80 words");
    }
}
