//! Order of training examples over epochs.

use std::ops::Range;

use rand::SeedableRng;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

/// A fixed number of examples, reshuffled every epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EpochSampler {
    /// Seed of the shuffles.
    pub(crate) seed: u64,
    /// Number of examples; at least one.
    pub(crate) n: usize,
}

impl EpochSampler {
    /// Returns the examples at some positions of the infinite sequence of epochs.
    pub(crate) fn indices(self, positions: Range<u64>) -> Vec<usize> {
        let n = self.n.max(1) as u64;
        let (mut epoch, mut order) = (None, Vec::new());
        let indices = positions.map(|position| {
            if epoch != Some(position / n) {
                epoch = Some(position / n);
                order = self.epoch_order(position / n);
            }
            order[(position % n) as usize]
        });
        indices.collect()
    }

    fn epoch_order(self, epoch: u64) -> Vec<usize> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(epoch);
        let mut order: Vec<usize> = (0..self.n.max(1)).collect();
        order.shuffle(&mut rng);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_epoch_is_a_different_permutation() {
        let sampler = EpochSampler { seed: 7, n: 20 };
        let indices = sampler.indices(0..60);
        let epochs: Vec<&[usize]> = indices.chunks(20).collect();
        for epoch in &epochs {
            let mut sorted = epoch.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..20).collect::<Vec<_>>());
        }
        assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2]);
        // The result does not depend on the start of the range.
        assert_eq!(sampler.indices(35..45), indices[35..45]);
        assert_eq!(EpochSampler { seed: 7, n: 1 }.indices(3..5), [0, 0]);
    }
}
