//! Test sets of the held-out parts of public data sets.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3_vision::ImageLimits;
use anyhow::{Error, Result};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::majority::MajorityAnswers;
use super::test_pair::{TestImage, TestPair};
use super::test_sets::{KnownOrder, TestSet};
use crate::data::cases::ImageSource;
use crate::data::dataset_rows::{
    DatasetItem, DatasetSplit, DistractorPool, ModelPair, PATH_VQA_TEST_ROWS,
    PATH_VQA_TRAINING_ROWS, load_dataset_items, parse_yes_no, path_vqa_model_pairs,
};
use crate::data::images::{ImageReader, LoadedImage};

/// Minimum number of words of both responses of a pair of long answers.
const LONG_ANSWER_WORDS: usize = 5;

/// A held-out split, with the names of its sets.
struct HeldOutSplit {
    split: DatasetSplit,
    /// Pairs with a wrong answer to a similar question.
    similar: &'static str,
    /// Pairs with a wrong answer to any question of the same type.
    of_type: &'static str,
}

/// The held-out splits with reference answers.
const SPLITS: [HeldOutSplit; 2] = [
    HeldOutSplit {
        split: DatasetSplit::SlakeValidate,
        similar: "SLAKE validate",
        of_type: "SLAKE validate, other wrong answers",
    },
    HeldOutSplit {
        split: DatasetSplit::VqaRadHeldOut,
        similar: "VQA-RAD held out",
        of_type: "VQA-RAD held out, other wrong answers",
    },
];

/// Where the wrong answer of a pair comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WrongAnswers {
    /// Answers to similar questions.
    Similar,
    /// Answers to any question of the same type, if the question does not give the alternatives.
    OfType,
}

/// What wrong answers and trivial rules are taken from.
struct AnswerStatistics {
    training: Vec<DatasetItem>,
    majority: MajorityAnswers,
}

/// Returns the held-out parts of the data sets in a folder. At most `limit` questions of each.
pub(super) fn data_set_pairs(data: &Path, seed: u64, limit: usize) -> Result<Vec<TestSet>> {
    let training = load_dataset_items(data, DatasetSplit::Train)?;
    let statistics = AnswerStatistics { majority: MajorityAnswers::new(&training), training };
    let mut images = DecodedImages::new();
    let mut sets = Vec::new();
    for HeldOutSplit { split, similar, of_type } in SPLITS {
        let items = load_dataset_items(data, split)?;
        let pool: Vec<DatasetItem> = statistics.training.iter().chain(&items).cloned().collect();
        let distractors = DistractorPool::new(&pool);
        for (name, wrong_answers) in
            [(similar, WrongAnswers::Similar), (of_type, WrongAnswers::OfType)]
        {
            let sampling = PairSampling { name, wrong_answers, seed, limit };
            let answers =
                AnswerSources { distractors: &distractors, majority: &statistics.majority };
            sets.push(reference_pairs(&items, sampling, answers, &mut images)?);
        }
    }
    sets.extend(model_answer_pairs(data, &statistics, limit, &mut images)?);
    Ok(sets)
}

/// Where the wrong answer of a question comes from, and the rule that prefers the more frequent one.
struct AnswerSources<'a> {
    distractors: &'a DistractorPool,
    majority: &'a MajorityAnswers,
}

/// Choice of the pairs of a test set.
#[derive(Clone, Copy)]
struct PairSampling {
    /// Name of the set.
    name: &'static str,
    /// Where the wrong answers come from.
    wrong_answers: WrongAnswers,
    /// Seed of the wrong answers and of the order of the responses.
    seed: u64,
    /// Maximum number of questions.
    limit: usize,
}

/// Pairs each reference answer with a plausible wrong one, in random order.
fn reference_pairs(
    items: &[DatasetItem],
    sampling: PairSampling,
    AnswerSources { distractors, majority }: AnswerSources,
    images: &mut DecodedImages,
) -> Result<TestSet> {
    let mut rng = ChaCha8Rng::seed_from_u64(sampling.seed);
    let (mut pairs, mut known_orders) = (Vec::new(), Vec::new());
    for item in items.iter().take(sampling.limit) {
        let wrong = match sampling.wrong_answers {
            WrongAnswers::Similar => distractors.sample(item, &mut rng),
            WrongAnswers::OfType => distractors.sample_of_type(item, &mut rng),
        };
        let Some(wrong) = wrong else {
            continue;
        };
        let reference_first = rng.random_bool(0.5);
        let mut responses = [item.answer.clone(), wrong];
        if !reference_first {
            responses.reverse();
        }
        pairs.push(TestPair {
            cluster: item.image_key.clone(),
            image: TestImage::Decoded(images.get(&item.image_key, &item.image)?),
            question: item.question.clone(),
            responses: responses.clone(),
        });
        let order = if reference_first { Ordering::Greater } else { Ordering::Less };
        let majority = majority.accuracy(item, &responses, order);
        known_orders.push(KnownOrder::of_answers(order, item.is_closed, majority));
    }
    let tests_other_images = sampling.wrong_answers == WrongAnswers::Similar;
    Ok(TestSet { name: sampling.name, pairs, known_orders, tests_other_images })
}

/// Pairs two models' answers to a closed question; exactly one agrees with the reference. Pairs of two
/// long answers are a set of their own; in the others, at least one is short.
fn model_answer_pairs(
    data: &Path,
    statistics: &AnswerStatistics,
    limit: usize,
    images: &mut DecodedImages,
) -> Result<[TestSet; 2]> {
    let set = |name| TestSet {
        name,
        pairs: Vec::new(),
        known_orders: Vec::new(),
        tests_other_images: true,
    };
    let mut sets = [set("Path-VQA, short model answers"), set("Path-VQA, long model answers")];
    let majority = most_frequent_path_vqa_answer(&statistics.training);
    let training_pairs = path_vqa_model_pairs(data, PATH_VQA_TRAINING_ROWS)?;
    let test_pairs = path_vqa_model_pairs(data, PATH_VQA_TEST_ROWS)?;
    for pair in without_training_images(test_pairs, &training_pairs) {
        let is_long = |text: &str| text.split_whitespace().count() >= LONG_ANSWER_WORDS;
        let [short, long] = &mut sets;
        let set = if pair.responses.iter().all(|r| is_long(&r.text)) { long } else { short };
        if set.pairs.len() >= limit {
            continue;
        }
        set.pairs.push(TestPair {
            image: TestImage::Decoded(images.get(&pair.image_key, &pair.image)?),
            cluster: pair.image_key,
            question: pair.question,
            responses: pair.responses.map(|r| r.text),
        });
        let order = if pair.better == 0 { Ordering::Greater } else { Ordering::Less };
        let majority = match parse_yes_no(&pair.reference) {
            Some(answer) => f64::from(u8::from(Some(answer) == majority)),
            None => 0.5,
        };
        set.known_orders.push(KnownOrder::of_answers(order, true, majority));
    }
    Ok(sets)
}

/// Returns the more frequent answer to the closed questions of Path-VQA: true for yes.
fn most_frequent_path_vqa_answer(training: &[DatasetItem]) -> Option<bool> {
    let items = training.iter().filter(|item| item.dataset == "path_vqa");
    let answers: Vec<bool> = items.filter_map(|item| parse_yes_no(&item.answer)).collect();
    let yes = answers.iter().filter(|answer| **answer).count();
    (!answers.is_empty()).then_some(2 * yes >= answers.len())
}

/// Removes pairs whose image occurs in the training rows.
fn without_training_images(
    mut pairs: Vec<ModelPair>,
    training_pairs: &[ModelPair],
) -> Vec<ModelPair> {
    let training_images: HashSet<&str> =
        training_pairs.iter().map(|p| p.image_key.as_str()).collect();
    pairs.retain(|pair| !training_images.contains(pair.image_key.as_str()));
    pairs
}

/// Decoded images, cached by key.
struct DecodedImages {
    reader: ImageReader,
    decoded: HashMap<String, Arc<LoadedImage>>,
}

impl DecodedImages {
    fn new() -> Self {
        Self {
            reader: ImageReader::new(PathBuf::new(), ImageLimits::default()),
            decoded: HashMap::new(),
        }
    }

    fn get(&mut self, key: &str, source: &ImageSource) -> Result<Arc<LoadedImage>> {
        if let Some(image) = self.decoded.get(key) {
            return Ok(image.clone());
        }
        let image = self.reader.load(source).map_err(Error::msg)?;
        self.decoded.insert(key.to_owned(), image.clone());
        Ok(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::Response;

    #[test]
    fn images_of_training_rows_are_excluded() {
        let response = |text: &str| Response { model: text.to_owned(), text: text.to_owned() };
        let pair = |row: u64, image: &str| ModelPair {
            row,
            image: ImageSource::File(image.into()),
            image_key: image.to_owned(),
            question: "Is it?".to_owned(),
            reference: "yes".to_owned(),
            responses: [response("yes"), response("no")],
            better: 0,
            opposed: true,
        };
        let training_pairs = [pair(3, "a"), pair(4, "b")];
        let test_pairs = vec![pair(1000, "c"), pair(1001, "b"), pair(1002, "d")];
        let rows: Vec<u64> =
            without_training_images(test_pairs, &training_pairs).iter().map(|p| p.row).collect();
        assert_eq!(rows, [1000, 1002]);
    }
}
