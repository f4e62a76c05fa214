//! Tests of the rows of public data sets, if the data sets are available.

use std::collections::BTreeSet;

use acem3::data::dataset_rows::{
    DatasetItem, DatasetSplit, DistractorPool, load_dataset_items, path_vqa_model_pairs,
};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::cases::public_data;

/// Returns the distinct images of items.
fn image_keys(items: &[DatasetItem]) -> BTreeSet<&str> {
    items.iter().map(|item| item.image_key.as_str()).collect()
}

#[test]
fn train_and_held_out_images_are_disjoint() {
    let Some(root) = public_data("") else { return };
    let load = |split| load_dataset_items(&root, split).unwrap();
    let slake = [load(DatasetSplit::SlakeTrain), load(DatasetSplit::SlakeValidate)];
    assert_eq!(slake.each_ref().map(|items| image_keys(items).len()), [450, 95]);
    let rad = [load(DatasetSplit::VqaRadTrain), load(DatasetSplit::VqaRadHeldOut)];
    assert_eq!(rad[0].len() + rad[1].len(), 1796);
    let held_out_proportion = image_keys(&rad[1]).len() as f64 / 313.0;
    assert!((0.05..0.15).contains(&held_out_proportion), "{held_out_proportion}");
    for [train, held_out] in [&slake, &rad] {
        assert!(image_keys(train).is_disjoint(&image_keys(held_out)));
    }
    let path = load(DatasetSplit::PathVqaTrain);
    assert_eq!((path.len(), image_keys(&path).len()), (7638, 1000));
    assert!(path.iter().all(|item| item.dataset == "path_vqa"));
}

#[test]
fn every_question_has_reproducible_distractors() {
    let Some(root) = public_data("") else { return };
    let items = load_dataset_items(&root, DatasetSplit::HeldOut).unwrap();
    let distractors = DistractorPool::new(&items);
    let sample_all = |seed| -> Vec<String> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        items.iter().map(|item| distractors.sample(item, &mut rng).unwrap()).collect()
    };
    let sampled = sample_all(1);
    assert_eq!(sampled, sample_all(1));
    assert_ne!(sampled, sample_all(2));
    for (item, wrong) in items.iter().zip(&sampled) {
        assert_ne!(item.answer.to_lowercase(), wrong.to_lowercase(), "{}", item.question);
    }
}

#[test]
fn model_pairs_are_closed_questions_in_row_range() {
    let Some(root) = public_data("") else { return };
    let pairs = path_vqa_model_pairs(&root, 1000..1500).unwrap();
    assert!(pairs.len() > 300, "{}", pairs.len());
    assert!(pairs.iter().all(|pair| (1000..1500).contains(&pair.row)));
    assert!(pairs.iter().all(|pair| ["yes", "no"].contains(&pair.reference.as_str())));
}
