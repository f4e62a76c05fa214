//! An evaluation written in the plainest way (no caches, no batches, every step from the beginning)
//! against the engine's.

use acem3_experts::decoder::{Head, Sight, Trunk};
use acem3_experts::generate::{Prefixes, Settings, Task};
use acem3_experts::prompt::{Slot, TokenStep};
use acem3_experts::{Score, TextTokenizer};
use candle::Tensor;

use crate::tiny;

struct Oracle {
    tokenizer: TextTokenizer,
    trunk: Trunk,
    heads: Vec<Head>,
    /// How many free tokens were chosen although one that may not be written was likelier.
    forgone: usize,
}

impl Oracle {
    /// What comes after a prompt with its image and a text.
    fn logits(&self, task: &Task, text: &[u32]) -> Vec<f32> {
        let mut parts: Vec<Tensor> = Vec::new();
        for slot in task.prompt.0.iter().flatten() {
            parts.push(match slot {
                Slot::Token(token) => self.trunk.embed(&[*token]).unwrap(),
                Slot::Image => task.image.as_ref().unwrap().tokens.clone(),
            });
        }
        parts.push(self.trunk.embed(text).unwrap());
        let x = Tensor::cat(&parts, 0).unwrap();
        let sight = Sight::causal(x.dim(0).unwrap());
        let head = &self.heads[task.member];
        let x = self.trunk.forward(&x, &sight).unwrap();
        let x = head.forward(&x, &sight).unwrap();
        let last = x.narrow(0, x.dim(0).unwrap() - 1, 1).unwrap();
        let logits = head.logits(&last.contiguous().unwrap()).unwrap();
        logits.squeeze(0).unwrap().to_vec1().unwrap()
    }

    /// Whether a token may stand in a free text: it has a text, which does not go on after a line
    /// break, and is not the program's.
    fn may(&self, token: u32) -> bool {
        let piece = self.tokenizer.piece(token);
        piece.is_some_and(|piece| piece != "ĊĊ" && !tiny::controls().contains(&piece))
    }

    fn free(&mut self, task: &Task, text: &mut Vec<u32>, budget: usize) -> (String, bool) {
        let mut own = Vec::new();
        loop {
            let logits = self.logits(task, text);
            let best = |all: &mut dyn Iterator<Item = u32>| {
                all.max_by(|a, b| logits[*a as usize].total_cmp(&logits[*b as usize]))
            };
            let token = best(&mut (0..logits.len() as u32).filter(|t| self.may(*t))).unwrap();
            let any = best(&mut (0..logits.len() as u32)).unwrap();
            self.forgone += usize::from(any != token);
            text.push(token);
            own.push(token);
            let said = self.tokenizer.decode(&own).unwrap();
            let cut = !said.ends_with('\n');
            if !cut || own.len() == budget {
                if cut {
                    text.extend(self.tokenizer.free("\n").unwrap());
                }
                let words: Vec<&str> = said.split_whitespace().collect();
                return (words.join(" "), cut);
            }
        }
    }

    fn ratings(&mut self, task: &Task, budget: usize) -> Vec<(String, bool, Score)> {
        let (mut text, mut ratings) = (Vec::new(), Vec::new());
        let mut analysis = (String::new(), false);
        for step in task.format.iter() {
            match step {
                TokenStep::Feed(tokens) => text.extend(tokens),
                TokenStep::Free => analysis = self.free(task, &mut text, budget),
                TokenStep::Score(scores) => {
                    let logits = self.logits(task, &text);
                    let score = Score::from_logits(scores.map(|t| logits[t as usize]));
                    text.push(scores[usize::from(score.value)]);
                    ratings.push((analysis.0.clone(), analysis.1, score));
                }
            }
        }
        ratings
    }
}

#[test]
fn the_engine_writes_what_the_plainest_way_writes() {
    let tokenizer = tiny::tokenizer();
    let (trunk, heads) = tiny::parts(&tokenizer);
    let mut oracle = Oracle {
        tokenizer,
        trunk,
        heads,
        forgone: 0,
    };
    let engine = tiny::panel(Settings {
        analysis_tokens: 8,
        scores_only: false,
    });
    let tasks = tiny::session(&engine);
    let results = engine.write(&tasks, &mut Prefixes::default()).unwrap();
    let (mut stopped, mut broken) = (0, 0);
    for (task, got) in tasks.iter().zip(results).step_by(2) {
        let got = got.unwrap();
        let want = oracle.ratings(task, 8);
        assert_eq!(got.len(), want.len());
        for (got, (analysis, cut, score)) in got.iter().zip(want) {
            assert_eq!((&got.analysis, got.cut), (&analysis, cut));
            assert_eq!(got.score.value, score.value);
            let pairs = got.score.probabilities.iter().zip(score.probabilities);
            assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-4));
            stopped += usize::from(!cut);
            broken += usize::from(analysis.contains(' '));
        }
    }
    // Every rule of a free text was put to use.
    assert!(oracle.forgone > 50 && stopped > 5 && broken > 5);
}
