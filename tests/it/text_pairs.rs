//! The random text pairs of `assets/golden/make_text_metrics.py`, generated with the same seed.

use std::fs;
use std::path::PathBuf;

use acem3::analysis::metrics::MetricAnswer;
use serde_json::Value;

/// Returns the folder of the fixtures.
pub(crate) fn text_golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets/golden/text")
}

/// Reads a JSON fixture.
pub(crate) fn text_json(name: &str) -> Value {
    let text = fs::read_to_string(text_golden().join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The script's random number generator, with the texts that it chooses from.
pub(crate) struct TextPairGenerator {
    state: u64,
    pieces: Vec<String>,
    separators: Vec<String>,
    complete_texts: Vec<String>,
}

impl TextPairGenerator {
    /// Creates a generator.
    pub(crate) fn new(seed: u64) -> Self {
        let fixture = text_json("pieces.json");
        let strings = |name: &str| serde_json::from_value(fixture[name].clone()).unwrap();
        Self {
            state: seed,
            pieces: strings("pieces"),
            separators: strings("joints"),
            complete_texts: strings("whole"),
        }
    }

    /// Returns a number below `n`.
    fn below(&mut self, n: usize) -> usize {
        let next = self.state.wrapping_mul(6_364_136_223_846_793_005);
        self.state = next.wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % n
    }

    fn piece(&mut self) -> String {
        let i = self.below(self.pieces.len());
        self.pieces[i].clone()
    }

    /// Joins up to `max_pieces` pieces, or returns a complete text of the fixture.
    fn text(&mut self, max_pieces: usize) -> String {
        if self.below(16) == 0 {
            let i = self.below(self.complete_texts.len());
            return self.complete_texts[i].clone();
        }
        let mut text = String::new();
        for i in 0..=self.below(max_pieces) {
            let separator = self.below(self.separators.len());
            if i > 0 {
                text.push_str(&self.separators[separator]);
            }
            text.push_str(&self.piece());
        }
        text
    }

    /// Returns a text with some words replaced, doubled or removed.
    fn vary(&mut self, text: &str) -> String {
        let mut words: Vec<String> = Vec::new();
        for word in text.split(' ') {
            match self.below(10) {
                0 => words.push(self.piece()),
                1 => words.extend([word.to_owned(), word.to_owned()]),
                2 => {}
                _ => words.push(word.to_owned()),
            }
        }
        words.join(" ")
    }

    /// Generates an answer and its reference.
    pub(crate) fn pair(&mut self) -> [String; 2] {
        let max_pieces = [4, 12, 40][self.below(3)];
        let answer = self.text(max_pieces);
        let reference = if self.below(3) == 0 { self.text(max_pieces) } else { self.vary(&answer) };
        [answer, reference]
    }
}

/// Returns the first `n` pairs of the fixture.
pub(crate) fn generate_pairs(n: usize) -> Vec<[String; 2]> {
    let mut generator = TextPairGenerator::new(2026);
    (0..n).map(|_| generator.pair()).collect()
}

/// Returns an answer whose question is neither marked as open nor as closed.
pub(crate) fn metric_answer(index: usize, [text, reference]: &[String; 2]) -> MetricAnswer {
    MetricAnswer {
        case: index.to_string(),
        line: index as u64 + 1,
        model: "m".to_owned(),
        cluster: index.to_string(),
        text: text.clone(),
        reference: Some(reference.clone()),
        is_closed: None,
    }
}
