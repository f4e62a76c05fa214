//! Assigns tasks to raters: which rater sees which task, in which order, and which response first. Equal
//! seeds give equal assignments.

use anyhow::{Result, bail};
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::study_config::StudyConfig;

/// First random stream of the order of two judges, one for each rater.
const JUDGE_STREAM: u64 = 1 << 32;

/// A task of a rater.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignedTask {
    /// Index of the task in the study.
    pub task: usize,
    /// True if the rater sees the second response first.
    pub is_swapped: bool,
    /// True if the rater sees the evaluation of the second judge first. Of no meaning before the study has
    /// its judges.
    pub is_judge_swapped: bool,
}

/// The tasks of every rater, in the order in which the rater sees them.
pub type Assignment = Vec<Vec<AssignedTask>>;

/// Assigns tasks to raters. Each task goes to as many raters as the study says, and the raters get equal
/// numbers as far as their limits allow.
///
/// # Errors
/// If the limits of the raters are too low for all tasks.
pub fn assign(config: &StudyConfig, tasks: usize) -> Result<Assignment> {
    let all = if config.decides_pairs() { 1 } else { config.raters.len() };
    let overlap = config.overlap.unwrap_or(all);
    let mut rng = ChaCha8Rng::seed_from_u64(config.seed);
    let mut order: Vec<usize> = (0..tasks).collect();
    order.shuffle(&mut rng);
    let mut quotas = quotas(config, tasks, overlap, &mut rng)?;
    let mut by_rater: Vec<Vec<usize>> = vec![Vec::new(); config.raters.len()];
    for task in order {
        // The raters with the largest remaining quotas come first, so that none is left with too many.
        let mut free: Vec<usize> = (0..config.raters.len()).collect();
        free.shuffle(&mut rng);
        free.sort_by_key(|rater| std::cmp::Reverse(quotas[*rater]));
        for rater in free.into_iter().take(overlap) {
            quotas[rater] = quotas[rater].saturating_sub(1);
            by_rater[rater].push(task);
        }
    }
    let assigned = by_rater.into_iter().enumerate().map(|(rater, mut tasks)| {
        let mut rng = ChaCha8Rng::seed_from_u64(config.seed);
        rng.set_stream(rater as u64 + 1);
        tasks.shuffle(&mut rng);
        let mut judges = ChaCha8Rng::seed_from_u64(config.seed);
        judges.set_stream(JUDGE_STREAM + rater as u64);
        let tasks = tasks.into_iter();
        let assigned = tasks.map(|task| AssignedTask {
            task,
            // Suggestions speak of the responses in the order of the pair.
            is_swapped: rng.random_bool(0.5) && !config.decides_pairs(),
            is_judge_swapped: judges.random_bool(0.5),
        });
        assigned.collect()
    });
    Ok(assigned.collect())
}

/// Returns the number of tasks of every rater: as equal as the limits allow.
fn quotas(
    config: &StudyConfig,
    tasks: usize,
    overlap: usize,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<usize>> {
    let limits: Vec<usize> =
        config.raters.iter().map(|rater| rater.cases.unwrap_or(tasks).min(tasks)).collect();
    let (needed, most) = (tasks * overlap, limits.iter().sum::<usize>());
    if most < needed {
        bail!(
            "the raters have too few cases: their limits add up to {most}, and {tasks} tasks with {overlap} \
             raters each need {needed}\n\
             hint: raise `cases` of some raters, lower `overlap`, or pass fewer cases"
        );
    }
    let mut raters: Vec<usize> = (0..limits.len()).collect();
    raters.shuffle(rng);
    let mut quotas = vec![0; limits.len()];
    let mut left = needed;
    while left > 0 {
        for rater in raters
            .iter()
            .copied()
            .filter(|rater| quotas[*rater] < limits[*rater])
            .collect::<Vec<_>>()
        {
            if left > 0 {
                quotas[rater] += 1;
                left -= 1;
            }
        }
    }
    Ok(quotas)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(raters: &str, overlap: usize) -> StudyConfig {
        let text = format!("name = \"s\"\nseed = 3\noverlap = {overlap}\nraters = {raters}");
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn every_task_has_the_overlap_and_raters_share_equally() {
        let config = config("[\"a\", \"b\", \"c\", \"d\", \"e\"]", 2);
        let assignment = assign(&config, 40).unwrap();
        let mut counts = [0; 40];
        for tasks in &assignment {
            assert_eq!(tasks.len(), 16);
            for assigned in tasks {
                counts[assigned.task] += 1;
            }
            let swapped = tasks.iter().filter(|assigned| assigned.is_swapped).count();
            assert!((3..=13).contains(&swapped), "{swapped}");
        }
        assert_eq!(counts, [2; 40]);
        assert_eq!(assign(&config, 40).unwrap(), assignment);
        // Raters see the same task in another order and on other sides.
        let all = StudyConfig { overlap: None, ..config };
        let assignment = assign(&all, 40).unwrap();
        assert!(assignment.iter().all(|tasks| tasks.len() == 40));
        assert_ne!(assignment[0], assignment[1]);
    }

    #[test]
    fn limits_are_kept() {
        let raters = "[{ name = \"a\", cases = 2 }, \"b\", \"c\"]";
        let assignment = assign(&config(raters, 2), 10).unwrap();
        let counts: Vec<usize> = assignment.iter().map(Vec::len).collect();
        assert_eq!(counts[0], 2);
        assert_eq!(counts.iter().sum::<usize>(), 20);
        // A limit above the equal part changes nothing.
        let raters = "[\"a\", \"b\", { name = \"c\", cases = 20 }]";
        for (overlap, expected) in [(1, [20, 20, 20]), (2, [50, 50, 20])] {
            let assignment = assign(&config(raters, overlap), 60).unwrap();
            let counts: Vec<usize> = assignment.iter().map(Vec::len).collect();
            assert_eq!(counts, expected);
        }
        let error = assign(&config("[{ name = \"a\", cases = 2 }]", 1), 3).unwrap_err().to_string();
        assert!(error.contains("add up to 2") && error.contains("hint:"), "{error}");
    }
}
