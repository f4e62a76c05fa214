//! The order in which a stage goes through examples of which there is a fixed number.

use std::ops::Range;

use rand::SeedableRng;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

/// So many examples, all of which come once before any comes again, in each round in an order of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EpochSampler {
    /// What the orders follow from.
    pub(crate) seed: u64,
    /// How many there are; at least one.
    pub(crate) n: usize,
}

impl EpochSampler {
    /// The places of the draws of these numbers.
    pub(crate) fn places(self, draws: Range<u64>) -> Vec<usize> {
        let n = self.n.max(1) as u64;
        let (mut round, mut order) = (None, Vec::new());
        let draws = draws.map(|draw| {
            if round != Some(draw / n) {
                round = Some(draw / n);
                order = self.order(draw / n);
            }
            order[(draw % n) as usize]
        });
        draws.collect()
    }

    fn order(self, round: u64) -> Vec<usize> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(round);
        let mut order: Vec<usize> = (0..self.n.max(1)).collect();
        order.shuffle(&mut rng);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_come_once_in_a_round_and_rounds_differ() {
        let deck = EpochSampler { seed: 7, n: 20 };
        let drawn = deck.places(0..60);
        let rounds: Vec<&[usize]> = drawn.chunks(20).collect();
        for round in &rounds {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..20).collect::<Vec<_>>());
        }
        assert!(rounds[0] != rounds[1] && rounds[1] != rounds[2]);
        // What is drawn does not depend on where one begins.
        assert_eq!(deck.places(35..45), drawn[35..45]);
        assert_eq!(EpochSampler { seed: 7, n: 1 }.places(3..5), [0, 0]);
    }
}
