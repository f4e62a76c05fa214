//! The random pairs of texts of `assets/golden/make_text_metrics.py`, drawn once more.

use std::fs;
use std::path::PathBuf;

use acem3::analysis::metrics::MetricAnswer;
use serde_json::Value;

pub(crate) fn text_golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets/golden/text")
}

pub(crate) fn text_json(name: &str) -> Value {
    let text = fs::read_to_string(text_golden().join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The script's generator and what it draws from.
pub(crate) struct Draw {
    state: u64,
    pieces: Vec<String>,
    joints: Vec<String>,
    whole: Vec<String>,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        let kept = text_json("pieces.json");
        let strings = |name: &str| serde_json::from_value(kept[name].clone()).unwrap();
        Self {
            state: seed,
            pieces: strings("pieces"),
            joints: strings("joints"),
            whole: strings("whole"),
        }
    }

    fn below(&mut self, n: usize) -> usize {
        let next = self.state.wrapping_mul(6_364_136_223_846_793_005);
        self.state = next.wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % n
    }

    fn piece(&mut self) -> String {
        let i = self.below(self.pieces.len());
        self.pieces[i].clone()
    }

    fn text(&mut self, most: usize) -> String {
        if self.below(16) == 0 {
            let i = self.below(self.whole.len());
            return self.whole[i].clone();
        }
        let mut drawn = String::new();
        for i in 0..=self.below(most) {
            let joint = self.below(self.joints.len());
            if i > 0 {
                drawn.push_str(&self.joints[joint]);
            }
            drawn.push_str(&self.piece());
        }
        drawn
    }

    fn like(&mut self, text: &str) -> String {
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

    /// An answer and its reference.
    pub(crate) fn pair(&mut self) -> [String; 2] {
        let most = [4, 12, 40][self.below(3)];
        let answer = self.text(most);
        let reference = if self.below(3) == 0 {
            self.text(most)
        } else {
            self.like(&answer)
        };
        [answer, reference]
    }
}

/// The first pairs of the fixture.
pub(crate) fn pairs(n: usize) -> Vec<[String; 2]> {
    let mut draw = Draw::new(2026);
    (0..n).map(|_| draw.pair()).collect()
}

/// An answer of which nobody knows whether its question is open.
pub(crate) fn answer(index: usize, [text, reference]: &[String; 2]) -> MetricAnswer {
    MetricAnswer {
        case: index.to_string(),
        line: index as u64 + 1,
        model: "m".to_owned(),
        cluster: index.to_string(),
        text: text.clone(),
        reference: Some(reference.clone()),
        closed: None,
    }
}
