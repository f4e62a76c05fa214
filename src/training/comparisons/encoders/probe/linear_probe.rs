//! Compares encoders by linear probes on their frozen features and by retrieval.

use anyhow::Result;

use super::classifier::classify;
use super::features::{Features, encode_images, standardise};
use crate::training::comparisons::encoders::EncoderTestConfig;
use crate::training::comparisons::encoders::candidate::Candidate;
use crate::training::comparisons::encoders::peak_memory;
use crate::training::comparisons::encoders::probe::encoder_comparison::{
    EncoderComparison, EncoderRow, MeasuredValues,
};
use crate::training::comparisons::encoders::probe::labelled_images::{
    self, LabelledImage, LabelledImageSet,
};

/// Type of this comparison, and the name of its result files.
pub const MEASURE: &str = "probe";

/// Compares encoders by linear probes on each label and by retrieval: whether the nearest training
/// image has the same label.
pub fn compare(
    encoders: &[Candidate],
    config: &EncoderTestConfig,
    log: &dyn Fn(&str),
) -> Result<EncoderComparison> {
    let labelled = match &config.data {
        Some(data) => labelled_images::slake(data)?,
        None => labelled_images::phantoms(config.train_count, config.test_count, config.seed)?,
    };
    let mut rows = Vec::new();
    for encoder in encoders {
        log(&format!("{}: fitting linear probes", encoder.name));
        // Without a reset, the peak would include earlier rows.
        let was_reset = peak_memory::reset_peak();
        let row = probe(encoder, &labelled)?;
        rows.push(EncoderRow { peak_memory: peak_memory::peak().filter(|_| was_reset), ..row });
    }
    let budget = format!(
        "one linear probe per label, fitted on {} images, tested on {} other images",
        labelled.train.len(),
        labelled.test.len()
    );
    Ok(EncoderComparison::new(MEASURE, budget, &labelled.name, rows))
}

/// Fits and tests the probes of one encoder.
fn probe(encoder: &Candidate, set: &LabelledImageSet) -> Result<EncoderRow> {
    let encode = |images: &[LabelledImage]| {
        encode_images(encoder, &images.iter().map(|i| &i.image).collect::<Vec<_>>())
    };
    let Features { rows: mut train, seconds: train_seconds } = encode(&set.train)?;
    let Features { rows: mut test, seconds: test_seconds } = encode(&set.test)?;
    standardise(&mut train, &mut test);
    let nearest = nearest_rows(&train, &test);
    let mut by_label: Vec<(String, MeasuredValues)> = Vec::new();
    let mut retrieval: MeasuredValues = Vec::new();
    for (label, (name, classes)) in set.labels.iter().enumerate() {
        let train_classes: Vec<Option<usize>> =
            set.train.iter().map(|i| i.classes[label]).collect();
        let predictions = classify(&train, &train_classes, *classes, &test)?;
        let accuracy = |prediction: &dyn Fn(usize) -> Option<usize>| -> MeasuredValues {
            let images = set.test.iter().enumerate();
            images
                .filter_map(|(i, image)| {
                    let correct = image.classes[label]? == prediction(i)?;
                    Some((image.name.clone(), f64::from(u8::from(correct))))
                })
                .collect()
        };
        by_label.push((name.clone(), accuracy(&|i| predictions.get(i).copied())));
        retrieval.extend(accuracy(&|i| train_classes.get(*nearest.get(i)?).copied().flatten()));
    }
    let overall = by_label.iter().flat_map(|(_, values)| values.clone()).collect();
    let mut values = vec![("probe accuracy".to_owned(), overall)];
    let indented = |(name, values)| (format!("  {name}"), values);
    values.extend(by_label.into_iter().map(indented));
    values.push(("nearest-neighbour accuracy".to_owned(), retrieval));
    Ok(EncoderRow {
        images_per_second: (train.len() + test.len()) as f64
            / (train_seconds + test_seconds).max(1e-9),
        parameters: encoder.parameters(),
        hub: encoder.hub.clone(),
        ..EncoderRow::new(&encoder.name, values)
    })
}

/// Returns, for each row of `test`, the index of the row of `train` with the largest cosine
/// similarity.
fn nearest_rows(train: &[Vec<f32>], test: &[Vec<f32>]) -> Vec<usize> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    let norms: Vec<f32> = train.iter().map(|r| dot(r, r).sqrt().max(1e-9)).collect();
    let best = |row: &Vec<f32>| {
        let cosines = train.iter().zip(&norms).map(|(r, n)| dot(row, r) / n);
        let best = cosines.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or(0, |(i, _)| i)
    };
    test.iter().map(best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoints::hub::HubArgs;

    #[test]
    fn nearest_row_has_largest_cosine() {
        let train = vec![vec![1.0, 0.0], vec![5.0, 5.0], vec![-1.0, 0.0]];
        let test = vec![vec![0.9, 0.1], vec![0.1, 0.1], vec![-3.0, 1.0]];
        assert_eq!(nearest_rows(&train, &test), [0, 1, 2]);
    }

    #[test]
    fn comparison_lists_every_label() {
        let encoders = ["embedded", "random"]
            .map(|name| Candidate::open(name, &HubArgs::default(), true).unwrap());
        let set = EncoderTestConfig { data: None, train_count: 12, test_count: 6, seed: 3 };
        let comparison = compare(&encoders, &set, &|_| ()).unwrap();
        assert_eq!(comparison.rows.len(), 2);
        let names: Vec<&str> =
            comparison.rows[0].statistics.iter().map(|s| s.name.trim()).collect();
        assert_eq!(names[..3], ["probe accuracy", "kind", "count"]);
        assert_eq!(names.len(), 7);
        assert!(comparison.rows.iter().all(|r| r.images_per_second > 0.0));
        assert_eq!(comparison.rows[1].statistics[0].proportion.unwrap().n, 30);
    }
}
