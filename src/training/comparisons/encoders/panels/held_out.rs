//! Held-out pairs with a known order, their question types and modalities.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acem3_vision::ImageLimits;
use anyhow::{Error, Result, bail};
use rand::seq::SliceRandom as _;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::data::dataset_rows::{DatasetItem, DatasetSplit, DistractorPool, load_dataset_items};
use crate::data::images::ImageReader;
use crate::data::phantoms::{Phantom, QuestionKind, generate_phantom};
use crate::support::digest::Digest;
use crate::training::measurement::majority::MajorityAnswers;
use crate::training::measurement::test_pair::{TestImage, TestPair};
use crate::training::measurement::test_sets::{KnownPair, round_robin};

/// Data sets with their training and held-out splits.
const SPLITS: [(&str, DatasetSplit, DatasetSplit); 2] = [
    ("SLAKE validate", DatasetSplit::SlakeTrain, DatasetSplit::SlakeValidate),
    ("VQA-RAD held out", DatasetSplit::VqaRadTrain, DatasetSplit::VqaRadHeldOut),
];
/// Name of a modality that the data set does not give.
const NOT_STATED: &str = "not stated";
/// Phantoms whose orders give the majority class, and the offset of their seed.
const MAJORITY_PHANTOMS: u64 = 400;
const MAJORITY_SEED: u64 = 0x006d_616a;

/// What is known about a pair.
#[derive(Clone, Debug)]
pub(super) struct PairFacts {
    /// Order of the first response relative to the second.
    pub(super) order: Ordering,
    /// Order in each aspect, in the order of [`Aspect::ALL`]; `None` if unknown.
    pub(super) aspects: [Option<Ordering>; 3],
    /// Groups of question types that the pair belongs to.
    pub(super) question_types: Vec<String>,
    /// Modality of the image.
    pub(super) modality: String,
    /// Whether the majority-class baseline orders the pair correctly: 0, ½ or 1.
    pub(super) majority: f64,
}

/// Held-out pairs.
pub(super) struct HeldOutPairs {
    /// Name in tables.
    pub(super) name: String,
    /// True if the known orders come from exact final scores, including ties. Otherwise only the
    /// better response is known.
    pub(super) is_exact: bool,
    /// The pairs.
    pub(super) pairs: Vec<TestPair>,
    /// Facts of each pair.
    pub(super) facts: Vec<PairFacts>,
    /// Hash of the pairs and of the training data.
    pub(super) sha256: Digest,
}

/// Choice of held-out pairs.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldOutChoice {
    /// Maximum number of pairs.
    pub(super) count: u64,
    /// Seed of the questions, of the wrong answers and of the order of the responses.
    pub(super) seed: u64,
}

impl HeldOutPairs {
    /// Loads the held-out parts of SLAKE and VQA-RAD in a folder, or generates phantoms.
    ///
    /// # Errors
    /// If a data set or an image cannot be read, or there is no pair.
    pub(super) fn load(data: Option<&Path>, choice: HeldOutChoice) -> Result<Self> {
        let held_out = match data {
            Some(data) => data_sets(data, choice)?,
            None => phantoms(choice)?,
        };
        if held_out.pairs.is_empty() {
            bail!(
                "no held-out pairs in {}\n\
                 hint: --data needs the folders slake and vqa_rad as released",
                data.map_or_else(|| "phantoms".to_owned(), |data| data.display().to_string())
            );
        }
        Ok(held_out)
    }

    /// Returns the names of groups in order of their first pair in a sorted list.
    pub(super) fn groups(&self, names: impl Fn(&PairFacts) -> Vec<String>) -> Vec<String> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for name in self.facts.iter().flat_map(names) {
            *counts.entry(name).or_default() += 1;
        }
        counts.into_keys().collect()
    }
}

/// Generates phantoms, whose correct verdict is known for every aspect.
fn phantoms(choice: HeldOutChoice) -> Result<HeldOutPairs> {
    let order = |phantom: &Phantom| {
        let [a, b] = phantom.responses.each_ref();
        a.conclusion.score.cmp(&b.conclusion.score)
    };
    let training_seed = choice.seed.wrapping_add(MAJORITY_SEED);
    let training = (0..MAJORITY_PHANTOMS).map(|i| order(&generate_phantom(training_seed, i)));
    let mut counts: BTreeMap<Ordering, usize> = BTreeMap::new();
    training.for_each(|order| *counts.entry(order).or_default() += 1);
    let majority = counts.into_iter().max_by_key(|(_, n)| *n).map(|(order, _)| order);
    let (mut pairs, mut facts) = (Vec::new(), Vec::new());
    for i in 0..choice.count {
        let phantom = generate_phantom(choice.seed, i);
        let question_types = vec![question_kind(phantom.question.kind).to_owned()];
        let modality = phantom.scene.kind.key().to_owned();
        let KnownPair { pair, known } = KnownPair::of_phantom(phantom, i)?;
        let order = known.order.unwrap_or(Ordering::Equal);
        facts.push(PairFacts {
            order,
            aspects: known.aspects,
            question_types,
            modality,
            majority: f64::from(u8::from(majority == Some(order))),
        });
        pairs.push(pair);
    }
    let sha256 = Digest::sha256(format!("phantoms {choice:?}").as_bytes());
    Ok(HeldOutPairs { name: "phantoms".to_owned(), is_exact: true, pairs, facts, sha256 })
}

fn question_kind(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::Ask(_) => "open question",
        QuestionKind::Verify(_) => "yes or no",
        QuestionKind::CountAndSide
        | QuestionKind::SizeAndTone
        | QuestionKind::PresenceAndModality => "two facts",
    }
}

/// Pairs reference answers with plausible wrong ones, from each data set in turn and on as many
/// images as possible.
fn data_sets(data: &Path, choice: HeldOutChoice) -> Result<HeldOutPairs> {
    let mut rng = ChaCha8Rng::seed_from_u64(choice.seed);
    let mut train = Vec::new();
    let mut by_set = Vec::new();
    for (_, training, held_out) in SPLITS {
        train.extend(load_dataset_items(data, training)?);
        let mut items = load_dataset_items(data, held_out)?;
        items.shuffle(&mut rng);
        by_set.push(round_robin(items, |item| item.image_key.clone()));
    }
    let longest = by_set.iter().map(Vec::len).max().unwrap_or(0);
    let in_turn = (0..longest).flat_map(|i| by_set.iter().filter_map(move |set| set.get(i)));
    let in_turn: Vec<&DatasetItem> = in_turn.collect();
    let pool: Vec<DatasetItem> =
        train.iter().cloned().chain(by_set.iter().flatten().cloned()).collect();
    let (distractors, majority) = (DistractorPool::new(&pool), MajorityAnswers::new(&train));
    let mut reader = ImageReader::new(PathBuf::new(), ImageLimits::default());
    let (mut pairs, mut facts) = (Vec::new(), Vec::new());
    let limit = usize::try_from(choice.count).unwrap_or(usize::MAX);
    let mut text = String::new();
    for item in in_turn {
        if pairs.len() == limit {
            break;
        }
        let Some(wrong) = distractors.sample(item, &mut rng) else {
            continue;
        };
        let reference_first = rng.random_bool(0.5);
        let mut responses = [item.answer.clone(), wrong];
        if !reference_first {
            responses.reverse();
        }
        let order = if reference_first { Ordering::Greater } else { Ordering::Less };
        text.extend(
            [&item.image_key, &item.question, &responses[0], &responses[1]]
                .map(|t| format!("{t}\n")),
        );
        facts.push(PairFacts {
            order,
            aspects: [None, Some(order), None],
            question_types: question_types(item),
            modality: item.modality.clone().unwrap_or_else(|| NOT_STATED.to_owned()),
            majority: majority.accuracy(item, &responses, order),
        });
        pairs.push(TestPair {
            cluster: item.image_key.clone(),
            image: TestImage::Decoded(reader.load(&item.image).map_err(Error::msg)?),
            question: item.question.clone(),
            responses,
        });
    }
    text.extend(train.iter().map(|i| format!("{}\n{}\n{}\n", i.image_key, i.question, i.answer)));
    Ok(HeldOutPairs {
        name: SPLITS.map(|(name, ..)| name).join(" and "),
        is_exact: false,
        pairs,
        facts,
        sha256: Digest::sha256(text.as_bytes()),
    })
}

/// Returns the question types of an item: closed or open, and the type in its data set.
fn question_types(item: &DatasetItem) -> Vec<String> {
    let answers = if item.is_closed { "closed" } else { "open" };
    let set = if item.dataset == "slake" { "SLAKE" } else { "VQA-RAD" };
    vec![answers.to_owned(), format!("{set} {}", item.question_type)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phantoms_have_types_modalities_and_a_constant_majority() {
        let choice = HeldOutChoice { count: 60, seed: 5 };
        let held_out = HeldOutPairs::load(None, choice).unwrap();
        assert_eq!((held_out.pairs.len(), held_out.facts.len()), (60, 60));
        let modalities = held_out.groups(|facts| vec![facts.modality.clone()]);
        assert_eq!(modalities, ["ct", "histology", "mri", "radiograph"]);
        let types = held_out.groups(|facts| facts.question_types.clone());
        assert_eq!(types, ["open question", "two facts", "yes or no"]);
        // The baseline gives the same order to every pair.
        let mut correct: Vec<Ordering> = held_out
            .facts
            .iter()
            .filter(|facts| facts.majority > 0.0)
            .map(|facts| facts.order)
            .collect();
        correct.dedup();
        assert_eq!(correct.len(), 1);
    }
}
