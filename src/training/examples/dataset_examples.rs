//! What the public data sets teach: attributes, answers, and reference answers judged against
//! plausible wrong ones.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use acem3_experts::Criterion;
use acem3_experts::train::Observation;
use acem3_vision::{ImageProcessor, Limits};
use anyhow::{Error, Result, bail};
use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;

use super::pixels::{jitter, pixels};
use crate::data::dataset_rows::{
    DatasetItem, DatasetSplit, DistractorPool, ModelPair, load_real, path_vqa_model_pairs,
};
use crate::data::images::ImageReader;
use crate::data::phantoms::defect_table::RULES;
use crate::data::phantoms::rules::phrase;
use crate::data::phantoms::{Claim, Defect, response_writer};
use crate::support::digest::Digest;
use crate::training::examples::attributes::QuestionAttributes;
use crate::training::examples::example::{PairExample, Pixels, ResponseExample};

/// Questions asked about one image in one sequence.
const QUESTIONS: usize = 8;
/// How often both responses say the same, right or wrong.
const SAME: f64 = 0.15;
/// Rows of the Path-VQA development set whose model answers may be trained on.
const TRAINED_ROWS: std::ops::Range<u64> = 0..1000;
/// Words of a real model's answer that are kept.
const WORDS: usize = 60;

/// The train parts of the data sets, images decoded.
pub(crate) struct DatasetExamples {
    items: Vec<DatasetItem>,
    by_image: Vec<Vec<usize>>,
    /// Rows of each data set, and how often one is drawn.
    by_dataset: Vec<(Vec<usize>, f64)>,
    images: HashMap<String, Pixels>,
    wrong: DistractorPool,
    model_pairs: Vec<ModelPair>,
    side: usize,
    organs: Vec<String>,
    modalities: Vec<String>,
    asked: QuestionAttributes,
}

impl DatasetExamples {
    /// Reads the train parts under a folder and decodes their images once.
    pub(crate) fn load(
        data: &Path,
        side: usize,
        processor: &ImageProcessor,
        shares: &BTreeMap<String, f64>,
    ) -> Result<Self> {
        let mut items = load_real(data, DatasetSplit::Train)?;
        let model_pairs = path_vqa_model_pairs(data, TRAINED_ROWS)?;
        let mut files = ImageReader::new(PathBuf::new(), Limits::default());
        let mut images = HashMap::new();
        let pictured = items.iter().map(|i| (&i.image_key, &i.image));
        let pictured = pictured.chain(model_pairs.iter().map(|p| (&p.image_key, &p.image)));
        for (key, image) in pictured {
            if !images.contains_key(key) {
                let image = files.load(image).map_err(Error::msg)?;
                images.insert(key.clone(), pixels(&image.decoded, processor)?);
            }
        }
        items.retain(|i| i.answer.split_whitespace().count() <= WORDS);
        let mut by_image: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut by_dataset: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (i, item) in items.iter().enumerate() {
            by_image.entry(&item.image_key).or_default().push(i);
            by_dataset.entry(item.dataset).or_default().push(i);
        }
        let names = |of: fn(&DatasetItem) -> Option<&String>| {
            let mut names: Vec<String> = items.iter().filter_map(of).cloned().collect();
            names.sort();
            names.dedup();
            names
        };
        Ok(Self {
            by_image: by_image.into_values().collect(),
            by_dataset: shared_out(by_dataset, shares)?,
            wrong: DistractorPool::new(&items),
            organs: names(|i| i.organ.as_ref()),
            modalities: names(|i| i.modality.as_ref()),
            asked: QuestionAttributes::new(&items),
            images,
            model_pairs,
            items,
            side,
        })
    }

    /// Numbers of classes of the organ, of the modality, and of each frequent question.
    pub(crate) fn classes(&self) -> Vec<usize> {
        let named = [self.organs.len().max(1), self.modalities.len().max(1)];
        named.into_iter().chain(self.asked.sizes()).collect()
    }

    /// Texts the tokenizer learns from.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> + '_ {
        let rows = self
            .items
            .iter()
            .flat_map(|i| [i.question.clone(), format!(" {}", i.answer)]);
        let answers = self.model_pairs.iter().flat_map(|p| p.responses.iter());
        rows.chain(answers.map(|r| r.text.clone()))
    }

    /// The hash of all of it, images as a panel sees them.
    pub(crate) fn digest(&self) -> Digest {
        let texts = |item: &DatasetItem| {
            let known = [&item.organ, &item.modality].map(|name| name.clone().unwrap_or_default());
            let [organ, modality] = known;
            let (question, answer) = (item.question.clone(), item.answer.clone());
            let (set, image, group) = (item.dataset, item.image_key.clone(), item.group.clone());
            [
                set.to_owned(),
                image,
                question,
                answer,
                group,
                organ + &modality,
            ]
        };
        let compared = |pair: &ModelPair| {
            let [first, second] = pair.responses.each_ref().map(|r| r.text.clone());
            let better = pair.better.to_string();
            let (image, question) = (pair.image_key.clone(), pair.question.clone());
            [
                image,
                question,
                pair.reference.clone(),
                first,
                second,
                better,
            ]
        };
        let rows = self.items.iter().map(texts);
        let mut parts: Vec<String> = rows
            .chain(self.model_pairs.iter().map(compared))
            .flatten()
            .collect();
        let images: BTreeMap<&String, &Pixels> = self.images.iter().collect();
        for (key, pixels) in images {
            let bytes: Vec<u8> = pixels.iter().copied().flat_map(f32::to_le_bytes).collect();
            parts.extend([key.clone(), Digest::of(&bytes).to_string()]);
        }
        Digest::of(parts.join("\0").as_bytes())
    }

    /// Every answer.
    pub(crate) fn answers_said(&self) -> impl Iterator<Item = String> + '_ {
        self.items.iter().map(|item| item.answer.clone())
    }

    /// Any question.
    pub(crate) fn question(&self, rng: &mut ChaCha8Rng) -> Option<String> {
        Some(self.draw_item(rng)?.question.clone())
    }

    /// An image with its organ, its modality and what is often asked; `before` attributes of other sources are unknown.
    pub(crate) fn observation(&self, before: usize, rng: &mut ChaCha8Rng) -> Option<Observation> {
        let item = self.draw_item(rng)?;
        let class = |names: &[String], name: &Option<String>| {
            name.as_ref()
                .and_then(|name| names.binary_search(name).ok())
        };
        let mut classes = vec![None; before];
        classes.push(class(&self.organs, &item.organ));
        classes.push(class(&self.modalities, &item.modality));
        classes.extend(self.asked.classes(&item.image_key));
        Some(Observation {
            pixels: self.jittered(&item.image_key, rng)?,
            classes,
            marks: Vec::new(),
        })
    }

    /// An image with some of its questions and answers.
    pub(crate) fn answers(&self, rng: &mut ChaCha8Rng) -> Option<(Pixels, Vec<(String, String)>)> {
        // By item, so that an image with many questions comes more often.
        let item = self.draw_item(rng)?;
        let of_image = |rows: &&Vec<usize>| {
            rows.first()
                .is_some_and(|i| self.items[*i].image_key == item.image_key)
        };
        let mut rows = self.by_image.iter().find(of_image)?.clone();
        rows.shuffle(rng);
        rows.truncate(QUESTIONS);
        let facts = rows.iter().map(|i| {
            let item = &self.items[*i];
            (item.question.clone(), item.answer.to_lowercase())
        });
        Some((self.jittered(&item.image_key, rng)?, facts.collect()))
    }

    /// A judged pair: the reference against a wrong answer, or two real models' answers. `doubting` is
    /// the share of findings that are wrong ones.
    pub(crate) fn pair(&self, doubting: f64, rng: &mut ChaCha8Rng) -> Option<PairExample> {
        if rng.random_bool(0.1)
            && let Some(pair) = self.model_pairs.choose(rng)
        {
            return self.model_pair(pair, doubting, rng);
        }
        let item = self.draw_item(rng)?;
        let wrong = self.wrong.draw(item, rng)?;
        let mut said = [(item.answer.clone(), true), (wrong.clone(), false)];
        if rng.random_bool(SAME) {
            let same = said[usize::from(rng.random_bool(0.5))].clone();
            said = [same.clone(), same];
        }
        if rng.random_bool(0.5) {
            said.reverse();
        }
        let plain = rng.random_bool(0.5);
        let responses = said.map(|(answer, right)| {
            let claim = claim(&answer, &item.answer, right, rng);
            let defects = if plain {
                vec![Defect::Bare]
            } else {
                defects(rng)
            };
            let mut response: ResponseExample =
                response_writer::write(&claim, &defects, rng).into();
            if let Some(other) = self
                .wrong
                .draw(item, rng)
                .filter(|_| rng.random_bool(doubting))
            {
                doubt(&mut response, &claim.short, &other.to_lowercase());
            }
            response
        });
        Some(PairExample {
            pixels: Some(self.jittered(&item.image_key, rng)?),
            question: item.question.clone(),
            responses,
        })
    }

    fn model_pair(
        &self,
        pair: &ModelPair,
        doubting: f64,
        rng: &mut ChaCha8Rng,
    ) -> Option<PairExample> {
        let truth = pair.reference.to_lowercase();
        let other = if truth.starts_with("yes") {
            "no"
        } else {
            "yes"
        };
        let mut responses = [0, 1].map(|i| {
            let right = i == pair.better;
            let said = if right { truth.as_str() } else { other };
            let text: Vec<&str> = pair.responses[i]
                .text
                .split_whitespace()
                .take(WORDS)
                .collect();
            let text = text.join(" ");
            let bare = if text.split(' ').count() < 3 {
                vec![Defect::Bare]
            } else {
                Vec::new()
            };
            let claim = Claim::single(&text, said, &truth, right);
            let mut response: ResponseExample = response_writer::write(&claim, &bare, rng).into();
            response.text = text;
            // Real answers carry no courtesy; the generator's own closing words are not in them.
            neutral(&mut response);
            if rng.random_bool(doubting) {
                doubt(&mut response, said, other);
            }
            response
        });
        if rng.random_bool(0.5) {
            responses.reverse();
        }
        Some(PairExample {
            pixels: Some(self.jittered(&pair.image_key, rng)?),
            question: pair.question.clone(),
            responses,
        })
    }

    /// A row of any data set, each data set as often as its share asks.
    fn draw_item(&self, rng: &mut ChaCha8Rng) -> Option<&DatasetItem> {
        let rows = self
            .by_dataset
            .choose_weighted(rng, |(_, share)| *share)
            .ok()?;
        self.items.get(*rows.0.choose(rng)?)
    }

    fn jittered(&self, key: &str, rng: &mut ChaCha8Rng) -> Option<Pixels> {
        Some(jitter(self.images.get(key)?, self.side, rng))
    }
}

/// The rows of data sets with their shares; where none is given, the square roots of their sizes.
fn shared_out(
    rows: BTreeMap<&str, Vec<usize>>,
    shares: &BTreeMap<String, f64>,
) -> Result<Vec<(Vec<usize>, f64)>> {
    if let Some(name) = shares.keys().find(|name| !rows.contains_key(name.as_str())) {
        let known: Vec<&str> = rows.into_keys().collect();
        bail!(
            "data_shares names {name:?}, which is not among the data: {}",
            known.join(", ")
        );
    }
    let share = |name: &str, rows: &[usize]| match shares.get(name) {
        Some(share) => *share,
        None if shares.is_empty() => (rows.len() as f64).sqrt(),
        None => 0.0,
    };
    let rows = rows.into_iter();
    Ok(rows
        .map(|(name, rows)| {
            let share = share(name, &rows);
            (rows, share)
        })
        .collect())
}

/// What an answer claims, in words of its own or in a sentence.
fn claim(answer: &str, truth: &str, right: bool, rng: &mut ChaCha8Rng) -> Claim {
    let bare = answer.trim_end_matches('.');
    let sentence = match rng.random_range(0..4) {
        0 => format!("The answer is {}.", bare.to_lowercase()),
        1 => format!("It is {}.", bare.to_lowercase()),
        2 => format!("The image shows {}.", bare.to_lowercase()),
        _ => format!("{bare}."),
    };
    Claim::single(
        &sentence,
        &answer.to_lowercase(),
        &truth.to_lowercase(),
        right,
    )
}

fn defects(rng: &mut ChaCha8Rng) -> Vec<Defect> {
    if rng.random_bool(0.6) {
        return Vec::new();
    }
    let kinds = RULES
        .iter()
        .map(|rule| rule.defect)
        .filter(|d| *d != Defect::Evasive);
    kinds
        .collect::<Vec<_>>()
        .choose(rng)
        .copied()
        .into_iter()
        .collect()
}

/// Puts another finding into the factual analysis, to be read and not to be learned.
fn doubt(response: &mut ResponseExample, claimed: &str, shown: &str) {
    let at = Criterion::ALL
        .iter()
        .position(|c| *c == Criterion::FactualAccuracy);
    if let Some(rating) = at.and_then(|at| response.ratings.get_mut(at))
        && rating.score > 0
    {
        rating.analysis =
            response_writer::finding(claimed, shown, if claimed == shown { 5 } else { 1 });
        rating.learned = false;
    }
}

fn neutral(response: &mut ResponseExample) {
    let at = Criterion::ALL
        .iter()
        .position(|c| *c == Criterion::ToneAndEmpathy);
    if let Some(rating) = at.and_then(|at| response.ratings.get_mut(at))
        && rating.score == 5
    {
        rating.score = 4;
        rating.analysis = String::from(phrase(Criterion::ToneAndEmpathy, 4));
    }
}
