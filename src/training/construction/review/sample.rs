//! A stratified sample of evaluations, as a table that people fill.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::evaluation_rows::{EvaluationRow, EvaluationRows};
use crate::support::files::atomic_file::write_atomic;
use crate::support::tables::Table;

/// Column with the key of the evaluation.
pub(super) const KEY: &str = "key";
/// Column with the name of the rater.
pub(super) const RATER: &str = "rater";
/// Columns of a review sheet that are no points.
pub(super) const FIXED_COLUMNS: [&str; 8] =
    [KEY, "id", "stratum", "image", "prompt", "evaluation", RATER, "comment"];

/// What to sample.
#[derive(Clone, Debug)]
pub struct SampleRequest {
    /// Number of evaluations.
    pub count: usize,
    /// Field whose values are the strata.
    pub by: String,
    /// Seed of the choice.
    pub seed: u64,
    /// What people rate: names of columns.
    pub points: Vec<String>,
}

/// Number of sampled evaluations, and of all, by stratum.
pub type SampledStrata = BTreeMap<String, [usize; 2]>;

/// Writes a sample of evaluations to a CSV file. Every stratum has the same number, as far as it has as many.
///
/// # Errors
///
/// The file exists, or cannot be written.
pub fn write_sample(
    rows: &EvaluationRows,
    request: &SampleRequest,
    out: &Path,
) -> Result<SampledStrata> {
    if fs::symlink_metadata(out).is_ok() {
        bail!(
            "--out {}: the file exists, and people may have filled it\n\
             hint: choose another name",
            out.display()
        );
    }
    let mut strata: BTreeMap<String, Vec<&EvaluationRow>> = BTreeMap::new();
    for row in &rows.rows {
        strata.entry(row.stratum(&request.by)).or_default().push(row);
    }
    if strata.keys().all(String::is_empty) {
        bail!(
            "--by {}: no evaluation has this field\nhint: name a field of the lines, such as member",
            request.by
        );
    }
    let sizes: Vec<usize> = strata.values().map(Vec::len).collect();
    let counts = allocate(request.count, &sizes);
    let header = ["key", "id", "stratum", "image", "prompt", "evaluation"].map(str::to_owned);
    let header = header.into_iter().chain(request.points.iter().cloned());
    let mut table = Table::new(header.chain([RATER.to_owned(), "comment".to_owned()]));
    let mut sampled = SampledStrata::new();
    for ((name, mut members), count) in strata.into_iter().zip(counts) {
        sampled.insert(name.clone(), [count, members.len()]);
        // The choice in one stratum does not depend on the others.
        let mut rng = ChaCha8Rng::seed_from_u64(request.seed ^ hash(&name));
        members.shuffle(&mut rng);
        for row in members.into_iter().take(count) {
            let image = match row.image() {
                "" => String::new(),
                image => rows.folder.join(image).display().to_string(),
            };
            let cells =
                [&row.key, row.text("id"), &name, &image, row.text("prompt"), row.completion()];
            let cells = cells.map(str::to_owned).into_iter();
            let empty = std::iter::repeat_n(String::new(), request.points.len() + 2);
            table.push_row(cells.chain(empty));
        }
    }
    write_atomic(out, table.to_csv()?.as_bytes())?;
    Ok(sampled)
}

/// Divides a number among strata of these sizes: equally, and what a stratum lacks among the others.
fn allocate(count: usize, sizes: &[usize]) -> Vec<usize> {
    let mut counts = vec![0; sizes.len()];
    let mut left = count.min(sizes.iter().sum());
    while left > 0 {
        for (count, size) in counts.iter_mut().zip(sizes) {
            if left > 0 && *count < *size {
                *count += 1;
                left -= 1;
            }
        }
    }
    counts
}

/// Returns a hash of a name that is equal on every machine (FNV-1a).
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_strata_leave_their_share_to_the_others() {
        assert_eq!(allocate(10, &[100, 100]), [5, 5]);
        assert_eq!(allocate(10, &[2, 100, 100]), [2, 4, 4]);
        assert_eq!(allocate(10, &[1, 2]), [1, 2]);
        assert_eq!(allocate(0, &[3]), [0]);
    }
}
