//! The Bradley–Terry model of pairwise comparisons, with ties after Davidson (1970).
//!
//! A model of strength πᵢ beats one of strength πⱼ with probability πᵢ / D, loses with πⱼ / D and
//! ties with ν √(πᵢ πⱼ) / D, where D is the sum of the three. Without ties ν is 0, which is the
//! plain Bradley–Terry model.
//!
//! If one group of models always wins, or wins or ties in a way that fits any large ν, the
//! likelihood has no maximum. [`Davidson::fit_penalised`] then adds half a win and half a loss of
//! every model against one hypothetical opponent (Turner, van Etten, Firth and Kosmidis, Modelling
//! rankings in R: the PlackettLuce package, Computational Statistics 2020). For two models without
//! ties this is close to Firth's (1993) penalty, which adds half a win to each.

use crate::statistics::regression::cholesky::SymmetricMatrix;
use crate::statistics::regression::linear_solver;
use crate::statistics::regression::pairwise_outcomes::{OutcomeCounts, PairwiseOutcomes};
use crate::statistics::undefined::{Defined, Undefined, require_at_least};

/// The strengths of models.
#[derive(Clone, Debug, PartialEq)]
pub struct Davidson {
    /// Log strengths, with mean zero.
    pub strengths: Vec<f64>,
    /// The tie parameter ν; 0 without ties.
    pub tie_parameter: f64,
}

/// Wins, and as many losses, of every model against the hypothetical opponent of
/// [`Davidson::fit_penalised`].
const PSEUDO_WINS: f64 = 0.5;
/// Maximum Newton steps; about ten are typical.
const MAX_STEPS: usize = 100;
/// Relative rounding error of the log-likelihood. A smaller decrease is no overshoot.
const ROUNDING: f64 = 1e-13;

impl Davidson {
    /// Fits the maximum-likelihood strengths.
    ///
    /// # Errors
    ///
    /// There are fewer than two models, or the likelihood has no maximum: some models never lost to
    /// the others or were never compared with them (Ford 1957), all comparisons are ties, or the
    /// outcomes fit an arbitrarily large ν.
    pub fn fit(outcomes: &PairwiseOutcomes) -> Defined<Self> {
        require_at_least(2, outcomes.models(), ["model", "models"])?;
        if !outcomes.is_connected(false) || !outcomes.is_connected(true) {
            return Err(Undefined::Unbounded(
                "some models never lost to the others or were never compared with them: \
                 their strengths are unbounded",
            ));
        }
        let counts = outcomes.counts();
        if !counts.iter().any(|pair| pair.won + pair.lost > 0.0) {
            return Err(Undefined::Unbounded("every pair is a tie"));
        }
        if outcomes.has_ties() && outcomes.separates_wins_from_ties() {
            return Err(Undefined::Unbounded(
                "wins and ties are completely separated: no chain of wins, less its ties, leads \
                 from a model back to itself, so the strengths and the tie parameter are unbounded",
            ));
        }
        Ok(Likelihood::new(outcomes.models(), counts).maximise())
    }

    /// Fits the strengths with half a win and half a loss of every model against a hypothetical
    /// opponent, whose own strength is fitted and left out of the result. They always exist.
    pub fn fit_penalised(outcomes: &PairwiseOutcomes) -> Self {
        let models = outcomes.models();
        let mut counts = outcomes.counts();
        counts.extend((0..models).map(|second| OutcomeCounts {
            first: models,
            second,
            won: PSEUDO_WINS,
            lost: PSEUDO_WINS,
            tied: 0.0,
        }));
        let mut fit = Likelihood::new(models + 1, counts).maximise();
        fit.strengths.truncate(models);
        center(&mut fit.strengths);
        fit
    }

    /// Returns the rank of each model, 1 for the strongest; ties share the best rank.
    pub fn ranks(&self) -> Vec<usize> {
        let above = |s: &f64| self.strengths.iter().filter(|t| **t > *s + 1e-9).count() + 1;
        self.strengths.iter().map(above).collect()
    }
}

/// Subtracts the mean from every strength.
fn center(strengths: &mut [f64]) {
    let mean = strengths.iter().sum::<f64>() / strengths.len().max(1) as f64;
    for strength in strengths {
        *strength -= mean;
    }
}

/// The log-likelihood of comparisons. Its parameters are the log strengths and, if there
/// are ties, ln ν.
struct Likelihood {
    models: usize,
    counts: Vec<OutcomeCounts>,
    has_ties: bool,
    /// Observed sum of the exponents of each parameter in the numerators of the probabilities.
    observed: Vec<f64>,
}

/// Value and derivatives of the log-likelihood.
struct Derivatives {
    value: f64,
    gradient: Vec<f64>,
    /// The negated Hessian, with a term that makes it invertible.
    information: SymmetricMatrix,
}

impl Likelihood {
    fn new(models: usize, counts: Vec<OutcomeCounts>) -> Self {
        let has_ties = counts.iter().any(|pair| pair.tied > 0.0);
        let mut observed = vec![0.0; models + usize::from(has_ties)];
        for pair in &counts {
            observed[pair.first] += pair.won + pair.tied / 2.0;
            observed[pair.second] += pair.lost + pair.tied / 2.0;
            if has_ties {
                observed[models] += pair.tied;
            }
        }
        Self { models, counts, has_ties, observed }
    }

    /// Finds the maximum by Newton's method. The likelihood is concave; steps that overshoot are
    /// halved.
    fn maximise(&self) -> Davidson {
        let mut parameters = vec![0.0; self.observed.len()];
        let mut current = self.derivatives(&parameters);
        for _ in 0..MAX_STEPS {
            let rounding = ROUNDING * current.value.abs();
            let Derivatives { value, gradient, information } = current;
            let rows = information.clone();
            let step = information.solve(gradient.clone());
            // Rounding can make an ill-conditioned matrix indefinite.
            let step = step.or_else(|| linear_solver::solve(rows.to_rows(), gradient));
            let Some(step) = step else {
                break;
            };
            let mut length = 1.0;
            loop {
                let next: Vec<f64> =
                    parameters.iter().zip(&step).map(|(a, s)| a + length * s).collect();
                current = self.derivatives(&next);
                if current.value >= value - rounding || length < 1e-8 {
                    parameters = next;
                    break;
                }
                length /= 2.0;
            }
            if step.iter().all(|s| s.abs() < 1e-11) {
                break;
            }
        }
        let tie_parameter = parameters.get(self.models).map_or(0.0, |log| log.exp());
        parameters.truncate(self.models);
        center(&mut parameters);
        Davidson { strengths: parameters, tie_parameter }
    }

    /// Computes the value and the derivatives at these parameters.
    fn derivatives(&self, parameters: &[f64]) -> Derivatives {
        let (models, size) = (self.models, parameters.len());
        let strengths = &parameters[..models];
        let largest = strengths.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Square roots of the strengths, relative to the largest.
        let roots: Vec<f64> = strengths.iter().map(|s| ((s - largest) / 2.0).exp()).collect();
        let tie_parameter = parameters.get(models).map_or(0.0, |log| log.exp());
        let products = self.observed.iter().zip(parameters).map(|(n, a)| n * a);
        let mut value = products.sum::<f64>();
        let mut gradient = self.observed.clone();
        let mut information = SymmetricMatrix::new(size);
        for i in 0..models {
            // The likelihood depends only on differences of log strengths. The ones fix their mean.
            (0..=i).for_each(|j| *information.cell(i, j) = 1.0);
        }
        let [mut tie_gradient, mut tie_information] = [0.0; 2];
        for pair in &self.counts {
            let (i, j) = (pair.first, pair.second);
            let n = pair.won + pair.lost + pair.tied;
            let (a, b) = (roots[i] * roots[i], roots[j] * roots[j]);
            let tie = tie_parameter * roots[i] * roots[j];
            let all = a + b + tie;
            value -= n * (all.ln() + largest);
            let [a, b, tie] = [a, b, tie].map(|p| p / all);
            // Expected exponents of πᵢ, πⱼ and ν: 1, 0, 0 for a win, 0, 1, 0 for a loss, ½, ½, 1
            // for a tie. The information is their covariance.
            let (mean_i, mean_j) = (a + tie / 2.0, b + tie / 2.0);
            gradient[i] -= n * mean_i;
            gradient[j] -= n * mean_j;
            *information.cell(i, i) += n * (a + tie / 4.0 - mean_i * mean_i);
            *information.cell(j, j) += n * (b + tie / 4.0 - mean_j * mean_j);
            *information.cell(i, j) += n * (tie / 4.0 - mean_i * mean_j);
            if self.has_ties {
                tie_gradient += n * tie;
                tie_information += n * (tie - tie * tie);
                *information.cell(models, i) += n * (tie / 2.0 - tie * mean_i);
                *information.cell(models, j) += n * (tie / 2.0 - tie * mean_j);
            }
        }
        if self.has_ties {
            gradient[models] -= tie_gradient;
            *information.cell(models, models) += tie_information;
        }
        Derivatives { value, gradient, information }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    /// Wins of the row against the column: American League, 1987 (Agresti, Categorical Data
    /// Analysis, table 10.10). The published strengths are relative to Baltimore.
    #[test]
    fn strengths_equal_agresti_baseball_example() {
        let wins = [
            [0, 7, 9, 7, 7, 9, 11],
            [6, 0, 7, 5, 11, 9, 9],
            [4, 6, 0, 7, 7, 8, 12],
            [6, 8, 6, 0, 6, 7, 10],
            [6, 2, 6, 7, 0, 7, 12],
            [4, 4, 5, 6, 6, 0, 6],
            [2, 4, 1, 3, 1, 7, 0],
        ];
        let (mut pairs, mut weights) = (Vec::new(), Vec::new());
        for (i, row) in wins.iter().enumerate() {
            for (j, n) in row.iter().enumerate() {
                pairs.push(([i, j], Ordering::Greater));
                weights.push(f64::from(*n));
            }
        }
        let fit = Davidson::fit(&PairwiseOutcomes::new(7, &pairs, &weights)).unwrap();
        let published = [1.581, 1.436, 1.294, 1.248, 1.108, 0.684, 0.0];
        for (strength, expected) in fit.strengths.iter().zip(published) {
            assert!((strength - fit.strengths[6] - expected).abs() < 6e-4, "{fit:?}");
        }
        assert_eq!((fit.tie_parameter, fit.ranks()), (0.0, vec![1, 2, 3, 4, 5, 6, 7]));
    }

    fn outcomes(pairs: &[([usize; 2], Ordering)], models: usize) -> PairwiseOutcomes {
        PairwiseOutcomes::new(models, pairs, &vec![1.0; pairs.len()])
    }

    #[test]
    fn unbounded_strengths_are_reported() {
        use Ordering::{Equal, Greater, Less};
        let beaten = outcomes(&[([0, 1], Greater), ([1, 2], Less), ([1, 2], Greater)], 3);
        assert!(matches!(Davidson::fit(&beaten), Err(Undefined::Unbounded(_))));
        assert_eq!(Davidson::fit_penalised(&beaten).ranks()[0], 1);
        let ties = outcomes(&[([0, 1], Equal)], 2);
        assert_eq!(Davidson::fit(&ties), Err(Undefined::Unbounded("every pair is a tie")));
        assert!(Davidson::fit(&outcomes(&[], 1)).is_err());
    }

    /// Ties join the models, but no outcome limits ν: a larger lead with a larger ν always fits
    /// better. A chain of wins from a model to itself, or a chain longer than its ties, limits it.
    #[test]
    fn separation_of_wins_and_ties_is_unbounded() {
        use Ordering::{Equal, Greater};
        let separated = [([0, 1], Greater), ([0, 1], Equal), ([1, 2], Greater), ([1, 2], Equal)];
        let fit = Davidson::fit(&outcomes(&separated, 3));
        assert!(matches!(fit, Err(Undefined::Unbounded(_))), "{fit:?}");
        let penalised = Davidson::fit_penalised(&outcomes(&separated, 3));
        assert_eq!(penalised.ranks(), [1, 2, 3]);
        assert!(penalised.strengths[0] < 3.0 && penalised.tie_parameter < 5.0, "{penalised:?}");
        let long_chain = [([0, 1], Greater), ([1, 2], Greater), ([0, 2], Equal)];
        assert!(Davidson::fit(&outcomes(&long_chain, 3)).is_ok());
        let cycle = [([0, 1], Greater), ([1, 0], Greater), ([0, 1], Equal)];
        assert!(Davidson::fit(&outcomes(&cycle, 2)).is_ok());
    }

    /// With `n` wins and no loss, Firth's penalty gives ln (2n + 1).
    #[test]
    fn penalised_strengths_of_two_models_are_close_to_firth() {
        for n in [3_u32, 10, 100] {
            let games = vec![([0, 1], Ordering::Greater); n as usize];
            let fit = Davidson::fit_penalised(&outcomes(&games, 2));
            let difference = fit.strengths[0] - fit.strengths[1];
            let firth = f64::from(2 * n + 1).ln();
            assert!((0.0..0.5).contains(&(difference - firth)), "{n}: {difference} {firth}");
        }
    }

    /// At the maximum, the expected points of each model and the expected ties equal the observed
    /// ones (Davidson 1970, section 3).
    #[test]
    fn expected_points_of_many_models_equal_observed_ones() {
        let models = 40;
        let mut pairs = Vec::new();
        for i in 0..models {
            for j in (0..models).filter(|j| *j != i) {
                let order = match (i * 7 + j * 5 + i * j) % 5 {
                    0 => Ordering::Equal,
                    1 if i < j => Ordering::Greater,
                    n if n % 2 == 0 => Ordering::Greater,
                    _ => Ordering::Less,
                };
                pairs.push(([i, j], order));
            }
        }
        let fit = Davidson::fit(&outcomes(&pairs, models)).unwrap();
        let mut differences = vec![0.0; models + 1];
        for ([i, j], order) in &pairs {
            let [a, b] = [i, j].map(|model| fit.strengths[*model].exp());
            let tie = fit.tie_parameter * (a * b).sqrt();
            let [win, tie] = [a, tie].map(|p| p / (a + b + tie));
            let (points, tied) = match order {
                Ordering::Greater => (1.0, 0.0),
                Ordering::Equal => (0.5, 1.0),
                Ordering::Less => (0.0, 0.0),
            };
            differences[*i] += win + tie / 2.0 - points;
            differences[*j] -= win + tie / 2.0 - points;
            differences[models] += tie - tied;
        }
        assert!(differences.iter().all(|d| d.abs() < 1e-8), "{differences:?}");
        let penalised = Davidson::fit_penalised(&outcomes(&pairs, models));
        for (a, b) in fit.strengths.iter().zip(&penalised.strengths) {
            assert!((a - b).abs() < 0.1, "{a} {b}");
        }
    }

    /// Three wins, one loss and two ties. With π = (3, 1) the probabilities are in the ratio
    /// 3 : 1 : ν √3, so ν = 2 / √3.
    #[test]
    fn fit_with_ties_matches_calculation_by_hand() {
        use Ordering::{Equal, Greater};
        let pairs = [
            ([0, 1], Greater),
            ([0, 1], Greater),
            ([0, 1], Greater),
            ([1, 0], Greater),
            ([0, 1], Equal),
            ([1, 0], Equal),
        ];
        let fit = Davidson::fit(&outcomes(&pairs, 2)).unwrap();
        assert!((fit.strengths[0] - fit.strengths[1] - 3f64.ln()).abs() < 1e-9);
        assert!((fit.tie_parameter - 2.0 / 3f64.sqrt()).abs() < 1e-9, "{fit:?}");
    }
}
