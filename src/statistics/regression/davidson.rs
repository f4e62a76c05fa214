//! The Bradley–Terry model of pairwise comparisons, with ties after Davidson (1970).
//!
//! A model of strength πᵢ beats one of strength πⱼ with probability πᵢ / D, loses with πⱼ / D and
//! ties with ν √(πᵢ πⱼ) / D, where D is the sum of the three. Without ties ν is 0, which is the
//! plain Bradley–Terry model.

use std::cmp::Ordering;

use crate::statistics::regression::linear_solver::solve;
use crate::statistics::undefined::{Defined, Undefined, require_at_least};

/// Wins and ties of each pair of models.
#[derive(Clone, Debug, PartialEq)]
pub struct PairwiseOutcomes {
    /// `wins[i][j]`: wins of `i` against `j`.
    wins: Vec<Vec<f64>>,
    /// `ties[i][j]`: ties of `i` and `j`; symmetric.
    ties: Vec<Vec<f64>>,
}

/// The strengths of models.
#[derive(Clone, Debug, PartialEq)]
pub struct Davidson {
    /// Log strengths, with mean zero.
    pub strengths: Vec<f64>,
    /// The tie parameter ν; 0 without ties.
    pub tie_parameter: f64,
}

/// Inverse variance of the prior of [`Davidson::fit_shrunk`].
const PRIOR_PRECISION: f64 = 0.01;
/// Maximum Newton steps; about ten are typical.
const MAX_STEPS: usize = 100;

impl PairwiseOutcomes {
    /// Counts comparisons of pairs of models, each with the weight of its case.
    pub fn new(models: usize, pairs: &[([usize; 2], Ordering)], weights: &[f64]) -> Self {
        let empty = vec![vec![0.0; models]; models];
        let (mut wins, mut ties) = (empty.clone(), empty);
        for (([i, j], order), weight) in pairs.iter().zip(weights) {
            match order {
                Ordering::Greater => wins[*i][*j] += weight,
                Ordering::Less => wins[*j][*i] += weight,
                Ordering::Equal => {
                    ties[*i][*j] += weight;
                    ties[*j][*i] += weight;
                }
            }
        }
        Self { wins, ties }
    }

    /// Returns the number of models.
    pub fn models(&self) -> usize {
        self.wins.len()
    }

    /// Returns the wins of `i` against `j`.
    pub fn wins(&self, i: usize, j: usize) -> f64 {
        self.wins[i][j]
    }

    /// Returns the ties of `i` and `j`.
    pub fn ties(&self, i: usize, j: usize) -> f64 {
        self.ties[i][j]
    }

    /// Computes the win rate of a model; a tie counts as half a win.
    ///
    /// # Errors
    ///
    /// The model has no comparison.
    pub fn win_rate(&self, i: usize) -> Defined<f64> {
        let sum = |count: &dyn Fn(usize) -> f64| (0..self.models()).map(count).sum::<f64>();
        let (won, lost) = (sum(&|j| self.wins[i][j]), sum(&|j| self.wins[j][i]));
        let tied = sum(&|j| self.ties[i][j]);
        let all = won + lost + tied;
        require_at_least(1, all as usize, ["comparison", "comparisons"])?;
        Ok((won + tied / 2.0) / all)
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.models()).flat_map(|i| (0..i).map(move |j| (i, j)))
    }

    fn has_ties(&self) -> bool {
        self.pairs().any(|(i, j)| self.ties[i][j] > 0.0)
    }

    /// Returns true if a chain of wins and ties leads from the first model to every other one; with
    /// `back`, from every other one to the first.
    fn is_connected(&self, back: bool) -> bool {
        let mut reached = vec![false; self.models()];
        let mut open = vec![0];
        while let Some(i) = open.pop() {
            if std::mem::replace(&mut reached[i], true) {
                continue;
            }
            let wins = |j: usize| {
                if back { self.wins[j][i] } else { self.wins[i][j] }
            };
            open.extend((0..self.models()).filter(|&j| wins(j) + self.ties[i][j] > 0.0));
        }
        reached.into_iter().all(|reached| reached)
    }
}

impl Davidson {
    /// Fits the maximum-likelihood strengths.
    ///
    /// # Errors
    ///
    /// There are fewer than two models, or the likelihood has no maximum (Ford 1957): some models
    /// never lost to the others, some were never compared with the others, or all comparisons are
    /// ties.
    pub fn fit(outcomes: &PairwiseOutcomes) -> Defined<Self> {
        require_at_least(2, outcomes.models(), ["model", "models"])?;
        if !outcomes.is_connected(false) || !outcomes.is_connected(true) {
            return Err(Undefined::Unbounded(
                "some models never lost to the others or were never compared with them: \
                 their strengths are unbounded",
            ));
        }
        let decided = |(i, j): (usize, usize)| outcomes.wins[i][j] + outcomes.wins[j][i] > 0.0;
        if !outcomes.pairs().any(decided) {
            return Err(Undefined::Unbounded("every pair is a tie"));
        }
        Ok(Self::fit_newton(outcomes, 0.0))
    }

    /// Fits the posterior mode under a weak prior: log strengths and ln ν are normal with mean 0
    /// and standard deviation 10. The mode always exists. Used for ranks, not for intervals of
    /// strengths.
    pub fn fit_shrunk(outcomes: &PairwiseOutcomes) -> Self {
        Self::fit_newton(outcomes, PRIOR_PRECISION)
    }

    /// Maximises the penalised log-likelihood by Newton's method. It is concave; steps that
    /// overshoot are halved. `ridge`: precision of the prior, 0 for maximum likelihood.
    fn fit_newton(outcomes: &PairwiseOutcomes, ridge: f64) -> Self {
        let models = outcomes.models();
        // The last parameter is ln ν, left out without ties.
        let size = models + usize::from(outcomes.has_ties());
        let mut parameters = vec![0.0; size];
        let mut objective = penalised_log_likelihood(outcomes, &parameters, ridge);
        for _ in 0..MAX_STEPS {
            let (gradient, information) = derivatives(outcomes, &parameters, ridge);
            let Some(step) = solve(information, gradient) else {
                break;
            };
            let mut length = 1.0;
            let updated = loop {
                let next: Vec<f64> =
                    parameters.iter().zip(&step).map(|(a, s)| a + length * s).collect();
                let next_objective = penalised_log_likelihood(outcomes, &next, ridge);
                if next_objective >= objective || length < 1e-8 {
                    objective = next_objective;
                    break next;
                }
                length /= 2.0;
            };
            parameters = updated;
            if step.iter().all(|s| s.abs() < 1e-11) {
                break;
            }
        }
        let tie_parameter = parameters.get(models).map_or(0.0, |log| log.exp());
        parameters.truncate(models);
        let mean = parameters.iter().sum::<f64>() / models as f64;
        Self { strengths: parameters.into_iter().map(|s| s - mean).collect(), tie_parameter }
    }

    /// Returns the rank of each model, 1 for the strongest; ties share the best rank.
    pub fn ranks(&self) -> Vec<usize> {
        let above = |s: &f64| self.strengths.iter().filter(|t| **t > *s + 1e-9).count() + 1;
        self.strengths.iter().map(above).collect()
    }
}

/// Computes the probabilities of a win of the first model, a win of the second, and a tie.
fn probabilities(parameters: &[f64], i: usize, j: usize, models: usize) -> [f64; 3] {
    let (first, second) = (parameters[i], parameters[j]);
    let tie = parameters.get(models).map(|log| log + f64::midpoint(first, second));
    let largest = first.max(second).max(tie.unwrap_or(f64::NEG_INFINITY));
    let tie = tie.map_or(0.0, |t| (t - largest).exp());
    let (a, b) = ((first - largest).exp(), (second - largest).exp());
    [a, b, tie].map(|p| p / (a + b + tie))
}

fn penalised_log_likelihood(outcomes: &PairwiseOutcomes, parameters: &[f64], ridge: f64) -> f64 {
    let term = |count: f64, p: f64| if count > 0.0 { count * p.ln() } else { 0.0 };
    let pair = |(i, j): (usize, usize)| {
        let [a, b, tie] = probabilities(parameters, i, j, outcomes.models());
        term(outcomes.wins[i][j], a) + term(outcomes.wins[j][i], b) + term(outcomes.ties[i][j], tie)
    };
    let squares: f64 = parameters.iter().map(|a| a * a).sum();
    outcomes.pairs().map(pair).sum::<f64>() - ridge / 2.0 * squares
}

/// Computes the gradient of the penalised log-likelihood and its negated Hessian, with a term that
/// makes the Hessian invertible.
fn derivatives(
    outcomes: &PairwiseOutcomes,
    parameters: &[f64],
    ridge: f64,
) -> (Vec<f64>, Vec<Vec<f64>>) {
    let models = outcomes.models();
    let mut gradient: Vec<f64> = parameters.iter().map(|a| -ridge * a).collect();
    let mut information = vec![vec![0.0; parameters.len()]; parameters.len()];
    for (i, row) in information.iter_mut().enumerate() {
        row[i] += ridge;
        // The likelihood depends only on differences of log strengths. This term fixes their mean.
        if i < models {
            row.iter_mut().take(models).for_each(|cell| *cell += 1.0);
        }
    }
    for (i, j) in outcomes.pairs() {
        let (won, lost, tied) = (outcomes.wins[i][j], outcomes.wins[j][i], outcomes.ties[i][j]);
        let n = won + lost + tied;
        if n <= 0.0 {
            continue;
        }
        let [a, b, tie] = probabilities(parameters, i, j, models);
        // Probability of each outcome, and the exponents of πᵢ, πⱼ and ν in its numerator.
        let features = [(a, [1.0, 0.0, 0.0]), (b, [0.0, 1.0, 0.0]), (tie, [0.5, 0.5, 1.0])];
        let mean = [0, 1, 2].map(|f| features.iter().map(|(p, v)| p * v[f]).sum::<f64>());
        let observed = [won + tied / 2.0, lost + tied / 2.0, tied];
        let indices = [i, j, models];
        for f in (0..3).filter(|f| indices[*f] < parameters.len()) {
            gradient[indices[f]] += observed[f] - n * mean[f];
            for g in (0..3).filter(|g| indices[*g] < parameters.len()) {
                let product: f64 = features.iter().map(|(p, v)| p * v[f] * v[g]).sum();
                information[indices[f]][indices[g]] += n * (product - mean[f] * mean[g]);
            }
        }
    }
    (gradient, information)
}

#[cfg(test)]
mod tests {
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
        assert_eq!(Davidson::fit_shrunk(&beaten).ranks()[0], 1);
        let ties = outcomes(&[([0, 1], Equal)], 2);
        assert_eq!(Davidson::fit(&ties), Err(Undefined::Unbounded("every pair is a tie")));
        assert!(Davidson::fit(&outcomes(&[], 1)).is_err());
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

    #[test]
    fn tie_counts_as_half_a_win() {
        let pairs = [([0, 1], Ordering::Equal), ([0, 1], Ordering::Less)];
        let rate = outcomes(&pairs, 3).win_rate(0).unwrap();
        assert!((rate - 0.25).abs() < 1e-12);
        assert!(outcomes(&pairs, 3).win_rate(2).is_err());
    }
}
