//! Compares encoders by linear probes on their frozen features and by retrieval.

use anyhow::Result;

use super::EncoderTestConfig;
use super::candidate::Candidate;
use super::classifier::classify;
use super::features::{Features, features, standardise};
use crate::training::encoders::encoder_comparison::{
    EncoderComparison, EncoderRow, MeasuredValues,
};
use crate::training::encoders::labelled_images;
use crate::training::encoders::labelled_images::{LabelledImage, LabelledImageSet};

/// Compares encoders by linear probes on each label and by retrieval: whether the nearest training
/// image has the same label.
pub fn compare(
    encoders: &[Candidate],
    set: &EncoderTestConfig,
    say: &dyn Fn(&str),
) -> Result<EncoderComparison> {
    let labelled = match &set.data {
        Some(data) => labelled_images::slake(data)?,
        None => labelled_images::phantoms(set.train, set.test, set.seed)?,
    };
    let mut rows = Vec::new();
    for encoder in encoders {
        say(&format!("{}: fitting linear probes", encoder.name));
        rows.push(crate::training::encoders::peak_memory::watched(|| {
            row(encoder, &labelled)
        })?);
    }
    let budget = format!(
        "one linear probe per label, fitted on {} images, tested on {} other images",
        labelled.train.len(),
        labelled.test.len()
    );
    Ok(EncoderComparison::new(
        "probe",
        budget,
        &labelled.name,
        rows,
    ))
}

fn row(encoder: &Candidate, set: &LabelledImageSet) -> Result<EncoderRow> {
    let encoded = |images: &[LabelledImage]| {
        features(
            encoder,
            &images.iter().map(|i| &i.image).collect::<Vec<_>>(),
        )
    };
    let Features {
        rows: mut train,
        seconds,
    } = encoded(&set.train)?;
    let Features {
        rows: mut test,
        seconds: more,
    } = encoded(&set.test)?;
    standardise(&mut train, &mut test);
    let nearest = nearest(&train, &test);
    let mut each: Vec<(String, MeasuredValues)> = Vec::new();
    let mut retrieved: MeasuredValues = Vec::new();
    for (label, (name, classes)) in set.labels.iter().enumerate() {
        let known: Vec<Option<usize>> = set.train.iter().map(|i| i.classes[label]).collect();
        let found = classify(&train, &known, *classes, &test)?;
        let correct = |predicted: &dyn Fn(usize) -> Option<usize>| -> MeasuredValues {
            let tested = set.test.iter().enumerate();
            tested
                .filter_map(|(i, image)| {
                    let correct = image.classes[label]? == predicted(i)?;
                    Some((image.name.clone(), f64::from(u8::from(correct))))
                })
                .collect()
        };
        each.push((name.clone(), correct(&|i| found.get(i).copied())));
        retrieved.extend(correct(&|i| known.get(*nearest.get(i)?).copied().flatten()));
    }
    let overall = each.iter().flat_map(|(_, values)| values.clone()).collect();
    let mut values = vec![("probe accuracy".to_owned(), overall)];
    let of_label = |(name, values)| (format!("  {name}"), values);
    values.extend(each.into_iter().map(of_label));
    values.push(("nearest-neighbour accuracy".to_owned(), retrieved));
    Ok(EncoderRow {
        images_per_second: (train.len() + test.len()) as f64 / (seconds + more).max(1e-9),
        parameters: encoder.parameters(),
        hub: encoder.hub.clone(),
        ..EncoderRow::new(&encoder.name, values)
    })
}

/// Returns, for each row of `test`, the index of the row of `train` with the largest cosine similarity.
fn nearest(train: &[Vec<f32>], test: &[Vec<f32>]) -> Vec<usize> {
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
    use crate::checkpoints::hub::HubFlags;

    #[test]
    fn nearest_row_has_largest_cosine() {
        let train = vec![vec![1.0, 0.0], vec![5.0, 5.0], vec![-1.0, 0.0]];
        let test = vec![vec![0.9, 0.1], vec![0.1, 0.1], vec![-3.0, 1.0]];
        assert_eq!(nearest(&train, &test), [0, 1, 2]);
    }

    #[test]
    fn comparison_lists_every_label() {
        let encoders = ["embedded", "random"]
            .map(|name| Candidate::open(name, &HubFlags::default(), true).unwrap());
        let set = EncoderTestConfig {
            data: None,
            train: 12,
            test: 6,
            seed: 3,
        };
        let found = compare(&encoders, &set, &|_| ()).unwrap();
        assert_eq!(found.rows.len(), 2);
        let names: Vec<&str> = found.rows[0]
            .figures
            .iter()
            .map(|f| f.name.trim())
            .collect();
        assert_eq!(names[..3], ["probe accuracy", "kind", "count"]);
        assert_eq!(names.len(), 7);
        assert!(found.rows.iter().all(|r| r.images_per_second > 0.0));
        assert_eq!(found.rows[1].figures[0].share.unwrap().n, 30);
    }
}
