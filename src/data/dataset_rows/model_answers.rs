//! Pairs of model answers with exactly one right answer.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::data::cases;
use crate::data::cases::{Case, ImageSource, Response, SourceOptions};
use crate::data::dataset_rows::answer_terms::parse_yes_no;
use crate::data::dataset_rows::dataset_items::ImagePool;
use crate::data::dataset_rows::reference_match::matches_reference;

/// Two models' answers to a closed question. Exactly one agrees with the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelPair {
    /// Row of the data set, from 0.
    pub row: u64,
    /// Image. Pairs about the same image share its bytes.
    pub image: ImageSource,
    /// Image identifier, equal for pairs about the same image.
    pub image_key: String,
    /// Question.
    pub question: String,
    /// Reference answer: yes or no.
    pub reference: String,
    /// The two answers, in the order of the answers files.
    pub responses: [Response; 2],
    /// Index of the answer that agrees with the reference: 0 or 1.
    pub better: usize,
    /// True if the other answer is the opposite. Otherwise it contains neither yes nor no and may
    /// be a paraphrase of the right answer.
    pub opposed: bool,
}

/// Rows of the Path-VQA development set whose answers of models are training data.
pub const PATH_VQA_TRAINING_ROWS: Range<u64> = 0..1000;

/// Rows of the Path-VQA development set that no training uses. A few of their images also occur in
/// [`PATH_VQA_TRAINING_ROWS`].
pub const PATH_VQA_TEST_ROWS: Range<u64> = 1000..1500;

/// Returns all pairs of models with one right answer to the closed questions in `rows` of
/// Path-VQA's validation split. Reads `path_vqa/` and `answers/path_vqa_validation/` in
/// `data_root`.
///
/// # Errors
/// If the data or the answers are missing or malformed.
pub fn path_vqa_model_pairs(data_root: &Path, rows: Range<u64>) -> Result<Vec<ModelPair>> {
    let options = SourceOptions {
        answers: vec![data_root.join("answers/path_vqa_validation")],
        split: Some("validation".into()),
        ..SourceOptions::default()
    };
    let source = cases::open(&data_root.join("path_vqa"), &options)
        .context("could not open the model answers to path_vqa")?;
    let mut images = ImagePool::default();
    let mut pairs = Vec::new();
    for case in source.take(usize::try_from(rows.end).unwrap_or(usize::MAX)) {
        let case = case?;
        if rows.contains(&(case.line - 1)) {
            pairs.extend(model_pairs(case, &mut images));
        }
    }
    Ok(pairs)
}

fn model_pairs(case: Case, images: &mut ImagePool) -> Vec<ModelPair> {
    let Case { image, question, responses, reference, line, .. } = case;
    let (Some(image), Some(reference)) = (image, reference) else {
        return Vec::new();
    };
    if parse_yes_no(&reference).is_none() {
        return Vec::new();
    }
    let (image, image_key) = images.intern(image, "path_vqa");
    let verdicts: Vec<_> =
        responses.iter().map(|r| matches_reference(&r.text, &reference, true)).collect();
    let judged: Vec<_> = responses.iter().zip(verdicts).collect();
    let mut pairs = Vec::new();
    for (index, (first, a)) in judged.iter().enumerate() {
        for (second, b) in judged.iter().skip(index + 1) {
            let right = [*a == Some(true), *b == Some(true)];
            if right[0] == right[1] {
                continue;
            }
            pairs.push(ModelPair {
                row: line - 1,
                image: image.clone(),
                image_key: image_key.clone(),
                question: question.clone(),
                reference: reference.clone(),
                responses: [(*first).clone(), (*second).clone()],
                better: usize::from(right[1]),
                opposed: [*a, *b].contains(&Some(false)),
            });
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    #[test]
    fn pairs_have_exactly_one_right_answer() {
        let response = |(model, text): (&str, &str)| Response {
            model: model.to_owned(),
            text: text.to_owned(),
        };
        let texts = [("a", "Yes, it does."), ("b", "no"), ("c", "A phone."), ("d", "yes")];
        let case = Case {
            id: "x".into(),
            image: Some(ImageSource::File("a.jpg".into())),
            question: "Does it?".into(),
            responses: texts.map(response).to_vec(),
            reference: Some("yes".into()),
            labels: None,
            meta: Map::new(),
            extra: Map::new(),
            line: 8,
        };
        let pairs = model_pairs(case.clone(), &mut ImagePool::default());
        let found: Vec<_> = pairs
            .iter()
            .map(|p| {
                let models = [&p.responses[0].model[..], &p.responses[1].model[..]].concat();
                (models, p.better, p.opposed)
            })
            .collect();
        let expected = [("ab", 0, true), ("ac", 0, false), ("bd", 1, true), ("cd", 1, false)];
        assert_eq!(found, expected.map(|(m, b, o)| (m.to_owned(), b, o)));
        assert_eq!(pairs[0].row, 7);
        let open = Case { reference: Some("a nodule".into()), ..case };
        assert!(model_pairs(open, &mut ImagePool::default()).is_empty());
    }
}
