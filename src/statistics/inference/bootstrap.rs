//! Confidence intervals by a cluster bootstrap.
//!
//! Questions about one image are not independent, so the bootstrap resamples images with all their questions.
//! Each resample has its own random stream. The result depends on the seed only, not on the number of threads.

use std::collections::HashMap;
use std::hash::Hash;

use rand::seq::SliceRandom as _;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::Serialize;

use super::wilson::FEW;
use crate::statistics::undefined::{Defined, Undefined, at_least, finite};

/// Assignment of cases to clusters.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    /// The cluster of each case, numbered from zero.
    of: Vec<u32>,
    /// Number of clusters.
    count: u32,
}

/// Settings of the bootstrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// Number of resamples. With 2,000, the bounds of a 95 % interval are accurate to a few hundredths of its width.
    pub draws: usize,
    /// The seed; equal seeds give equal resamples.
    pub seed: u64,
}

/// A statistic with its confidence interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The value on the original cases.
    #[serde(serialize_with = "or_null")]
    pub value: Defined<f64>,
    /// The 95 % percentile interval.
    #[serde(serialize_with = "or_null")]
    pub interval: Defined<[f64; 2]>,
    /// Number of cases.
    pub n: usize,
    /// Number of clusters.
    pub clusters: usize,
}

/// The random stream of one resample.
pub type ReplicateRng = ChaCha8Rng;

impl Clusters {
    /// Creates clusters from one name per case.
    pub fn new<K: Eq + Hash>(names: impl IntoIterator<Item = K>) -> Self {
        let mut numbers: HashMap<K, u32> = HashMap::new();
        let number = |name| {
            let next = numbers.len() as u32;
            *numbers.entry(name).or_insert(next)
        };
        let of = names.into_iter().map(number).collect();
        Self {
            of,
            count: numbers.len() as u32,
        }
    }

    /// Number of clusters.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// The cluster of a case, from zero.
    pub fn of(&self, case: usize) -> usize {
        self.of.get(case).map_or(0, |cluster| *cluster as usize)
    }

    /// Number of clusters that contain a counted case.
    pub fn among(&self, counts: impl Fn(usize) -> bool) -> usize {
        let mut found = vec![false; self.count()];
        for (case, cluster) in self.of.iter().enumerate() {
            found[*cluster as usize] |= counts(case);
        }
        found.into_iter().filter(|found| *found).count()
    }

    /// Checks that there are enough clusters for a test. Resamples of few images vary less than new images would.
    ///
    /// # Errors
    ///
    /// There are fewer than ten clusters.
    pub fn enough(&self) -> Defined<()> {
        at_least(FEW, self.count(), "images")
    }

    /// Number of cases.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Whether there is no case.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Assigns the clusters at random to `parts` folds of about equal size. Returns the fold of each case.
    pub fn folds(&self, parts: usize, seed: u64) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.count()).collect();
        places.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        self.of
            .iter()
            .map(|c| places[*c as usize] % parts.max(1))
            .collect()
    }

    /// Sums one value per case by cluster.
    pub(crate) fn sums<'a>(&self, values: impl Iterator<Item = &'a f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.count()];
        for (cluster, value) in self.of.iter().zip(values) {
            sums[*cluster as usize] += value;
        }
        sums
    }

    /// Resamples the clusters with replacement and returns the weight of each case.
    fn draw(&self, random: &mut ReplicateRng) -> Vec<f64> {
        let mut times = vec![0.0; self.count()];
        for _ in 0..self.count {
            times[random.random_range(0..self.count) as usize] += 1.0;
        }
        self.of.iter().map(|c| times[*c as usize]).collect()
    }
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self {
            draws: 2000,
            seed: 1,
        }
    }
}

impl Bootstrap {
    /// The random stream of a resample.
    fn random(&self, draw: usize) -> ReplicateRng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(draw as u64);
        random
    }

    /// Computes a statistic on every resample. The statistic receives the weight of each case.
    pub fn draw<T: Send>(
        &self,
        clusters: &Clusters,
        statistic: impl Fn(&[f64]) -> T + Sync,
    ) -> Vec<T> {
        self.draw_numbered(clusters, |_, weights| statistic(weights))
    }

    /// As [`draw`](Self::draw); the statistic also receives the index of the resample.
    pub fn draw_numbered<T: Send>(
        &self,
        clusters: &Clusters,
        statistic: impl Fn(usize, &[f64]) -> T + Sync,
    ) -> Vec<T> {
        let draw = |i| statistic(i, &clusters.draw(&mut self.random(i)));
        (0..self.draws).into_par_iter().map(draw).collect()
    }

    /// Calls a function with the random stream of every resample.
    pub(crate) fn random_draws<T: Send>(
        &self,
        of: impl Fn(&mut ReplicateRng) -> T + Sync,
    ) -> Vec<T> {
        let draw = |i| of(&mut self.random(i));
        (0..self.draws).into_par_iter().map(draw).collect()
    }

    /// Computes a statistic on the original cases, with its interval.
    pub fn estimate(
        &self,
        clusters: &Clusters,
        n: usize,
        statistic: impl Fn(&[f64]) -> Defined<f64> + Sync,
    ) -> Estimate {
        let value = statistic(&vec![1.0; clusters.len()]);
        let interval = match value {
            Ok(_) => interval(self.draw(clusters, statistic), clusters),
            Err(reason) => Err(reason),
        };
        Estimate {
            value,
            interval,
            n,
            clusters: clusters.count(),
        }
    }
}

impl Estimate {
    /// An undefined estimate with its reason.
    pub fn undefined(reason: Undefined, n: usize, clusters: usize) -> Self {
        Self {
            value: Err(reason),
            interval: Err(reason),
            n,
            clusters,
        }
    }
}

/// The 95 % percentile interval of the resampled values.
///
/// # Errors
///
/// There are fewer than two clusters, all values are equal, or more than a twentieth of them are undefined.
pub fn interval(draws: Vec<Defined<f64>>, clusters: &Clusters) -> Defined<[f64; 2]> {
    at_least(2, clusters.count(), "images")?;
    let all = draws.len();
    let mut values: Vec<f64> = draws.into_iter().flatten().collect();
    if values.is_empty() || values.len() * 20 < all * 19 {
        return Err(Undefined::Unstable {
            defined: values.len(),
            draws: all,
        });
    }
    values.sort_by(f64::total_cmp);
    if values.first() == values.last() {
        return Err(Undefined::NoSpread);
    }
    Ok([
        finite(quantile(&values, 0.025))?,
        finite(quantile(&values, 0.975))?,
    ])
}

/// A quantile of ascending values with linear interpolation, as in numpy.
fn quantile(ascending: &[f64], q: f64) -> f64 {
    let at = q * (ascending.len() - 1) as f64;
    let value = |i: f64| ascending[(i as usize).min(ascending.len() - 1)];
    let (low, high) = (value(at.floor()), value(at.ceil()));
    low + (high - low) * at.fract()
}

/// Two-sided bootstrap p-value of a difference: twice the proportion of resampled differences on the other side
/// of zero, with one added to each count.
pub fn two_sided(draws: &[f64]) -> f64 {
    let part = |far: fn(&f64) -> bool| {
        let count = draws.iter().filter(|d| far(d)).count();
        (count + 1) as f64 / (draws.len() + 1) as f64
    };
    (2.0 * part(|d| *d <= 0.0).min(part(|d| *d >= 0.0))).min(1.0)
}

/// Serializes a value, or `null` if it is undefined; the reason is a separate field.
fn or_null<T: Serialize, S: serde::Serializer>(
    value: &Defined<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().ok().serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::mean;

    fn coin(n: usize, cluster: fn(usize) -> usize) -> Estimate {
        let values: Vec<Option<f64>> = (0..n).map(|i| Some((i % 2) as f64)).collect();
        let clusters = Clusters::new((0..n).map(cluster));
        Bootstrap::default().estimate(&clusters, n, |weights| mean(&values, weights))
    }

    /// The binomial's 95 % interval at n = 100 is 0.402 to 0.598.
    #[test]
    fn interval_of_a_coin_equals_the_binomial() {
        let many = coin(100, |i| i);
        let [low, high] = many.interval.unwrap();
        assert!(
            (low - 0.40).abs() < 0.02 && (high - 0.60).abs() < 0.02,
            "{low} {high}"
        );
        assert_eq!((many.n, many.clusters), (100, 100));
        // Four images with 25 equal questions each carry the information of four cases.
        let [low, high] = coin(100, |i| i % 4).interval.unwrap();
        assert!(low < 0.01 && high > 0.99, "{low} {high}");
    }

    #[test]
    fn one_cluster_has_no_interval() {
        let one = coin(10, |_| 0);
        assert!(one.value.is_ok());
        assert!(
            one.interval
                .unwrap_err()
                .to_string()
                .contains("1 image, expected at least 2")
        );
    }

    #[test]
    fn constant_values_have_no_interval() {
        let clusters = Clusters::new(0..12);
        let all = Bootstrap::default().estimate(&clusters, 12, |w| mean(&[Some(1.0); 12], w));
        assert_eq!(all.interval, Err(Undefined::NoSpread));
    }

    #[test]
    fn mostly_undefined_statistic_has_no_interval() {
        let clusters = Clusters::new(0..10);
        let few = Bootstrap::default().estimate(&clusters, 10, |w| {
            if w[0] > 0.0 {
                Ok(w[0])
            } else {
                Err(Undefined::NoVariation)
            }
        });
        assert!(matches!(
            few.interval,
            Err(Undefined::Unstable { draws: 2000, .. })
        ));
    }

    #[test]
    fn resamples_do_not_depend_on_threads() {
        let clusters = Clusters::new((0..40).map(|i| i / 3));
        let draws = || Bootstrap { draws: 50, seed: 7 }.draw(&clusters, <[f64]>::to_vec);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap();
        assert_eq!(pool.install(draws), draws());
    }

    #[test]
    fn quantiles_equal_numpy() {
        // numpy.percentile([1, 2, 4, 8], [2.5, 97.5])
        let values = [1.0, 2.0, 4.0, 8.0];
        assert!((quantile(&values, 0.025) - 1.075).abs() < 1e-12);
        assert!((quantile(&values, 0.975) - 7.7).abs() < 1e-12);
    }
}
