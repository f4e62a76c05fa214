//! Baselines for rescaled `BERTScore`: the scores of unrelated texts.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::analysis::metrics::lexical::overlap::PrecisionRecall;
use crate::support::files::regular_file;

/// Reads the baseline of a layer from a CSV file of bert-score (folder `rescale_baseline`, columns
/// `LAYER,P,R,F`).
pub(crate) fn read_baseline(path: &Path, layer: usize) -> Result<PrecisionRecall> {
    let file = || format!("--bert-baseline {}", path.display());
    let mut reader = csv::Reader::from_reader(regular_file::open(path).with_context(file)?);
    let header = reader.headers().with_context(file)?.clone();
    let names: Vec<&str> = header.iter().map(str::trim).collect();
    ensure!(
        names == ["LAYER", "P", "R", "F"],
        "{}: expected columns LAYER,P,R,F, found {}\n\
         hint: use the file for this checkpoint from bert-score's folder rescale_baseline",
        file(),
        names.join(",")
    );
    for row in reader.deserialize() {
        let (row_layer, precision, recall, f1): (usize, f64, f64, f64) = row.with_context(file)?;
        if row_layer == layer {
            let values = [precision, recall, f1];
            ensure!(
                values.iter().all(|value| (-1.0..1.0).contains(value)),
                "{}: layer {layer}: expected values from -1 to below 1, found {values:?}",
                file()
            );
            return Ok(PrecisionRecall { precision, recall, f1 });
        }
    }
    bail!("{}: no row for layer {layer}\nhint: use the file for this checkpoint", file())
}

/// Rescales a score linearly: the baseline becomes 0, 1 stays 1.
pub(crate) fn rescale(score: PrecisionRecall, baseline: PrecisionRecall) -> PrecisionRecall {
    let rescale = |score: f64, base: f64| (score - base) / (1.0 - base);
    PrecisionRecall {
        precision: rescale(score.precision, baseline.precision),
        recall: rescale(score.recall, baseline.recall),
        f1: rescale(score.f1, baseline.f1),
    }
}
