//! Pairs of responses to a question of a small data set.

use std::path::Path;

use image::RgbImage;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::config;
use crate::training::config::data_shares::DataShares;
use crate::training::examples::sources::dataset_examples::DatasetExamples;
use crate::training::examples::sources::dataset_pairs::PairMixture;
use crate::training::examples::sources::pixels::ImagePreparation;

const ANSWERS: [&str; 4] = ["liver", "lung", "heart", "brain"];

/// Writes a data set in the format of SLAKE with one question about four images.
fn write_data_set(data: &Path) {
    let rows = ANSWERS.iter().enumerate().map(|(i, answer)| {
        let folder = data.join(format!("slake/imgs/{i}"));
        std::fs::create_dir_all(&folder).unwrap();
        // Equal images would be one image.
        let pixel = image::Rgb([50 * i as u8; 3]);
        RgbImage::from_pixel(8, 8, pixel).save(folder.join("source.png")).unwrap();
        serde_json::json!({
            "qid": i, "img_name": format!("{i}/source.png"), "question": "Which organ?",
            "answer": answer, "q_lang": "en", "content_type": "Organ",
        })
    });
    let rows: Vec<serde_json::Value> = rows.collect();
    std::fs::write(data.join("slake/train.json"), serde_json::to_string(&rows).unwrap()).unwrap();
}

/// If no response is right, the panel learns that both differ from the finding, but not to state it.
#[test]
fn findings_of_pairs_without_right_answer_have_no_loss() {
    let data = tempfile::tempdir().unwrap();
    write_data_set(data.path());
    let images = ImagePreparation::of_training(&config()).unwrap();
    let shares = DataShares::from([("slake".to_owned(), 1.0)]);
    let examples = DatasetExamples::load(data.path(), images, &shares).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let (mut both_wrong, mut one_right) = (0, 0);
    for _ in 0..300 {
        let pair = examples.pair(PairMixture::default(), &shares, &mut rng).unwrap();
        let ratings = pair.responses.each_ref().map(|r| r.factual_rating().unwrap());
        let trains_finding = ratings.iter().any(|rating| rating.score == 5);
        assert!(ratings.iter().all(|rating| rating.trains_finding == trains_finding), "{pair:?}");
        assert!(ratings.iter().all(|rating| matches!(rating.score, 1 | 5)), "{pair:?}");
        let differ = ratings[0].analysis != ratings[1].analysis;
        both_wrong += usize::from(differ && !trains_finding);
        one_right += usize::from(differ && trains_finding);
    }
    assert!((5..60).contains(&both_wrong), "{both_wrong}");
    assert!(one_right > 150, "{one_right}");
}
