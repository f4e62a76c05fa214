//! Test sets of a measurement: phantoms and held-out parts of public data sets.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3_conclusion::compare_scores;
use acem3_experts::{Aspect, Criterion};
use acem3_vision::{DecodedImage, ImageLimits};
use anyhow::{Context, Error, Result};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::data::cases::ImageSource;
use crate::data::dataset_rows::{
    DatasetItem, DatasetSplit, DistractorPool, ModelPair, load_dataset_items, path_vqa_model_pairs,
};
use crate::data::images::derived::image_from_pixels;
use crate::data::images::{ImageReader, LoadedImage};
use crate::data::phantoms::{Phantom, generate_phantom};
use crate::training::measurement::test_pair::{TestImage, TestPair};

/// Rows of the Path-VQA development set that no training uses. A few of their images also occur in
/// [`TRAINING_ROWS`]; questions about those images are excluded.
const TEST_ROWS: Range<u64> = 1000..1500;
/// Rows of the Path-VQA development set that may be used for training.
const TRAINING_ROWS: Range<u64> = 0..1000;

/// Name and split of the SLAKE test set.
const SLAKE: (&str, DatasetSplit) = ("SLAKE validate", DatasetSplit::SlakeValidate);

/// Known order of a pair.
pub(crate) struct KnownOrder {
    /// Order of the first response relative to the second; `None` if unknown.
    pub(crate) order: Option<Ordering>,
    /// Order in each aspect, in the order of [`Aspect::ALL`]; `None` if unknown.
    pub(crate) aspects: [Option<Ordering>; 3],
    /// Order in known aspects of other rubrics.
    pub(crate) other_aspects: Vec<(Aspect, Ordering)>,
    /// Order in the criteria that are known.
    pub(crate) criteria: Vec<(Criterion, Ordering)>,
    /// Key and known final score of both responses; `None` if unknown. A response has the same key in
    /// all its pairs.
    pub(crate) labels: Option<[(String, f64); 2]>,
    /// True for a closed question; `None` if unknown.
    pub(crate) is_closed: Option<bool>,
}

impl KnownOrder {
    /// Returns the order in this aspect; `None` if unknown.
    pub(crate) fn aspect(&self, aspect: Aspect) -> Option<Ordering> {
        let own = Aspect::ALL.into_iter().zip(self.aspects);
        let own = own.filter_map(|(candidate, order)| Some((candidate, order?)));
        let mut orders = own.chain(self.other_aspects.iter().copied());
        orders.find(|(candidate, _)| *candidate == aspect).map(|(_, order)| order)
    }

    /// Returns the order in this criterion; `None` if unknown.
    pub(crate) fn criterion(&self, criterion: Criterion) -> Option<Ordering> {
        let mut orders = self.criteria.iter();
        orders.find(|(candidate, _)| *candidate == criterion).map(|(_, order)| *order)
    }

    /// Returns the order of a pair whose better response is known, and with it that in medical
    /// knowledge.
    fn of_answers(order: Ordering, is_closed: bool) -> Self {
        Self {
            order: Some(order),
            aspects: [None, Some(order), None],
            other_aspects: Vec::new(),
            criteria: Vec::new(),
            labels: None,
            is_closed: Some(is_closed),
        }
    }
}

/// A named list of pairs with known orders.
pub(crate) struct TestSet {
    /// Name in tables.
    pub(crate) name: &'static str,
    /// The pairs to judge.
    pub(crate) pairs: Vec<TestPair>,
    /// Known order of each pair.
    pub(crate) known_orders: Vec<KnownOrder>,
}

/// Returns the held-out parts of the data sets in a folder. At most `limit` questions of each.
pub(crate) fn data_set_pairs(data: &Path, seed: u64, limit: usize) -> Result<Vec<TestSet>> {
    let splits = [SLAKE, ("VQA-RAD held out", DatasetSplit::VqaRadHeldOut)];
    let sampling = PairSampling { seed, limit };
    let mut images = DecodedImages::new();
    let mut sets = Vec::new();
    for (name, split) in splits {
        let items = load_dataset_items(data, split)?;
        sets.push(reference_pairs(name, data, &items, sampling, &mut images)?);
    }
    sets.push(model_answer_pairs(data, limit, &mut images)?);
    Ok(sets)
}

/// A pair with its known order.
pub(crate) struct KnownPair {
    /// The pair to judge.
    pub(crate) pair: TestPair,
    /// Its known order.
    pub(crate) known: KnownOrder,
}

impl KnownPair {
    /// Creates the pair of a phantom, whose correct verdict is known for every aspect. `i`: number of the
    /// phantom, which is its bootstrap cluster.
    pub(crate) fn of_phantom(phantom: Phantom, i: u64) -> Result<Self> {
        let (w, h) = (phantom.image.width() as usize, phantom.image.height() as usize);
        let decoded = DecodedImage::from_rgb(w, h, phantom.image.into_raw());
        let decoded = decoded.context("the phantom image has no pixels")?;
        let [a, b] = phantom.responses;
        let known = KnownOrder {
            order: Some(a.conclusion.score.cmp(&b.conclusion.score)),
            aspects: Aspect::ALL
                .map(|aspect| Some(compare_scores([&a, &b].map(|r| r.aspect_mean(aspect))))),
            other_aspects: Vec::new(),
            criteria: Criterion::ALL
                .map(|criterion| (criterion, a.score(criterion).cmp(&b.score(criterion))))
                .to_vec(),
            labels: Some([(0, &a), (1, &b)].map(|(side, response)| {
                (format!("{i} {side}"), f64::from(response.conclusion.score))
            })),
            is_closed: None,
        };
        let pair = TestPair {
            cluster: i.to_string(),
            image: TestImage::Decoded(image_from_pixels("phantom", decoded)),
            question: phantom.question.text,
            responses: [a.text, b.text],
        };
        Ok(Self { pair, known })
    }
}

/// Generates phantoms, whose correct verdict is known for every aspect.
pub(crate) fn phantoms(n: u64, seed: u64) -> Result<TestSet> {
    let (mut pairs, mut known_orders) = (Vec::new(), Vec::new());
    for i in 0..n {
        let KnownPair { pair, known } = KnownPair::of_phantom(generate_phantom(seed, i), i)?;
        pairs.push(pair);
        known_orders.push(known);
    }
    Ok(TestSet { name: "phantoms", pairs, known_orders })
}

/// Orders items round-robin: the first of each group, then the second of each, and so on.
pub(crate) fn round_robin<T>(items: Vec<T>, group: impl Fn(&T) -> String) -> Vec<T> {
    let mut group_sizes: HashMap<String, usize> = HashMap::new();
    let with_round = items.into_iter().map(|item| {
        let size = group_sizes.entry(group(&item)).or_default();
        *size += 1;
        (*size, item)
    });
    let mut with_round: Vec<(usize, T)> = with_round.collect();
    with_round.sort_by_key(|(round, _)| *round);
    with_round.into_iter().map(|(_, item)| item).collect()
}

/// Choice of the pairs of a test set.
#[derive(Clone, Copy)]
struct PairSampling {
    /// Seed of the wrong answers and of the order of the responses.
    seed: u64,
    /// Maximum number of questions.
    limit: usize,
}

/// Pairs each reference answer with a plausible wrong one, in random order.
fn reference_pairs(
    name: &'static str,
    data: &Path,
    items: &[DatasetItem],
    sampling: PairSampling,
    images: &mut DecodedImages,
) -> Result<TestSet> {
    let mut pool: Vec<DatasetItem> = load_dataset_items(data, DatasetSplit::Train)?;
    pool.extend(items.iter().cloned());
    let distractors = DistractorPool::new(&pool);
    let mut rng = ChaCha8Rng::seed_from_u64(sampling.seed);
    let (mut pairs, mut known_orders) = (Vec::new(), Vec::new());
    for item in items.iter().take(sampling.limit) {
        let Some(wrong) = distractors.sample(item, &mut rng) else {
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
            responses,
        });
        let order = if reference_first { Ordering::Greater } else { Ordering::Less };
        known_orders.push(KnownOrder::of_answers(order, item.is_closed));
    }
    Ok(TestSet { name, pairs, known_orders })
}

/// Pairs two models' answers to a closed question; exactly one agrees with the reference.
fn model_answer_pairs(data: &Path, limit: usize, images: &mut DecodedImages) -> Result<TestSet> {
    let (mut pairs, mut known_orders) = (Vec::new(), Vec::new());
    let training_pairs = path_vqa_model_pairs(data, TRAINING_ROWS)?;
    let test_pairs = path_vqa_model_pairs(data, TEST_ROWS)?;
    let test_pairs = without_training_images(test_pairs, &training_pairs);
    for pair in test_pairs.into_iter().take(limit) {
        pairs.push(TestPair {
            image: TestImage::Decoded(images.get(&pair.image_key, &pair.image)?),
            cluster: pair.image_key,
            question: pair.question,
            responses: pair.responses.map(|r| r.text),
        });
        let order = if pair.better == 0 { Ordering::Greater } else { Ordering::Less };
        known_orders.push(KnownOrder::of_answers(order, true));
    }
    Ok(TestSet { name: "Path-VQA model answers", pairs, known_orders })
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
    fn items_are_ordered_round_robin() {
        let ordered =
            round_robin(vec!["a1", "a2", "a3", "b1", "c1", "c2"], |text| text[..1].to_owned());
        assert_eq!(ordered, ["a1", "b1", "c1", "a2", "c2", "a3"]);
    }

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
