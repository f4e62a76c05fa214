//! A training sequence: a shared prefix, and branches that see it but not each other.
//!
//! The three evaluations of a case, or many questions about one image, are so learned in one
//! forward pass that computes the prefix once.

use std::sync::Arc;

use candle::Tensor;

use super::given::Given;
use crate::prompt::Slot;

/// A token to be predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The place of the token before it.
    pub from: usize,
    /// The token.
    pub token: u32,
    /// What an error costs.
    pub weight: f32,
    /// The branch it belongs to.
    pub branch: u16,
}

/// Tokens with the branch and position of each.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// What it is computed from; an image's tokens fill the place of [`Slot::Image`].
    pub given: Given,
    /// Token ids; image places hold zero.
    pub tokens: Vec<u32>,
    /// Branch of each token; 0 is the prefix.
    pub branches: Vec<u16>,
    /// Position of each token in the sequence that the model would see alone.
    pub positions: Vec<u32>,
    /// The first image place.
    pub image_at: Option<usize>,
    /// What is learned.
    pub targets: Vec<Target>,
    prefix: usize,
    last_branch: u16,
}

impl Sequence {
    /// A sequence that begins with a prompt of which nothing is learned. `image_tokens`: places an
    /// image takes.
    pub fn new(prompt: &[Slot], pixels: Option<Arc<[f32]>>, image_tokens: usize) -> Self {
        let mut sequence = Self {
            given: pixels.map_or(Given::Text, Given::Pixels),
            ..Self::default()
        };
        for slot in prompt {
            match slot {
                Slot::Token(token) => sequence.push(*token, 0),
                Slot::Image => {
                    sequence.image_at = Some(sequence.tokens.len());
                    (0..image_tokens).for_each(|_| sequence.push(0, 0));
                }
            }
        }
        sequence.prefix = sequence.tokens.len();
        sequence
    }

    /// A branch of tokens, each with the cost of an error; cost zero is context.
    pub fn branch(&mut self, tokens: impl IntoIterator<Item = (u32, f32)>) {
        self.last_branch += 1;
        let branch = self.last_branch;
        let mut from = self.prefix.checked_sub(1);
        let start = self.tokens.len();
        for (i, (token, weight)) in tokens.into_iter().enumerate() {
            if let (Some(from), true) = (from, weight > 0.0) {
                self.targets.push(Target {
                    from,
                    token,
                    weight,
                    branch,
                });
            }
            from = Some(start + i);
            self.tokens.push(token);
            self.branches.push(branch);
            self.positions.push((self.prefix + i) as u32);
        }
    }

    /// The prefix with some of the branches, which are counted from one again, and the places of its
    /// tokens in the whole. Hidden states go with their tokens.
    pub fn part(&self, branches: &[u16]) -> candle::Result<(Self, Vec<u32>)> {
        let renamed = |branch: u16| {
            let kept = branches.iter().position(|kept| *kept == branch);
            if branch == 0 {
                Some(0)
            } else {
                kept.map(|at| at as u16 + 1)
            }
        };
        let mut part = Self {
            image_at: self.image_at,
            prefix: self.prefix,
            last_branch: branches.len() as u16,
            ..Self::default()
        };
        let mut kept = Vec::new();
        let mut places = vec![None; self.len()];
        for (place, branch) in self.branches.iter().enumerate() {
            if let Some(branch) = renamed(*branch) {
                places[place] = Some(kept.len());
                kept.push(place as u32);
                part.tokens.push(self.tokens[place]);
                part.branches.push(branch);
                part.positions.push(self.positions[place]);
            }
        }
        let targets = self.targets.iter().filter_map(|target| {
            Some(Target {
                from: places.get(target.from).copied().flatten()?,
                branch: renamed(target.branch)?,
                ..*target
            })
        });
        part.targets = targets.collect();
        part.given = match &self.given {
            Given::Hidden(hidden) => {
                let rows = Tensor::new(kept.as_slice(), hidden.device())?;
                Given::Hidden(hidden.index_select(&rows, 0)?)
            }
            other => other.clone(),
        };
        Ok((part, kept))
    }

    /// Number of targets of a branch.
    pub fn targets_of(&self, branch: u16) -> usize {
        self.targets.iter().filter(|t| t.branch == branch).count()
    }

    /// Places of the context that it takes.
    pub fn context(&self) -> usize {
        self.positions.iter().max().map_or(0, |p| *p as usize + 1)
    }

    /// Number of tokens, image places included.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is no token.
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
    fn branches_go_on_from_the_prefix() {
        let prompt = [Slot::Token(7), Slot::Image, Slot::Token(8)];
        let mut sequence = Sequence::new(&prompt, None, 2);
        sequence.branch([(1, 0.0), (2, 1.0)]);
        sequence.branch([(3, 0.5)]);
        assert_eq!(sequence.tokens, [7, 0, 0, 8, 1, 2, 3]);
        assert_eq!(sequence.positions, [0, 1, 2, 3, 4, 5, 4]);
        assert_eq!(sequence.branches, [0, 0, 0, 0, 1, 1, 2]);
        let target = |from, token, weight, branch| Target {
            from,
            token,
            weight,
            branch,
        };
        assert_eq!(
            sequence.targets,
            [target(4, 2, 1.0, 1), target(3, 3, 0.5, 2)]
        );
        assert_eq!((sequence.len(), sequence.context()), (7, 6));
    }

    #[test]
    fn a_part_is_the_sequence_without_the_other_branches() -> candle::Result<()> {
        let prompt = [Slot::Token(7), Slot::Token(8)];
        let mut whole = Sequence::new(&prompt, None, 0);
        whole.branch([(1, 0.0), (2, 1.0)]);
        whole.branch([(3, 1.0)]);
        whole.branch([(4, 1.0), (5, 1.0)]);
        let hidden = Tensor::arange(0f32, 7.0, &candle::Device::Cpu)?.reshape((7, 1))?;
        whole.given = Given::Hidden(hidden);
        let (part, places) = whole.part(&[3, 1])?;
        let mut same = Sequence::new(&prompt, None, 0);
        same.branch([(1, 0.0), (2, 1.0)]);
        same.branch([(4, 1.0), (5, 1.0)]);
        assert_eq!(places, [0, 1, 2, 3, 5, 6]);
        assert_eq!(part.tokens, same.tokens);
        assert_eq!(part.positions, same.positions);
        assert_eq!(part.branches, [0, 0, 2, 2, 1, 1]);
        let froms = |s: &Sequence| s.targets.iter().map(|t| t.from).collect::<Vec<_>>();
        assert_eq!(froms(&part), froms(&same));
        assert_eq!(part.targets[0].branch, 2);
        let Given::Hidden(hidden) = part.given else {
            panic!("hidden states stay");
        };
        assert_eq!(
            hidden.flatten_all()?.to_vec1::<f32>()?,
            [0., 1., 2., 3., 5., 6.]
        );
        Ok(())
    }
}
