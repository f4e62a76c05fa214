//! A training sequence: a shared prefix, and branches that see it but not each other.
//!
//! The three evaluations of a case, or many questions about one image, are so learned in one
//! forward pass that computes the prefix once.

use std::sync::Arc;

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
    /// The image, `(3, s, s)`, whose tokens fill the place of [`Slot::Image`].
    pub pixels: Option<Arc<[f32]>>,
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
            pixels,
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
    }
}
