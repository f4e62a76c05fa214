//! Examples from the public data sets: attributes, answers, and pairs of a reference answer and a
//! plausible wrong answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acem3_experts::train::AttributeExample;
use acem3_vision::ImageLimits;
use anyhow::{Error, Result, bail};
use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;

use super::image_store::ImageStore;
use super::pixels::ImagePreparation;
use crate::data::dataset_rows::{
    DatasetItem, DistractorPool, ModelPair, TRAINING_SETS, load_training_items,
    path_vqa_model_pairs,
};
use crate::data::images::ImageReader;
use crate::data::phantoms::text::response_writer;
use crate::data::phantoms::{Claim, Defect};
use crate::support::digest::Digest;
use crate::training::examples::example::{
    AnswerExample, PairExample, QuestionWithAnswer, ResponseExample,
};
use crate::training::examples::sources::attributes::QuestionAttributes;
use crate::training::examples::sources::dataset_responses::{
    claim, corrupt_finding, lower_perfect_tone, sample_defects,
};

/// Maximum number of questions about an image in one sequence.
const MAX_QUESTIONS: usize = 8;
/// Probability that both responses are equal, either correct or wrong.
const EQUAL_RESPONSES_RATE: f64 = 0.15;
/// Data set of the responses of models.
const PATH_VQA: &str = "path_vqa";
/// Rows of the Path-VQA development set whose model responses are training data.
const TRAINING_ROWS: std::ops::Range<u64> = 0..1000;
/// Maximum number of words of an answer. Longer model responses are truncated.
const MAX_WORDS: usize = 60;

/// Training splits of the data sets, with preprocessed images.
pub(crate) struct DatasetExamples {
    items: Vec<DatasetItem>,
    /// Indices of the items of each image.
    by_image: Vec<Vec<usize>>,
    by_dataset: Vec<WeightedDataset>,
    images: ImageStore,
    distractors: DistractorPool,
    /// Responses of models to Path-VQA questions.
    model_pairs: Vec<ModelPair>,
    organs: Vec<String>,
    modalities: Vec<String>,
    frequent_questions: QuestionAttributes,
}

/// Data set with its sampling weight.
struct WeightedDataset {
    /// Indices of its items.
    items: Vec<usize>,
    weight: f64,
}

impl DatasetExamples {
    /// Reads the training splits in a folder and preprocesses their images.
    pub(crate) fn load(
        data: &Path,
        preparation: ImagePreparation,
        weights: &BTreeMap<String, f64>,
    ) -> Result<Self> {
        check_names(weights)?;
        let is_used = |name: &str| {
            weights.is_empty() || weights.get(name).is_some_and(|weight| *weight > 0.0)
        };
        let mut items = load_training_items(data, is_used)?;
        let model_pairs =
            if is_used(PATH_VQA) { path_vqa_model_pairs(data, TRAINING_ROWS)? } else { Vec::new() };
        let mut reader = ImageReader::new(PathBuf::new(), ImageLimits::default());
        let mut images = ImageStore::new(preparation);
        let sources = items.iter().map(|i| (&i.image_key, &i.image));
        let sources = sources.chain(model_pairs.iter().map(|p| (&p.image_key, &p.image)));
        for (key, image) in sources {
            if !images.contains(key) {
                let image = reader.load(image).map_err(Error::msg)?;
                images.insert(key, &image.decoded)?;
            }
        }
        items.retain(|i| i.answer.split_whitespace().count() <= MAX_WORDS);
        let mut by_image: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut by_dataset: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (i, item) in items.iter().enumerate() {
            by_image.entry(&item.image_key).or_default().push(i);
            by_dataset.entry(item.dataset).or_default().push(i);
        }
        let names = |name: fn(&DatasetItem) -> Option<&String>| {
            let mut names: Vec<String> = items.iter().filter_map(name).cloned().collect();
            names.sort();
            names.dedup();
            names
        };
        Ok(Self {
            by_image: by_image.into_values().collect(),
            by_dataset: weighted_datasets(by_dataset, weights),
            distractors: DistractorPool::new(&items),
            organs: names(|i| i.organ.as_ref()),
            modalities: names(|i| i.modality.as_ref()),
            frequent_questions: QuestionAttributes::new(&items),
            images,
            model_pairs,
            items,
        })
    }

    /// Returns the number of classes of the organ, of the modality, and of each frequent question.
    pub(crate) fn class_counts(&self) -> Vec<usize> {
        let fields = [self.organs.len().max(1), self.modalities.len().max(1)];
        fields.into_iter().chain(self.frequent_questions.class_counts()).collect()
    }

    /// Returns all texts, to train the tokenizer on.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> + '_ {
        let rows = self.items.iter().flat_map(|i| [i.question.clone(), format!(" {}", i.answer)]);
        let answers = self.model_pairs.iter().flat_map(|p| p.responses.iter());
        rows.chain(answers.map(|r| r.text.clone()))
    }

    /// Returns the hash of all texts and preprocessed images.
    pub(crate) fn digest(&self) -> Digest {
        let item_texts = |item: &DatasetItem| {
            let [organ, modality] =
                [&item.organ, &item.modality].map(|name| name.clone().unwrap_or_default());
            let (question, answer) = (item.question.clone(), item.answer.clone());
            let (set, image, group) =
                (item.dataset, item.image_key.clone(), item.question_type.clone());
            [set.to_owned(), image, question, answer, group, organ + &modality]
        };
        let pair_texts = |pair: &ModelPair| {
            let [first, second] = pair.responses.each_ref().map(|r| r.text.clone());
            let better = pair.better.to_string();
            let (image, question) = (pair.image_key.clone(), pair.question.clone());
            [image, question, pair.reference.clone(), first, second, better]
        };
        let rows = self.items.iter().map(item_texts);
        let mut parts: Vec<String> =
            rows.chain(self.model_pairs.iter().map(pair_texts)).flatten().collect();
        for (key, digest) in self.images.digests() {
            parts.extend([key.clone(), digest.to_string()]);
        }
        Digest::sha256(parts.join("\0").as_bytes())
    }

    /// Returns all answers.
    pub(crate) fn answer_texts(&self) -> impl Iterator<Item = String> + '_ {
        self.items.iter().map(|item| item.answer.clone())
    }

    /// Samples a question.
    pub(crate) fn question(&self, rng: &mut ChaCha8Rng) -> Option<String> {
        Some(self.sample_item(rng)?.question.clone())
    }

    /// Samples an image with its organ, modality and answers to frequent questions. The first
    /// `phantom_attributes` classes are unknown, because only phantoms have these attributes.
    pub(crate) fn attribute_example(
        &self,
        phantom_attributes: usize,
        rng: &mut ChaCha8Rng,
    ) -> Option<AttributeExample> {
        let item = self.sample_item(rng)?;
        let class = |names: &[String], name: &Option<String>| {
            name.as_ref().and_then(|name| names.binary_search(name).ok())
        };
        let mut classes = vec![None; phantom_attributes];
        classes.push(class(&self.organs, &item.organ));
        classes.push(class(&self.modalities, &item.modality));
        classes.extend(self.frequent_questions.classes(&item.image_key));
        Some(AttributeExample {
            pixels: self.images.augmented_whole(&item.image_key, rng)?,
            classes,
            patch_classes: Vec::new(),
        })
    }

    /// Samples an image with some of its questions and answers.
    pub(crate) fn answer_example(&self, rng: &mut ChaCha8Rng) -> Option<AnswerExample> {
        // Sampling an item instead of an image makes images with many questions more frequent.
        let item = self.sample_item(rng)?;
        let is_of_image = |items: &&Vec<usize>| {
            items.first().is_some_and(|i| self.items[*i].image_key == item.image_key)
        };
        let mut indices = self.by_image.iter().find(is_of_image)?.clone();
        indices.shuffle(rng);
        indices.truncate(MAX_QUESTIONS);
        let questions = indices.iter().map(|i| {
            let item = &self.items[*i];
            QuestionWithAnswer {
                question: item.question.clone(),
                answer: item.answer.to_lowercase(),
            }
        });
        Some(AnswerExample {
            image: self.images.augmented(&item.image_key, rng)?,
            questions: questions.collect(),
        })
    }

    /// Samples a pair with correct evaluations: the reference answer and a wrong one, or the
    /// responses of two models.
    pub(crate) fn pair(
        &self,
        wrong_finding_proportion: f64,
        rng: &mut ChaCha8Rng,
    ) -> Option<PairExample> {
        if rng.random_bool(0.1)
            && let Some(pair) = self.model_pairs.choose(rng)
        {
            return self.model_pair(pair, wrong_finding_proportion, rng);
        }
        let item = self.sample_item(rng)?;
        let wrong = self.distractors.sample(item, rng)?;
        let mut answers = [(item.answer.clone(), true), (wrong.clone(), false)];
        if rng.random_bool(EQUAL_RESPONSES_RATE) {
            let answer = answers[usize::from(rng.random_bool(0.5))].clone();
            answers = [answer.clone(), answer];
        }
        if rng.random_bool(0.5) {
            answers.reverse();
        }
        let is_bare = rng.random_bool(0.5);
        let responses = answers.map(|(answer, is_correct)| {
            let claim = claim(&answer, &item.answer, is_correct, rng);
            let defects = if is_bare { vec![Defect::Bare] } else { sample_defects(rng) };
            let mut response: ResponseExample =
                response_writer::write(&claim, &defects, rng).into();
            if let Some(other) = self
                .distractors
                .sample(item, rng)
                .filter(|_| rng.random_bool(wrong_finding_proportion))
            {
                corrupt_finding(&mut response, &claim.short, &other.to_lowercase());
            }
            response
        });
        Some(PairExample {
            image: Some(self.images.augmented(&item.image_key, rng)?),
            question: item.question.clone(),
            responses,
        })
    }

    /// Builds a pair from the responses of two models.
    fn model_pair(
        &self,
        pair: &ModelPair,
        wrong_finding_proportion: f64,
        rng: &mut ChaCha8Rng,
    ) -> Option<PairExample> {
        let reference = pair.reference.to_lowercase();
        let opposite = if reference.starts_with("yes") { "no" } else { "yes" };
        let mut responses = [0, 1].map(|i| {
            let is_correct = i == pair.better;
            let answer = if is_correct { reference.as_str() } else { opposite };
            let text: Vec<&str> =
                pair.responses[i].text.split_whitespace().take(MAX_WORDS).collect();
            let text = text.join(" ");
            let defects = if text.split(' ').count() < 3 { vec![Defect::Bare] } else { Vec::new() };
            let claim = Claim::with_one_concern(&text, answer, &reference, is_correct);
            let mut response: ResponseExample =
                response_writer::write(&claim, &defects, rng).into();
            response.text = text;
            // Model responses lack the friendly closing words that a perfect score requires.
            lower_perfect_tone(&mut response);
            if rng.random_bool(wrong_finding_proportion) {
                corrupt_finding(&mut response, answer, opposite);
            }
            response
        });
        if rng.random_bool(0.5) {
            responses.reverse();
        }
        Some(PairExample {
            image: Some(self.images.augmented(&pair.image_key, rng)?),
            question: pair.question.clone(),
            responses,
        })
    }

    /// Samples a data set by weight, and an item of it.
    fn sample_item(&self, rng: &mut ChaCha8Rng) -> Option<&DatasetItem> {
        let dataset = self.by_dataset.choose_weighted(rng, |dataset| dataset.weight).ok()?;
        self.items.get(*dataset.items.choose(rng)?)
    }
}

/// Checks that the configured weights name data sets.
fn check_names(weights: &BTreeMap<String, f64>) -> Result<()> {
    match weights.keys().find(|name| !TRAINING_SETS.contains(&name.as_str())) {
        Some(name) => {
            let known = TRAINING_SETS.join(", ");
            bail!("data_shares: unknown data set {name:?}, expected one of {known}")
        }
        None => Ok(()),
    }
}

/// Adds the configured weights to the data sets. Without configured weights, the weight is the
/// square root of the size.
fn weighted_datasets(
    datasets: BTreeMap<&str, Vec<usize>>,
    weights: &BTreeMap<String, f64>,
) -> Vec<WeightedDataset> {
    let weight = |name: &str, items: &[usize]| match weights.get(name) {
        Some(weight) => *weight,
        None if weights.is_empty() => (items.len() as f64).sqrt(),
        None => 0.0,
    };
    let weighted = datasets
        .into_iter()
        .map(|(name, items)| WeightedDataset { weight: weight(name, &items), items });
    weighted.collect()
}
