//! Examples from the public data sets: attributes, answers, and pairs of a reference answer and a
//! plausible wrong answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acem3_experts::train::{AttributeExample, TrainingImage};
use acem3_vision::ImageLimits;
use anyhow::{Error, Result};
use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;

use super::image_store::ImageStore;
use super::pixels::ImagePreparation;
use crate::data::dataset_rows::{
    DatasetItem, DistractorPool, ModelPair, PATH_VQA_TRAINING_ROWS, load_training_items,
    path_vqa_model_pairs,
};
use crate::data::images::ImageReader;
use crate::support::digest::Digest;
use crate::training::config::data_shares::DataShares;
use crate::training::examples::example::{AnswerExample, QuestionWithAnswer};
use crate::training::examples::sources::attributes::QuestionAttributes;
use crate::training::examples::sources::long_answers::{ImageFact, LongAnswers};

/// Maximum number of questions about an image in one sequence.
const MAX_QUESTIONS: usize = 8;
/// Data set of the responses of models.
pub(super) const PATH_VQA: &str = "path_vqa";
/// Maximum number of words of an answer. Longer model responses are truncated.
pub(super) const MAX_WORDS: usize = 60;

/// Training splits of the data sets, with preprocessed images.
pub(crate) struct DatasetExamples {
    pub(super) items: Vec<DatasetItem>,
    /// Indices of the items of each image, by the key of the image.
    by_image: BTreeMap<String, Vec<usize>>,
    by_dataset: Vec<WeightedDataset>,
    pub(super) images: ImageStore,
    pub(super) distractors: DistractorPool,
    /// Responses of models to Path-VQA questions.
    pub(super) model_pairs: Vec<ModelPair>,
    pub(super) long_answers: LongAnswers,
    organs: Vec<String>,
    modalities: Vec<String>,
    frequent_questions: QuestionAttributes,
}

/// Data set with its sampling weight.
struct WeightedDataset {
    name: String,
    /// Indices of its items.
    items: Vec<usize>,
    weight: f64,
}

impl WeightedDataset {
    /// Returns the weight in a stage: that of the stage's table, or its own if the stage has none.
    fn weight_in(&self, shares: &DataShares) -> f64 {
        match shares.get(&self.name) {
            Some(share) => *share,
            None if shares.is_empty() => self.weight,
            None => 0.0,
        }
    }
}

impl DatasetExamples {
    /// Reads the training splits in a folder and preprocesses their images.
    pub(crate) fn load(
        data: &Path,
        preparation: ImagePreparation,
        weights: &DataShares,
    ) -> Result<Self> {
        let is_used = |name: &str| {
            weights.is_empty() || weights.get(name).is_some_and(|weight| *weight > 0.0)
        };
        let mut items = load_training_items(data, is_used)?;
        let model_pairs = if is_used(PATH_VQA) {
            path_vqa_model_pairs(data, PATH_VQA_TRAINING_ROWS)?
        } else {
            Vec::new()
        };
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
        let mut by_image: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut by_dataset: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (i, item) in items.iter().enumerate() {
            by_image.entry(item.image_key.clone()).or_default().push(i);
            by_dataset.entry(item.dataset).or_default().push(i);
        }
        let names = |name: fn(&DatasetItem) -> Option<&String>| {
            let mut names: Vec<String> = items.iter().filter_map(name).cloned().collect();
            names.sort();
            names.dedup();
            names
        };
        Ok(Self {
            by_image,
            long_answers: LongAnswers::new(
                model_pairs.iter().flat_map(|p| p.responses.iter().map(|r| r.text.as_str())),
            ),
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

    /// Samples a question. `shares`: weights of the data sets in the stage, here and below.
    pub(crate) fn question(&self, shares: &DataShares, rng: &mut ChaCha8Rng) -> Option<String> {
        Some(self.sample_item(shares, rng)?.question.clone())
    }

    /// Samples an image.
    pub(crate) fn image(&self, shares: &DataShares, rng: &mut ChaCha8Rng) -> Option<TrainingImage> {
        self.images.augmented(&self.sample_item(shares, rng)?.image_key, rng)
    }

    /// Samples an image with its organ, modality and answers to frequent questions. The first
    /// `phantom_attributes` classes are unknown, because only phantoms have these attributes.
    pub(crate) fn attribute_example(
        &self,
        phantom_attributes: usize,
        shares: &DataShares,
        rng: &mut ChaCha8Rng,
    ) -> Option<AttributeExample> {
        let item = self.sample_item(shares, rng)?;
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
    pub(crate) fn answer_example(
        &self,
        shares: &DataShares,
        rng: &mut ChaCha8Rng,
    ) -> Option<AnswerExample> {
        // Sampling an item instead of an image makes images with many questions more frequent.
        let item = self.sample_item(shares, rng)?;
        let mut indices = self.by_image.get(&item.image_key)?.clone();
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

    /// Returns the other questions about the image of an item, with their answers.
    pub(super) fn other_questions(&self, item: &DatasetItem) -> Vec<ImageFact<'_>> {
        let items = self.by_image.get(&item.image_key).into_iter().flatten();
        let items = items.filter_map(|i| self.items.get(*i));
        let others = items.filter(|other| other.question != item.question);
        others.map(|other| ImageFact { question: &other.question, answer: &other.answer }).collect()
    }

    /// Samples a data set by weight, and an item of it.
    pub(super) fn sample_item(
        &self,
        shares: &DataShares,
        rng: &mut ChaCha8Rng,
    ) -> Option<&DatasetItem> {
        let weight = |dataset: &WeightedDataset| dataset.weight_in(shares);
        let dataset = self.by_dataset.choose_weighted(rng, weight).ok()?;
        self.items.get(*dataset.items.choose(rng)?)
    }

    /// Samples an item of the same data set.
    pub(super) fn other_item(
        &self,
        item: &DatasetItem,
        rng: &mut ChaCha8Rng,
    ) -> Option<&DatasetItem> {
        let dataset = self.by_dataset.iter().find(|dataset| dataset.name == item.dataset)?;
        self.items.get(*dataset.items.choose(rng)?)
    }

    /// Returns the weight of a data set in a stage; 0 for one that was not read.
    pub(super) fn weight_of(&self, name: &str, shares: &DataShares) -> f64 {
        let dataset = self.by_dataset.iter().find(|dataset| dataset.name == name);
        dataset.map_or(0.0, |dataset| dataset.weight_in(shares))
    }
}

/// Adds the configured weights to the data sets. Without configured weights, the weight is the
/// square root of the size.
fn weighted_datasets(
    datasets: BTreeMap<&str, Vec<usize>>,
    weights: &DataShares,
) -> Vec<WeightedDataset> {
    let weight = |name: &str, items: &[usize]| match weights.get(name) {
        Some(weight) => *weight,
        None if weights.is_empty() => (items.len() as f64).sqrt(),
        None => 0.0,
    };
    let weighted = datasets.into_iter().map(|(name, items)| WeightedDataset {
        name: name.to_owned(),
        weight: weight(name, &items),
        items,
    });
    weighted.collect()
}
