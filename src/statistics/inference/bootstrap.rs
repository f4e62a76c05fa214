//! Confidence intervals by a cluster bootstrap.
//!
//! Questions about one image are not independent, so the bootstrap resamples images with all their
//! questions. Each resample has its own random stream. The result depends on the seed only, not on
//! the number of threads.

use std::collections::HashMap;
use std::hash::Hash;

use rand::seq::SliceRandom as _;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::Serialize;

use super::wilson::MIN_CLUSTERS;
use crate::statistics::undefined::{Defined, Undefined, require_at_least, require_finite};

/// Assignment of cases to clusters.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    /// The cluster of each case, numbered from zero.
    cluster_indices: Vec<u32>,
    /// Number of clusters.
    count: u32,
}

/// Settings of the bootstrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// Number of resamples. With 2,000, the bounds of a 95 % interval are accurate to a few
    /// hundredths of its width.
    pub resamples: usize,
    /// The seed; equal seeds give equal resamples.
    pub seed: u64,
}

/// A statistic with its confidence interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The value on the original cases.
    #[serde(serialize_with = "serialize_or_null")]
    pub value: Defined<f64>,
    /// The 95 % percentile interval.
    #[serde(serialize_with = "serialize_or_null")]
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
        let cluster_indices = names.into_iter().map(number).collect();
        Self { cluster_indices, count: numbers.len() as u32 }
    }

    /// Returns the number of clusters.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Returns the cluster of a case, counted from zero.
    pub fn cluster_of(&self, case: usize) -> usize {
        self.cluster_indices.get(case).map_or(0, |cluster| *cluster as usize)
    }

    /// Counts the clusters that contain a case for which `includes` returns true.
    pub fn count_among(&self, includes: impl Fn(usize) -> bool) -> usize {
        let mut is_counted = vec![false; self.count()];
        for (case, cluster) in self.cluster_indices.iter().enumerate() {
            is_counted[*cluster as usize] |= includes(case);
        }
        is_counted.into_iter().filter(|counted| *counted).count()
    }

    /// Checks that there are enough clusters for a test. Resamples of few images vary less than new
    /// images would.
    ///
    /// # Errors
    ///
    /// There are fewer than ten clusters.
    pub fn check_enough(&self) -> Defined<()> {
        require_at_least(MIN_CLUSTERS, self.count(), ["image", "images"])
    }

    /// Returns the number of cases.
    pub fn len(&self) -> usize {
        self.cluster_indices.len()
    }

    /// Returns true if there is no case.
    pub fn is_empty(&self) -> bool {
        self.cluster_indices.is_empty()
    }

    /// Assigns the clusters at random to `folds` folds of about equal size. Returns the fold of
    /// each case.
    pub fn folds(&self, folds: usize, seed: u64) -> Vec<usize> {
        let mut positions: Vec<usize> = (0..self.count()).collect();
        positions.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        self.cluster_indices.iter().map(|c| positions[*c as usize] % folds.max(1)).collect()
    }

    /// Sums one value per case by cluster.
    pub(crate) fn sum_by_cluster<'a>(&self, values: impl Iterator<Item = &'a f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.count()];
        for (cluster, value) in self.cluster_indices.iter().zip(values) {
            sums[*cluster as usize] += value;
        }
        sums
    }

    /// Resamples the clusters with replacement and returns the weight of each case.
    fn resample_weights(&self, random: &mut ReplicateRng) -> Vec<f64> {
        let mut weights = vec![0.0; self.count()];
        for _ in 0..self.count {
            weights[random.random_range(0..self.count) as usize] += 1.0;
        }
        self.cluster_indices.iter().map(|c| weights[*c as usize]).collect()
    }
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { resamples: 2000, seed: 1 }
    }
}

impl Bootstrap {
    /// Creates the random stream of a resample.
    fn rng(&self, index: usize) -> ReplicateRng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(index as u64);
        random
    }

    /// Computes a statistic on every resample. The statistic receives the weight of each case.
    pub fn resample<T: Send>(
        &self,
        clusters: &Clusters,
        statistic: impl Fn(&[f64]) -> T + Sync,
    ) -> Vec<T> {
        self.resample_numbered(clusters, |_, weights| statistic(weights))
    }

    /// Like [`resample`](Self::resample); the statistic also receives the index of the resample.
    pub fn resample_numbered<T: Send>(
        &self,
        clusters: &Clusters,
        statistic: impl Fn(usize, &[f64]) -> T + Sync,
    ) -> Vec<T> {
        let compute = |i| statistic(i, &clusters.resample_weights(&mut self.rng(i)));
        (0..self.resamples).into_par_iter().map(compute).collect()
    }

    /// Calls a function with the random stream of every resample.
    pub(crate) fn resample_with_rng<T: Send>(
        &self,
        function: impl Fn(&mut ReplicateRng) -> T + Sync,
    ) -> Vec<T> {
        let call = |i| function(&mut self.rng(i));
        (0..self.resamples).into_par_iter().map(call).collect()
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
            Ok(_) => percentile_interval(self.resample(clusters, statistic), clusters),
            Err(reason) => Err(reason),
        };
        Estimate { value, interval, n, clusters: clusters.count() }
    }
}

impl Estimate {
    /// Creates an undefined estimate with its reason.
    pub fn undefined(reason: Undefined, n: usize, clusters: usize) -> Self {
        Self { value: Err(reason), interval: Err(reason), n, clusters }
    }
}

/// Computes the 95 % percentile interval of the resampled values.
///
/// # Errors
///
/// There are fewer than two clusters, all values are equal, or more than a twentieth of them are
/// undefined.
pub fn percentile_interval(resamples: Vec<Defined<f64>>, clusters: &Clusters) -> Defined<[f64; 2]> {
    require_at_least(2, clusters.count(), ["image", "images"])?;
    let all = resamples.len();
    let mut values: Vec<f64> = resamples.into_iter().flatten().collect();
    if values.is_empty() || values.len() * 20 < all * 19 {
        return Err(Undefined::Unstable { defined: values.len(), resamples: all });
    }
    values.sort_by(f64::total_cmp);
    if values.first() == values.last() {
        return Err(Undefined::NoSpread);
    }
    Ok([require_finite(quantile(&values, 0.025))?, require_finite(quantile(&values, 0.975))?])
}

/// Computes a quantile of ascending values with linear interpolation, as in numpy.
fn quantile(ascending: &[f64], q: f64) -> f64 {
    let position = q * (ascending.len() - 1) as f64;
    let value = |i: f64| ascending[(i as usize).min(ascending.len() - 1)];
    let (low, high) = (value(position.floor()), value(position.ceil()));
    low + (high - low) * position.fract()
}

/// Computes the two-sided bootstrap p-value of a difference: twice the proportion of resampled
/// differences on the other side of zero, with one added to each count.
pub fn two_sided_p(resamples: &[f64]) -> f64 {
    let proportion = |is_on_side: fn(&f64) -> bool| {
        let count = resamples.iter().filter(|d| is_on_side(d)).count();
        (count + 1) as f64 / (resamples.len() + 1) as f64
    };
    (2.0 * proportion(|d| *d <= 0.0).min(proportion(|d| *d >= 0.0))).min(1.0)
}

/// Serializes a value, or `null` if it is undefined; the reason is a separate field.
fn serialize_or_null<T: Serialize, S: serde::Serializer>(
    value: &Defined<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().ok().serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::mean;

    fn estimate_coin(n: usize, cluster: fn(usize) -> usize) -> Estimate {
        let values: Vec<Option<f64>> = (0..n).map(|i| Some((i % 2) as f64)).collect();
        let clusters = Clusters::new((0..n).map(cluster));
        Bootstrap::default().estimate(&clusters, n, |weights| mean(&values, weights))
    }

    /// The binomial's 95 % interval at n = 100 is 0.402 to 0.598.
    #[test]
    fn interval_of_a_coin_equals_the_binomial() {
        let many = estimate_coin(100, |i| i);
        let [low, high] = many.interval.unwrap();
        assert!((low - 0.40).abs() < 0.02 && (high - 0.60).abs() < 0.02, "{low} {high}");
        assert_eq!((many.n, many.clusters), (100, 100));
        // Four images with 25 equal questions each carry the information of four cases.
        let [low, high] = estimate_coin(100, |i| i % 4).interval.unwrap();
        assert!(low < 0.01 && high > 0.99, "{low} {high}");
    }

    #[test]
    fn one_cluster_has_no_interval() {
        let estimate = estimate_coin(10, |_| 0);
        assert!(estimate.value.is_ok());
        assert!(
            estimate.interval.unwrap_err().to_string().contains("1 image, expected at least 2")
        );
    }

    #[test]
    fn constant_values_have_no_interval() {
        let clusters = Clusters::new(0..12);
        let constant = Bootstrap::default().estimate(&clusters, 12, |w| mean(&[Some(1.0); 12], w));
        assert_eq!(constant.interval, Err(Undefined::NoSpread));
    }

    #[test]
    fn mostly_undefined_statistic_has_no_interval() {
        let clusters = Clusters::new(0..10);
        let few = Bootstrap::default().estimate(&clusters, 10, |w| {
            if w[0] > 0.0 { Ok(w[0]) } else { Err(Undefined::NoVariation) }
        });
        assert!(matches!(few.interval, Err(Undefined::Unstable { resamples: 2000, .. })));
    }

    #[test]
    fn resamples_do_not_depend_on_threads() {
        let clusters = Clusters::new((0..40).map(|i| i / 3));
        let resample = || Bootstrap { resamples: 50, seed: 7 }.resample(&clusters, <[f64]>::to_vec);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(pool.install(resample), resample());
    }

    #[test]
    fn quantiles_equal_numpy() {
        // numpy.percentile([1, 2, 4, 8], [2.5, 97.5])
        let values = [1.0, 2.0, 4.0, 8.0];
        assert!((quantile(&values, 0.025) - 1.075).abs() < 1e-12);
        assert!((quantile(&values, 0.975) - 7.7).abs() < 1e-12);
    }
}
