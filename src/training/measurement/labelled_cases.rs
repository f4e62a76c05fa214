//! Test set of the user's labelled cases.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::{Arc, Mutex};

use acem3_conclusion::compare_scores;
use acem3_experts::{Aspect, Criterion};
use acem3_vision::ImageLimits;
use anyhow::{Context, Error, Result, bail};

use super::test_pair::{TestImage, TestPair, UndecodedImage};
use super::test_sets::{KnownOrder, TestSet};
use crate::data::cases::{self, Case, CaseLabels, SourceOptions};
use crate::data::images::ImageReader;
use crate::judging::run::pairs::select_pairs;
use crate::support::digest::Digest;

/// Name of the test set.
const NAME: &str = "cases";

/// Labelled pairs with their hash.
pub(crate) struct LabelledCases {
    /// The pairs with the orders of their labels.
    pub(crate) set: TestSet,
    /// Hash of everything that can change a result: texts, images and labels.
    pub(crate) sha256: Digest,
}

impl LabelledCases {
    /// Reads the pairs of labelled cases, in the layouts of `acem3 judge`. Pairs without labels are
    /// left out. Images are decoded when they are judged.
    ///
    /// # Errors
    /// If a case or an image cannot be read, or no pair has labels.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let source = cases::open(path, &SourceOptions::default())?;
        let reader = ImageReader::new(cases::base_folder(path), ImageLimits::default());
        let reader = Arc::new(Mutex::new(reader));
        let mut set = TestSet {
            name: NAME,
            pairs: Vec::new(),
            known_orders: Vec::new(),
            tests_other_images: true,
        };
        let mut hashed = Vec::new();
        for case in source {
            let case = case.map_err(|problem| {
                Error::msg(format!(
                    "{}, line {}: {}",
                    problem.file.display(),
                    problem.line,
                    problem.message
                ))
            })?;
            add_case(&case, &reader, &mut set, &mut hashed)
                .with_context(|| format!("{}: case {}", path.display(), case.id))?;
        }
        if set.pairs.is_empty() {
            bail!(
                "{}: no pair has labels, expected some to compare verdicts with\n\
                 hint: give the cases `\"labels\": {{\"final\": [a, b], \"criteria\": {{…}}}}`, one score of 0 to 5 \
                 for each response",
                path.display()
            );
        }
        Ok(Self { set, sha256: Digest::sha256(&hashed) })
    }
}

/// Adds the labelled pairs of a case.
fn add_case(
    case: &Case,
    reader: &Arc<Mutex<ImageReader>>,
    set: &mut TestSet,
    hashed: &mut Vec<u8>,
) -> Result<()> {
    let Some(labels) = &case.labels else {
        return Ok(());
    };
    let image = case.image.clone().map(|source| UndecodedImage::new(source, Arc::clone(reader)));
    let image = image.transpose()?;
    let cluster = image.as_ref().map_or_else(|| case.id.clone(), UndecodedImage::key);
    for pair in select_pairs(case, None).map_err(Error::msg)? {
        let Some(known) = known_order(&case.id, labels, pair) else {
            continue;
        };
        let responses = pair.map(|i| case.responses[i].text.clone());
        let text = (&case.id, &case.question, &responses, &cluster, pair);
        hashed.extend(serde_json::to_vec(&text)?);
        set.pairs.push(TestPair {
            cluster: cluster.clone(),
            image: image.clone().map_or(TestImage::None, TestImage::Undecoded),
            question: case.question.clone(),
            responses,
        });
        set.known_orders.push(known);
    }
    hashed.extend(serde_json::to_vec(labels)?);
    Ok(())
}

/// Returns the orders that the labels give to a pair; `None` if they give none.
///
/// An aspect without a label has the mean of its criteria if all of them have labels.
fn known_order(case: &str, labels: &CaseLabels, pair: [usize; 2]) -> Option<KnownOrder> {
    let of_pair = |scores: &Vec<f64>| -> Option<[f64; 2]> {
        Some([*scores.get(pair[0])?, *scores.get(pair[1])?])
    };
    let criterion = |criterion: &Criterion| labels.criteria.get(criterion).and_then(of_pair);
    let aspect = |aspect: Aspect| -> Option<Ordering> {
        if let Some(scores) = labels.aspects.get(&aspect).and_then(of_pair) {
            return Some(compare_scores(scores));
        }
        let scores: Option<Vec<[f64; 2]>> = aspect.criteria().iter().map(criterion).collect();
        let sums = scores?.into_iter().fold([0.0; 2], |[a, b], [x, y]| [a + x, b + y]);
        Some(compare_scores(sums))
    };
    let criteria = labels.criteria.iter();
    let criteria = criteria.filter_map(|(key, scores)| Some((*key, of_pair(scores)?)));
    let criteria: Vec<(Criterion, Ordering)> =
        criteria.map(|(key, scores)| (key, compare_scores(scores))).collect();
    let other_aspects = labels.aspects.iter().filter(|(key, _)| !Aspect::ALL.contains(key));
    let other_aspects = other_aspects.filter_map(|(key, scores)| Some((*key, of_pair(scores)?)));
    let other_aspects: Vec<(Aspect, Ordering)> =
        other_aspects.map(|(key, scores)| (key, compare_scores(scores))).collect();
    let final_scores = labels.final_scores.as_ref().and_then(of_pair);
    let aspects = Aspect::ALL.map(aspect);
    let has_aspects = aspects.iter().any(Option::is_some) || !other_aspects.is_empty();
    if final_scores.is_none() && criteria.is_empty() && !has_aspects {
        return None;
    }
    Some(KnownOrder {
        order: final_scores.map(compare_scores),
        aspects,
        other_aspects,
        criteria,
        labels: final_scores
            .map(|scores| [0, 1].map(|i| (format!("{case} {}", pair[i]), scores[i]))),
        is_closed: None,
        majority: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(lines: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("cases.jsonl"), lines.join("\n")).unwrap();
        dir
    }

    fn line(id: &str, labels: &str) -> String {
        format!(
            "{{\"id\": \"{id}\", \"question\": \"q\", \"responses\": [{{\"model\": \"a\", \"text\": \"x\"}}, \
             {{\"model\": \"b\", \"text\": \"y\"}}]{labels}}}"
        )
    }

    #[test]
    fn labels_give_the_orders() {
        let labelled = ", \"labels\": {\"criteria\": {\"factual_accuracy\": [5, 1], \
                        \"up_to_date_information\": [2, 3], \"handling_uncertainty\": [1, 1], \
                        \"clarity_of_response\": [1, 1]}, \"aspects\": {\"patient_relevance\": [0, 2]}}";
        let final_only = ", \"labels\": {\"final\": [3, 3]}";
        let dir = write(&[&line("1", labelled), &line("2", ""), &line("3", final_only)]);
        let path = dir.path().join("cases.jsonl");
        let LabelledCases { set, sha256 } = LabelledCases::read(&path).unwrap();
        let [criteria, final_scores] = set.known_orders.as_slice() else {
            panic!("expected two labelled pairs");
        };
        assert_eq!(criteria.order, None);
        // One criterion of expression is not enough for the aspect.
        let expected = [None, Some(Ordering::Greater), Some(Ordering::Less)];
        assert_eq!(criteria.aspects, expected);
        assert_eq!(criteria.criterion(Criterion::UP_TO_DATE_INFORMATION), Some(Ordering::Less));
        assert_eq!(criteria.criterion(Criterion::TONE_AND_EMPATHY), None);
        assert_eq!(final_scores.order, Some(Ordering::Equal));
        // Another label is another test set.
        let changed = line("3", ", \"labels\": {\"final\": [3, 2]}");
        std::fs::write(&path, [line("1", labelled), changed].join("\n")).unwrap();
        assert_ne!(LabelledCases::read(&path).unwrap().sha256, sha256);
        std::fs::write(&path, line("1", "")).unwrap();
        let error = LabelledCases::read(&path).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("no pair has labels") && error.contains("hint: "), "{error}");
    }
}
