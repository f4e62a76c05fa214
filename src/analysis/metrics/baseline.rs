//! What `BERTScore` gives for texts that have nothing to do with each other, by which it is rescaled.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::overlap::PrecisionRecall;

/// Reads the row of a layer from a file in bert-score's form: `LAYER,P,R,F`, as in its folder
/// `rescale_baseline`.
pub(super) fn read(path: &Path, layer: usize) -> Result<PrecisionRecall> {
    let file = || format!("--bert-baseline {}", path.display());
    let mut reader = csv::Reader::from_path(path).with_context(file)?;
    let head = reader.headers().with_context(file)?.clone();
    let names: Vec<&str> = head.iter().map(str::trim).collect();
    ensure!(
        names == ["LAYER", "P", "R", "F"],
        "{}: its columns are {}, expected LAYER,P,R,F\n\
         hint: take the file from bert-score's folder rescale_baseline, for the same checkpoint",
        file(),
        names.join(",")
    );
    for row in reader.deserialize() {
        let (found, precision, recall, f1): (usize, f64, f64, f64) = row.with_context(file)?;
        if found == layer {
            let of = [precision, recall, f1];
            ensure!(
                of.iter().all(|value| (-1.0..1.0).contains(value)),
                "{}: layer {layer} has {of:?}, expected numbers below 1",
                file()
            );
            return Ok(PrecisionRecall {
                precision,
                recall,
                f1,
            });
        }
    }
    bail!(
        "{}: it has no layer {layer}\nhint: it belongs to another checkpoint",
        file()
    )
}

/// A score as its distance from the baseline, 1 staying 1.
pub(super) fn rescaled(score: PrecisionRecall, baseline: PrecisionRecall) -> PrecisionRecall {
    let rescale = |score: f64, base: f64| (score - base) / (1.0 - base);
    PrecisionRecall {
        precision: rescale(score.precision, baseline.precision),
        recall: rescale(score.recall, baseline.recall),
        f1: rescale(score.f1, baseline.f1),
    }
}
