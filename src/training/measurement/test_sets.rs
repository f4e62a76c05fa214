//! Test sets of a measurement: phantoms and held-out parts of public data sets.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3_conclusion::compare;
use acem3_experts::Aspect;
use acem3_vision::{DecodedImage, Limits};
use anyhow::{Context, Error, Result};
use rand::seq::SliceRandom as _;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::config::MeasurementConfig;
use crate::data::cases::ImageSource;
use crate::data::dataset_rows::{
    DatasetItem, DatasetSplit, DistractorPool, ModelPair, load_real, path_vqa_model_pairs,
};
use crate::data::images::derived::loaded;
use crate::data::images::{ImageReader, LoadedImage};
use crate::data::phantoms::phantom;
use crate::training::measurement::test_pair::TestPair;

/// Rows of the Path-VQA development set that no training uses. A few of their images also occur in
/// [`TRAINED_ROWS`]; questions about those images are excluded.
const MEASURED_ROWS: Range<u64> = 1000..1500;
/// Rows of the Path-VQA development set that may be used for training.
const TRAINED_ROWS: Range<u64> = 0..1000;

const SLAKE: (&str, DatasetSplit) = ("SLAKE validate", DatasetSplit::SlakeValidate);

/// The known order of a pair.
pub(crate) struct KnownOrder {
    /// Which response is better.
    pub(crate) order: Ordering,
    /// Which response is better in each aspect, in the order of [`Aspect::ALL`]; `None` if unknown.
    pub(crate) aspects: [Option<Ordering>; 3],
    /// Whether the question is closed; `None` if unknown.
    pub(crate) closed: Option<bool>,
}

impl KnownOrder {
    /// Returns which response is better in this aspect; `None` if unknown.
    pub(crate) fn aspect(&self, aspect: Aspect) -> Option<Ordering> {
        let mut all = Aspect::ALL.into_iter().zip(self.aspects);
        all.find(|(of, _)| *of == aspect)
            .and_then(|(_, known)| known)
    }
}

/// A named list of pairs with known orders.
pub(crate) struct TestSet {
    pub(crate) name: &'static str,
    /// Whether the known orders come from exact final scores, including ties. Otherwise only the better
    /// response is known.
    pub(crate) exact: bool,
    pub(crate) trials: Vec<TestPair>,
    pub(crate) known: Vec<KnownOrder>,
}

/// Returns the phantoms and, with a data folder, the held-out parts of the data sets. Omits empty sets.
pub(crate) fn sets(plan: &MeasurementConfig) -> Result<Vec<TestSet>> {
    let mut sets = vec![phantoms(plan.phantoms, plan.seed)?];
    if let Some(data) = &plan.data {
        let parts = [SLAKE, ("VQA-RAD held out", DatasetSplit::VqaRadHeldOut)];
        let mut images = DecodedImages::new();
        for (name, split) in parts {
            sets.push(references(
                name,
                (data, split),
                (plan.seed, plan.limit),
                &mut images,
            )?);
        }
        sets.push(model_answers(data, plan.limit, &mut images)?);
    }
    sets.retain(|set| !set.trials.is_empty());
    Ok(sets)
}

/// Generates phantoms, whose correct verdict is known for every aspect.
pub(crate) fn phantoms(n: u64, seed: u64) -> Result<TestSet> {
    let (mut trials, mut known) = (Vec::new(), Vec::new());
    for i in 0..n {
        let phantom = phantom(seed, i);
        let (w, h) = (
            phantom.image.width() as usize,
            phantom.image.height() as usize,
        );
        let decoded = DecodedImage::from_rgb(w, h, phantom.image.into_raw());
        let image = loaded(
            "phantom",
            decoded.context("the phantom image has no pixels")?,
        );
        let [a, b] = phantom.responses;
        known.push(KnownOrder {
            order: a.conclusion.score.cmp(&b.conclusion.score),
            aspects: Aspect::ALL.map(|aspect| Some(compare([&a, &b].map(|r| r.aspect(aspect))))),
            closed: None,
        });
        let question = phantom.question.text;
        trials.push(TestPair {
            cluster: i.to_string(),
            image,
            question,
            responses: [a.text, b.text],
        });
    }
    Ok(TestSet {
        name: "phantoms",
        exact: true,
        trials,
        known,
    })
}

/// Samples questions of SLAKE's validation split that cover as many images as possible.
pub(crate) fn slake(data: &Path, n: u64, seed: u64) -> Result<TestSet> {
    let limit = usize::try_from(n).unwrap_or(usize::MAX);
    let (name, split) = SLAKE;
    let mut items = load_real(data, split)?;
    items.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let items = in_turn(items, |item| item.image_key.clone());
    of_items(
        name,
        (data, &items),
        (seed, limit),
        &mut DecodedImages::new(),
    )
}

/// Orders items round-robin: the first of each group, then the second of each, and so on.
fn in_turn<T>(items: Vec<T>, group: impl Fn(&T) -> String) -> Vec<T> {
    let mut taken: HashMap<String, usize> = HashMap::new();
    let turns = items.into_iter().map(|item| {
        let turn = taken.entry(group(&item)).or_default();
        *turn += 1;
        (*turn, item)
    });
    let mut turns: Vec<(usize, T)> = turns.collect();
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, item)| item).collect()
}

/// Pairs each reference answer with a plausible wrong one, in random order.
fn references(
    name: &'static str,
    (data, split): (&Path, DatasetSplit),
    (seed, limit): (u64, usize),
    images: &mut DecodedImages,
) -> Result<TestSet> {
    let items = load_real(data, split)?;
    of_items(name, (data, &items), (seed, limit), images)
}

fn of_items(
    name: &'static str,
    (data, items): (&Path, &[DatasetItem]),
    (seed, limit): (u64, usize),
    images: &mut DecodedImages,
) -> Result<TestSet> {
    let mut pool: Vec<DatasetItem> = load_real(data, DatasetSplit::Train)?;
    pool.extend(items.iter().cloned());
    let wrong = DistractorPool::new(&pool);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut trials, mut known) = (Vec::new(), Vec::new());
    for item in items.iter().take(limit) {
        let Some(other) = wrong.draw(item, &mut rng) else {
            continue;
        };
        let first = rng.random_bool(0.5);
        let mut responses = [item.answer.clone(), other];
        if !first {
            responses.reverse();
        }
        trials.push(TestPair {
            cluster: item.image_key.clone(),
            image: images.get(&item.image_key, &item.image)?,
            question: item.question.clone(),
            responses,
        });
        let order = if first {
            Ordering::Greater
        } else {
            Ordering::Less
        };
        known.push(KnownOrder {
            order,
            aspects: [None, Some(order), None],
            closed: Some(item.closed),
        });
    }
    Ok(TestSet {
        name,
        exact: false,
        trials,
        known,
    })
}

/// Pairs two models' answers to a closed question; exactly one agrees with the reference.
fn model_answers(data: &Path, limit: usize, images: &mut DecodedImages) -> Result<TestSet> {
    let (mut trials, mut known) = (Vec::new(), Vec::new());
    let trained = path_vqa_model_pairs(data, TRAINED_ROWS)?;
    let pairs = unseen(path_vqa_model_pairs(data, MEASURED_ROWS)?, &trained);
    for pair in pairs.into_iter().take(limit) {
        trials.push(TestPair {
            image: images.get(&pair.image_key, &pair.image)?,
            cluster: pair.image_key,
            question: pair.question,
            responses: pair.responses.map(|r| r.text),
        });
        let order = if pair.better == 0 {
            Ordering::Greater
        } else {
            Ordering::Less
        };
        known.push(KnownOrder {
            order,
            aspects: [None, Some(order), None],
            closed: Some(true),
        });
    }
    Ok(TestSet {
        name: "Path-VQA model answers",
        exact: false,
        trials,
        known,
    })
}

/// Removes pairs whose image occurs in the training rows.
fn unseen(mut pairs: Vec<ModelPair>, trained: &[ModelPair]) -> Vec<ModelPair> {
    let seen: HashSet<&str> = trained.iter().map(|p| p.image_key.as_str()).collect();
    pairs.retain(|pair| !seen.contains(pair.image_key.as_str()));
    pairs
}

/// Cache of decoded images by key.
struct DecodedImages {
    files: ImageReader,
    decoded: HashMap<String, Arc<LoadedImage>>,
}

impl DecodedImages {
    fn new() -> Self {
        Self {
            files: ImageReader::new(PathBuf::new(), Limits::default()),
            decoded: HashMap::new(),
        }
    }

    fn get(&mut self, key: &str, source: &ImageSource) -> Result<Arc<LoadedImage>> {
        if let Some(image) = self.decoded.get(key) {
            return Ok(image.clone());
        }
        let image = self.files.load(source).map_err(Error::msg)?;
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
        let ordered = in_turn(vec!["a1", "a2", "a3", "b1", "c1", "c2"], |text| {
            text[..1].to_owned()
        });
        assert_eq!(ordered, ["a1", "b1", "c1", "a2", "c2", "a3"]);
    }

    #[test]
    fn images_of_training_rows_are_excluded() {
        let response = |text: &str| Response {
            model: text.to_owned(),
            text: text.to_owned(),
        };
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
        let trained = [pair(3, "a"), pair(4, "b")];
        let measured = vec![pair(1000, "c"), pair(1001, "b"), pair(1002, "d")];
        let rows: Vec<u64> = unseen(measured, &trained).iter().map(|p| p.row).collect();
        assert_eq!(rows, [1000, 1002]);
    }
}
