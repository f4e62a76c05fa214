//! Training sequence: a shared prefix with branches that attend to it but not to each other.
//!
//! One forward pass computes the prefix once for the three evaluations of a pair, or for many
//! questions about one image.

use acem3_vision::TileGrid;
use candle::Tensor;

use super::sequence_input::SequenceInput;
use super::training_image::{ImageSpan, TrainingImage};
use crate::Error;
use crate::prompt::PromptToken;

/// A token that the model learns to predict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetToken {
    /// Index of the token before it, whose logits predict it.
    pub source_index: usize,
    /// Id of the predicted token.
    pub token: u32,
    /// Weight of its loss.
    pub weight: f32,
    /// Branch of the token.
    pub branch: u16,
}

/// Two tokens after which the model should predict the same distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EqualPrediction {
    /// Indices of the two tokens.
    pub source_indices: [usize; 2],
    /// Weight of the loss.
    pub weight: f32,
}

/// Tokens with their branches, positions and targets.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// Input in addition to the tokens.
    pub input: SequenceInput,
    /// Token ids. Image tokens have the id zero.
    pub tokens: Vec<u32>,
    /// Branch of each token; the prefix is branch 0.
    pub branches: Vec<u16>,
    /// Position of each token in the text that consists of the prefix and the token's branch.
    pub positions: Vec<u32>,
    /// The image tokens; `None` without an image.
    pub image: Option<ImageSpan>,
    /// Tokens that the model learns to predict.
    pub targets: Vec<TargetToken>,
    /// Pairs of tokens after which the predictions should be equal.
    pub equal_predictions: Vec<EqualPrediction>,
    prefix_len: usize,
    branch_count: u16,
}

impl Sequence {
    /// Creates a sequence with a prompt as its prefix. The prompt has no targets. Each
    /// [`PromptToken::Image`] becomes the tokens of `image`.
    pub fn new(prompt: &[PromptToken], image: Option<TrainingImage>) -> Self {
        let span = match &image {
            Some(image) => ImageSpan { start: 0, tokens: image.tokens, grid: image.grid },
            // Without the image, computing the sequence is an error.
            None => ImageSpan { start: 0, tokens: 0, grid: TileGrid::whole((0, 0)) },
        };
        let mut sequence = Self {
            input: image.map_or(SequenceInput::Text, |image| SequenceInput::Pixels(image.pixels)),
            ..Self::default()
        };
        for prompt_token in prompt {
            match prompt_token {
                PromptToken::Token(token) => sequence.push(*token, 0),
                PromptToken::Image => {
                    sequence.image = Some(ImageSpan { start: sequence.tokens.len(), ..span });
                    (0..span.tokens).for_each(|_| sequence.push(0, 0));
                }
            }
        }
        sequence.prefix_len = sequence.tokens.len();
        sequence
    }

    /// Appends a branch of tokens, each with the weight of its loss. Tokens of weight zero are
    /// context only.
    pub fn push_branch(&mut self, tokens: impl IntoIterator<Item = (u32, f32)>) {
        self.branch_count += 1;
        let branch = self.branch_count;
        let mut source_index = self.prefix_len.checked_sub(1);
        let start = self.tokens.len();
        for (i, (token, weight)) in tokens.into_iter().enumerate() {
            if let (Some(source_index), true) = (source_index, weight > 0.0) {
                self.targets.push(TargetToken { source_index, token, weight, branch });
            }
            source_index = Some(start + i);
            self.tokens.push(token);
            self.branches.push(branch);
            self.positions.push((self.prefix_len + i) as u32);
        }
    }

    /// Appends two branches whose last `count` tokens are the same, and compares the predictions of these
    /// tokens. Like in [`Self::push_branch`], each token has the weight of its own loss. `weight` is the
    /// weight of each comparison.
    ///
    /// # Errors
    /// The branches end with different tokens, or have no token before them.
    pub fn push_equal_branches(
        &mut self,
        branches: [&[(u32, f32)]; 2],
        count: usize,
        weight: f32,
    ) -> Result<(), Error> {
        let ends = branches.map(|tokens| tokens.len().checked_sub(count + 1));
        let (Some(first_end), Some(second_end)) = (ends[0], ends[1]) else {
            let message = format!("a branch has no token before its last {count}");
            return Err(Error::Training(message));
        };
        let end = |branch: usize| branches[branch].iter().rev().take(count).map(|(token, _)| token);
        if !end(0).eq(end(1)) {
            return Err(Error::Training("the branches end with different tokens".to_owned()));
        }
        let starts = branches.map(|tokens| {
            let start = self.tokens.len();
            self.push_branch(tokens.iter().copied());
            start
        });
        self.equal_predictions.extend((0..count).map(|i| EqualPrediction {
            source_indices: [starts[0] + first_end + i, starts[1] + second_end + i],
            weight,
        }));
        Ok(())
    }

    /// Creates a sequence of the prefix and some of the branches, which are renumbered from one in
    /// the order of `branches`. Hidden states in the input are selected with their tokens.
    ///
    /// Also returns the indices of the selected tokens in this sequence.
    pub fn select_branches(&self, branches: &[u16]) -> candle::Result<(Self, Vec<u32>)> {
        let new_number = |branch: u16| {
            let index = branches.iter().position(|selected| *selected == branch);
            if branch == 0 { Some(0) } else { index.map(|index| index as u16 + 1) }
        };
        let mut selection = Self {
            image: self.image,
            prefix_len: self.prefix_len,
            branch_count: branches.len() as u16,
            ..Self::default()
        };
        let mut selected_indices = Vec::new();
        let mut new_indices = vec![None; self.len()];
        for (index, branch) in self.branches.iter().enumerate() {
            if let Some(branch) = new_number(*branch) {
                new_indices[index] = Some(selected_indices.len());
                selected_indices.push(index as u32);
                selection.tokens.push(self.tokens[index]);
                selection.branches.push(branch);
                selection.positions.push(self.positions[index]);
            }
        }
        let targets = self.targets.iter().filter_map(|target| {
            Some(TargetToken {
                source_index: new_indices.get(target.source_index).copied().flatten()?,
                branch: new_number(target.branch)?,
                ..*target
            })
        });
        selection.targets = targets.collect();
        let equal = self.equal_predictions.iter().filter_map(|equal| {
            let [first, second] =
                equal.source_indices.map(|index| new_indices.get(index).copied().flatten());
            Some(EqualPrediction { source_indices: [first?, second?], ..*equal })
        });
        selection.equal_predictions = equal.collect();
        selection.input = match &self.input {
            SequenceInput::Hidden(hidden) => {
                let rows = Tensor::new(selected_indices.as_slice(), hidden.device())?;
                SequenceInput::Hidden(hidden.index_select(&rows, 0)?)
            }
            other => other.clone(),
        };
        Ok((selection, selected_indices))
    }

    /// Returns the number of targets of a branch.
    pub fn target_count(&self, branch: u16) -> usize {
        self.targets.iter().filter(|t| t.branch == branch).count()
    }

    /// Returns the required context length: the highest position plus one.
    pub fn context_len(&self) -> usize {
        self.positions.iter().max().map_or(0, |p| *p as usize + 1)
    }

    /// Returns the number of tokens, including image tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns true if the sequence has no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    fn push(&mut self, token: u32, branch: u16) {
        self.positions.push(self.tokens.len() as u32);
        self.tokens.push(token);
        self.branches.push(branch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_positions_continue_the_prefix() {
        let prompt = [PromptToken::Token(7), PromptToken::Image, PromptToken::Token(8)];
        let image =
            TrainingImage { pixels: [0.0].into(), grid: TileGrid::whole((1, 1)), tokens: 2 };
        let mut sequence = Sequence::new(&prompt, Some(image));
        sequence.push_branch([(1, 0.0), (2, 1.0)]);
        sequence.push_branch([(3, 0.5)]);
        assert_eq!(sequence.tokens, [7, 0, 0, 8, 1, 2, 3]);
        assert_eq!(sequence.positions, [0, 1, 2, 3, 4, 5, 4]);
        assert_eq!(sequence.branches, [0, 0, 0, 0, 1, 1, 2]);
        let target = |source_index, token, weight, branch| TargetToken {
            source_index,
            token,
            weight,
            branch,
        };
        assert_eq!(sequence.targets, [target(4, 2, 1.0, 1), target(3, 3, 0.5, 2)]);
        assert_eq!((sequence.len(), sequence.context_len()), (7, 6));
    }

    #[test]
    fn equal_branches_are_compared_at_the_tokens_before_their_common_end() -> Result<(), Error> {
        let mut sequence = Sequence::new(&[PromptToken::Token(7)], None);
        let [first, second] = [&[1, 2, 8, 9][..], &[3, 8, 9]]
            .map(|tokens| tokens.iter().map(|t| (*t, 0.0)).collect());
        let branches: [Vec<(u32, f32)>; 2] = [first, second];
        sequence.push_equal_branches(branches.each_ref().map(Vec::as_slice), 2, 0.5)?;
        assert_eq!(sequence.tokens, [7, 1, 2, 8, 9, 3, 8, 9]);
        assert_eq!(sequence.positions, [0, 1, 2, 3, 4, 1, 2, 3]);
        let equal = |source_indices| EqualPrediction { source_indices, weight: 0.5 };
        assert_eq!(sequence.equal_predictions, [equal([2, 5]), equal([3, 6])]);
        assert!(sequence.targets.is_empty());
        let (selection, _) = sequence.select_branches(&[2, 1])?;
        assert_eq!(selection.equal_predictions, sequence.equal_predictions);
        assert_eq!(sequence.select_branches(&[2])?.0.equal_predictions, []);
        let [a, b] = branches.each_ref().map(Vec::as_slice);
        for (branches, count) in [([a, b], 3), ([&a[1..], &a[..3]], 1), ([b, b], 4)] {
            assert!(Sequence::default().push_equal_branches(branches, count, 1.0).is_err());
        }
        Ok(())
    }

    #[test]
    fn selection_equals_sequence_without_other_branches() -> candle::Result<()> {
        let prompt = [PromptToken::Token(7), PromptToken::Token(8)];
        let mut sequence = Sequence::new(&prompt, None);
        sequence.push_branch([(1, 0.0), (2, 1.0)]);
        sequence.push_branch([(3, 1.0)]);
        sequence.push_branch([(4, 1.0), (5, 1.0)]);
        let hidden = Tensor::arange(0f32, 7.0, &candle::Device::Cpu)?.reshape((7, 1))?;
        sequence.input = SequenceInput::Hidden(hidden);
        let (selection, indices) = sequence.select_branches(&[3, 1])?;
        let mut expected = Sequence::new(&prompt, None);
        expected.push_branch([(1, 0.0), (2, 1.0)]);
        expected.push_branch([(4, 1.0), (5, 1.0)]);
        assert_eq!(indices, [0, 1, 2, 3, 5, 6]);
        assert_eq!(selection.tokens, expected.tokens);
        assert_eq!(selection.positions, expected.positions);
        assert_eq!(selection.branches, [0, 0, 2, 2, 1, 1]);
        let source_indices =
            |s: &Sequence| s.targets.iter().map(|t| t.source_index).collect::<Vec<_>>();
        assert_eq!(source_indices(&selection), source_indices(&expected));
        assert_eq!(selection.targets[0].branch, 2);
        let SequenceInput::Hidden(hidden) = selection.input else {
            panic!("expected hidden states");
        };
        assert_eq!(hidden.flatten_all()?.to_vec1::<f32>()?, [0., 1., 2., 3., 5., 6.]);
        Ok(())
    }
}
