//! Compares the engine with an oracle that generates without caches or batches: it recomputes the
//! whole sequence for every token.

use acem3_experts::decoder::{BatchLayout, Head, Trunk};
use acem3_experts::generate::{GenerationSettings, GenerationTask, PrefixCache};
use acem3_experts::prompt::{PromptToken, TokenStep};
use acem3_experts::{Score, TextTokenizer};
use candle::Tensor;

use crate::tiny_panel;

/// Reference implementation of constrained greedy decoding.
struct Oracle {
    tokenizer: TextTokenizer,
    trunk: Trunk,
    heads: Vec<Head>,
    /// Number of free tokens for which a forbidden token was more probable.
    overruled: usize,
}

impl Oracle {
    /// Returns the next-token logits after a prompt, its image and the generated tokens.
    fn logits(&self, task: &GenerationTask, generated: &[u32]) -> Vec<f32> {
        let mut parts: Vec<Tensor> = Vec::new();
        for slot in task.prompt.stages.iter().flatten() {
            parts.push(match slot {
                PromptToken::Token(token) => self.trunk.embed(&[*token]).unwrap(),
                PromptToken::Image => task.image.as_ref().unwrap().tokens.clone(),
            });
        }
        parts.push(self.trunk.embed(generated).unwrap());
        let x = Tensor::cat(&parts, 0).unwrap();
        let layout = BatchLayout::causal(x.dim(0).unwrap());
        let head = &self.heads[task.member];
        let x = self.trunk.forward(&x, &layout).unwrap();
        let x = head.forward(&x, &layout).unwrap();
        let last = x.narrow(0, x.dim(0).unwrap() - 1, 1).unwrap();
        let logits = head.logits(&last.contiguous().unwrap()).unwrap();
        logits.squeeze(0).unwrap().to_vec1().unwrap()
    }

    /// Returns true for the tokens of free text: no special tokens, and no token that continues
    /// after a line break (`ĊĊ`).
    fn is_allowed(&self, token: u32) -> bool {
        let piece = self.tokenizer.token_text(token);
        piece.is_some_and(|piece| piece != "ĊĊ" && !tiny_panel::special_tokens().contains(&piece))
    }

    /// Generates free text up to a line break or the token budget. Returns the text, and true if
    /// the budget was exhausted.
    fn generate_free_text(
        &mut self,
        task: &GenerationTask,
        generated: &mut Vec<u32>,
        budget: usize,
    ) -> (String, bool) {
        let mut free_tokens = Vec::new();
        loop {
            let logits = self.logits(task, generated);
            let most_probable = |tokens: &mut dyn Iterator<Item = u32>| {
                tokens.max_by(|a, b| logits[*a as usize].total_cmp(&logits[*b as usize]))
            };
            let vocabulary = 0..logits.len() as u32;
            let mut allowed = vocabulary.clone().filter(|t| self.is_allowed(*t));
            let token = most_probable(&mut allowed).unwrap();
            let unconstrained = most_probable(&mut vocabulary.clone()).unwrap();
            self.overruled += usize::from(unconstrained != token);
            generated.push(token);
            free_tokens.push(token);
            let decoded = self.tokenizer.decode(&free_tokens).unwrap();
            let is_cut = !decoded.ends_with('\n');
            if !is_cut || free_tokens.len() == budget {
                if is_cut {
                    generated.extend(self.tokenizer.encode_quoted("\n").unwrap());
                }
                let words: Vec<&str> = decoded.split_whitespace().collect();
                return (words.join(" "), is_cut);
            }
        }
    }

    /// Generates an evaluation. Returns for each rating the analysis, whether it was cut, and the
    /// score.
    fn generate_ratings(
        &mut self,
        task: &GenerationTask,
        budget: usize,
    ) -> Vec<(String, bool, Score)> {
        let (mut generated, mut ratings) = (Vec::new(), Vec::new());
        let mut analysis = (String::new(), false);
        for step in task.format.iter() {
            match step {
                TokenStep::Literal(tokens) => generated.extend(tokens),
                TokenStep::FreeText => {
                    analysis = self.generate_free_text(task, &mut generated, budget);
                }
                TokenStep::Score(scores) => {
                    let logits = self.logits(task, &generated);
                    let score = Score::from_logits(
                        &scores.iter().map(|t| logits[*t as usize]).collect::<Vec<_>>(),
                    );
                    generated.push(scores[usize::from(score.value)]);
                    ratings.push((analysis.0.clone(), analysis.1, score));
                }
            }
        }
        ratings
    }
}

#[test]
fn engine_output_matches_oracle() {
    let tokenizer = tiny_panel::tokenizer();
    let (trunk, heads) = tiny_panel::trunk_and_heads(&tokenizer);
    let mut oracle = Oracle { tokenizer, trunk, heads, overruled: 0 };
    let engine = tiny_panel::panel(GenerationSettings { analysis_tokens: 8, scores_only: false });
    let tasks = tiny_panel::three_pair_tasks(&engine);
    let results = engine.generate(&tasks, &mut PrefixCache::default()).unwrap();
    let (mut uncut, mut several_words) = (0, 0);
    // Every second task still covers all pairs, presentation orders and experts.
    for (task, got) in tasks.iter().zip(results).step_by(2) {
        let got = got.unwrap();
        let want = oracle.generate_ratings(task, 8);
        assert_eq!(got.len(), want.len());
        for (got, (analysis, is_cut, score)) in got.iter().zip(want) {
            assert_eq!((&got.analysis, got.cut), (&analysis, is_cut));
            assert_eq!(got.score.value, score.value);
            let pairs = got.score.probabilities.iter().zip(score.probabilities);
            assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-4));
            uncut += usize::from(!is_cut);
            several_words += usize::from(analysis.contains(' '));
        }
    }
    // The test covers every rule of free text.
    assert!(oracle.overruled > 50 && uncut > 5 && several_words > 5);
}
