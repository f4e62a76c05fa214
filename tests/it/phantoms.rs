//! Phantoms: images match their scenes, labels follow the rule, and the quality of responses has
//! the intended distribution.

use std::collections::BTreeSet;

use acem3::data::phantoms::{
    Lesion, LesionSide, LesionSize, LesionTone, Phantom, PhantomKind, QuestionKind, Scene,
    WrittenResponse, draw, generate_phantom, generate_scene,
};
use acem3_experts::{Aspect, Criterion};

const SEED: u64 = 20_260;
/// Side of an image, in pixels.
const SIDE: i32 = 128;

#[test]
fn equal_seed_and_index_give_equal_phantoms() {
    for index in 0..40 {
        let [a, b] = [generate_phantom(SEED, index), generate_phantom(SEED, index)];
        assert_eq!(a.image.as_raw(), b.image.as_raw());
        assert_eq!(a.responses, b.responses);
        assert_eq!(a.question, b.question);
        assert_eq!(a.scene, generate_scene(SEED, index));
        assert_eq!(a.image, draw(&a.scene));
    }
    assert_ne!(generate_phantom(SEED, 0).image, generate_phantom(SEED, 1).image);
    assert_ne!(generate_phantom(SEED, 0).image, generate_phantom(SEED + 1, 0).image);
}

/// If this hash changes, the committed demo cases and reported statistics are out of date.
#[test]
fn phantom_bytes_are_stable() {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut update_hash = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for index in 0..32 {
        let phantom = generate_phantom(7, index);
        update_hash(phantom.image.as_raw());
        update_hash(phantom.question.text.as_bytes());
        update_hash(phantom.reference.as_bytes());
        for response in &phantom.responses {
            update_hash(response.text.as_bytes());
            update_hash(response.conclusion.analysis.as_bytes());
        }
    }
    assert_eq!(format!("{hash:016x}"), "f9bc52171dc4e45e");
}

#[test]
fn labels_follow_the_rule() {
    for index in 0..800 {
        let phantom = generate_phantom(SEED, index);
        for response in &phantom.responses {
            let order: Vec<Criterion> = response.ratings.iter().map(|(c, _)| *c).collect();
            assert_eq!(order, Criterion::ALL);
            assert_final_score_follows_rule(response);
            assert_analysis_matches_facts(&phantom, response);
        }
    }
}

/// Final score: the lowest criterion score, with one point added to the criteria of expression, at
/// most 5.
fn assert_final_score_follows_rule(response: &WrittenResponse) {
    let lowest_score = |aspect: Aspect| {
        let scores = aspect.criteria().iter().map(|c| response.score(*c));
        scores.min().expect("an aspect has criteria")
    };
    let expression = lowest_score(Aspect::EXPRESSION) + 1;
    let other_aspects =
        lowest_score(Aspect::MEDICAL_KNOWLEDGE).min(lowest_score(Aspect::PATIENT_RELEVANCE));
    let expected = expression.min(other_aspects).min(5);
    assert_eq!(response.conclusion.score, expected, "{response:?}");
    let text = &response.conclusion.analysis;
    assert_eq!(text == "No weakness.", expected == 5);
    if expected < 5 {
        let weakest = Criterion::ALL.into_iter().find(|c| {
            let bonus = u8::from(c.aspect() == Some(Aspect::EXPRESSION));
            response.score(*c) + bonus == expected
        });
        let weakest = weakest.expect("some criterion decides");
        assert_eq!(*text, format!("Weakest: {} {}.", weakest.name(), response.score(weakest)));
    }
}

/// Checks that the analysis of factual accuracy states the fact of the scene, and claims only what
/// the response contains.
fn assert_analysis_matches_facts(phantom: &Phantom, response: &WrittenResponse) {
    const FORMAT: &str = "expected `The image shows …; the response claims …: …`";
    let analysis = &response.ratings[4].1.analysis;
    let rest = analysis.strip_prefix("The image shows ").expect(FORMAT);
    let (truth, claimed) = rest.split_once("; the response claims ").expect(FORMAT);
    let (claimed, agreement) = claimed.split_once(": ").expect(FORMAT);
    let answers: BTreeSet<String> = phantom
        .scene
        .all_questions()
        .into_iter()
        .filter(|(question, _)| question.text == phantom.question.text)
        .map(|(_, answer)| answer)
        .collect();
    assert_eq!(answers.into_iter().collect::<Vec<_>>(), [truth], "{}", phantom.question.text);
    let text = response.text.to_lowercase();
    if claimed != "nothing" && !text.is_empty() {
        for word in claimed
            .to_lowercase()
            .split([' ', ','])
            // In "right side, so no", the word "so" is from the analysis, not from the response.
            .filter(|word| !matches!(*word, "" | "so"))
        {
            assert!(text.contains(word), "{word:?} of {claimed:?} in {text:?}");
        }
    }
    let score = response.score(Criterion::FACTUAL_ACCURACY);
    let expected = match score {
        0 => "nothing to compare.",
        1 => "they differ.",
        5 => "they agree.",
        _ => "they agree in part.",
    };
    assert_eq!(agreement, expected);
    match score {
        5 => assert!(truth.contains(claimed) || claimed.split(", ").all(|c| truth.contains(c))),
        0 => assert_eq!(claimed, "nothing"),
        _ => assert_ne!(claimed, truth),
    }
}

#[test]
fn response_quality_has_the_intended_distribution() {
    let cases: Vec<Phantom> = (0..2000).map(|index| generate_phantom(SEED, index)).collect();
    let proportion = |count: usize, total: usize| count as f64 / total as f64;
    let orders = cases.iter().map(|case| {
        let [a, b] = &case.responses;
        a.conclusion.score.cmp(&b.conclusion.score)
    });
    let mut counts = [0usize; 3];
    orders.for_each(|order| counts[(order as i8 + 1) as usize] += 1);
    let [less, equal, greater] = counts.map(|count| proportion(count, cases.len()));
    assert!((0.35..0.45).contains(&less), "{less}");
    assert!((0.15..0.25).contains(&equal), "{equal}");
    assert!((0.35..0.45).contains(&greater), "{greater}");

    let all: Vec<&WrittenResponse> = cases.iter().flat_map(|case| &case.responses).collect();
    let wrong = all.iter().filter(|r| matches!(r.score(Criterion::FACTUAL_ACCURACY), 1 | 3));
    assert!((0.40..0.52).contains(&proportion(wrong.count(), all.len())));
    let perfect = all.iter().filter(|r| r.conclusion.score == 5).count();
    assert!((0.25..0.45).contains(&proportion(perfect, all.len())), "{perfect}");
    for (i, criterion) in Criterion::ALL.into_iter().enumerate() {
        let low = all.iter().filter(|r| r.ratings[i].1.score < 4).count();
        assert!(proportion(low, all.len()) > 0.02, "{} is never low", criterion.key());
    }

    let kinds: BTreeSet<&str> = cases.iter().map(|case| case.question.kind.key()).collect();
    assert_eq!(kinds.len(), QuestionKind::ALL.len());
    let empty = cases.iter().filter(|case| case.scene.lesion_count() == 0).count();
    assert!((0.12..0.18).contains(&proportion(empty, cases.len())));

    // Most pairs differ in factual accuracy, so a judge needs the image.
    let equally_accurate = cases.iter().filter(|case| {
        let [a, b] = &case.responses;
        a.score(Criterion::FACTUAL_ACCURACY) == b.score(Criterion::FACTUAL_ACCURACY)
    });
    assert!(proportion(equally_accurate.count(), cases.len()) < 0.3);
}

#[test]
fn questions_apply_to_their_scene() {
    for index in 0..500 {
        let phantom = generate_phantom(SEED, index);
        assert!(phantom.question.kind.is_applicable(&phantom.scene));
        assert_eq!(
            phantom.question.correct_facts(&phantom.scene).len(),
            phantom.question.kind.concerns().len()
        );
        if phantom.scene.lesion_count() == 0 {
            assert!(!phantom.question.text.contains("the lesion "), "{}", phantom.question.text);
        }
    }
}

#[test]
fn lesions_are_drawn_at_the_positions_of_the_scene() {
    for index in 0..200 {
        let scene = generate_scene(SEED, index);
        let mut without_lesions = scene.clone();
        without_lesions.lesions.clear();
        let blobs =
            find_blobs(&smoothed_brightness(&scene), &smoothed_brightness(&without_lesions));
        assert_eq!(blobs.len(), scene.lesion_count(), "count of {index}: {blobs:?} {scene:?}");
        for lesion in &scene.lesions {
            let is_near =
                |blob: &&Blob| (blob.x - lesion.x).abs() < 2.0 && (blob.y - lesion.y).abs() < 2.0;
            let blob = blobs.iter().find(is_near).unwrap_or_else(|| panic!("{index}: {lesion:?}"));
            let (min_radius, max_radius) = match scene.size {
                Some(LesionSize::Small) => (3.3, 6.0),
                _ => (8.3, 11.0),
            };
            assert!((min_radius..max_radius).contains(&blob.radius), "{index}: {blob:?}");
            assert_eq!(blob.brighter, scene.tone == Some(LesionTone::Bright), "{index}");
            assert!(blob.contrast > 40.0, "{index}: {blob:?}");
        }
        assert_side_matches(&scene, &blobs);
        assert_lesions_are_apart(&scene.lesions);
    }
}

fn assert_side_matches(scene: &Scene, blobs: &[Blob]) {
    let left_count = blobs.iter().filter(|blob| blob.x < 64.0).count();
    match scene.side {
        None => assert!(blobs.is_empty()),
        Some(LesionSide::Left) => assert_eq!(left_count, blobs.len()),
        Some(LesionSide::Right) => assert_eq!(left_count, 0),
        Some(LesionSide::Both) => assert!(left_count > 0 && left_count < blobs.len()),
    }
}

fn assert_lesions_are_apart(lesions: &[Lesion]) {
    for (i, a) in lesions.iter().enumerate() {
        for b in &lesions[i + 1..] {
            let gap = (a.x - b.x).hypot(a.y - b.y) - a.radius - b.radius;
            assert!(gap > 4.0, "{a:?} {b:?}");
        }
    }
}

/// A region in which the image with lesions differs from the one without. Lengths in pixels.
#[derive(Debug)]
struct Blob {
    x: f32,
    y: f32,
    radius: f32,
    brighter: bool,
    contrast: f32,
}

/// Returns the brightness of each pixel, smoothed over 3 × 3 pixels.
fn smoothed_brightness(scene: &Scene) -> Vec<f32> {
    let image = draw(scene);
    let level = |x: i32, y: i32| {
        let [r, g, b] = image.get_pixel(x.clamp(0, SIDE - 1) as u32, y.clamp(0, SIDE - 1) as u32).0;
        0.3 * f32::from(r) + 0.59 * f32::from(g) + 0.11 * f32::from(b)
    };
    let smoothed = |x: i32, y: i32| {
        (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| level(x + dx, y + dy))).sum::<f32>() / 9.0
    };
    (0..SIDE * SIDE).map(|i| smoothed(i % SIDE, i / SIDE)).collect()
}

/// Finds connected regions of at least 20 pixels in which the two images differ.
fn find_blobs(image: &[f32], without_lesions: &[f32]) -> Vec<Blob> {
    let difference: Vec<f32> = image.iter().zip(without_lesions).map(|(a, b)| a - b).collect();
    let mut unvisited: Vec<bool> = difference.iter().map(|d| d.abs() > 25.0).collect();
    let mut blobs = Vec::new();
    for start in 0..SIDE * SIDE {
        let (mut stack, mut region) = (vec![start], Vec::new());
        while let Some(pixel) = stack.pop() {
            if !std::mem::take(&mut unvisited[pixel as usize]) {
                continue;
            }
            region.push(pixel);
            let (x, y) = (pixel % SIDE, pixel / SIDE);
            let neighbours = [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)];
            let is_inside = |(x, y): &(i32, i32)| (0..SIDE).contains(x) && (0..SIDE).contains(y);
            stack.extend(
                neighbours
                    .iter()
                    .filter(|neighbour| is_inside(neighbour))
                    .map(|(x, y)| y * SIDE + x),
            );
        }
        if region.len() < 20 {
            continue;
        }
        let size = region.len() as f32;
        let mean = |value: &dyn Fn(i32) -> f32| {
            region.iter().map(|pixel| value(*pixel)).sum::<f32>() / size
        };
        let change = mean(&|pixel| difference[pixel as usize]);
        blobs.push(Blob {
            x: mean(&|pixel| (pixel % SIDE) as f32),
            y: mean(&|pixel| (pixel / SIDE) as f32),
            radius: (size / std::f32::consts::PI).sqrt(),
            brighter: change > 0.0,
            contrast: change.abs(),
        });
    }
    blobs
}

#[test]
fn phantom_kinds_differ_in_colour_and_background() {
    for index in 0..200 {
        let scene = generate_scene(SEED, index);
        let image = draw(&scene);
        let [r, g, b] = image.get_pixel(64, 3).0.map(i32::from);
        let is_coloured = (r - g).abs() > 15 && (b - g).abs() > 5;
        assert_eq!(is_coloured, scene.kind == PhantomKind::Histology, "{index}: {:?}", scene.kind);
        let corner: i32 = image.get_pixel(1, 1).0.map(i32::from).iter().sum();
        if matches!(scene.kind, PhantomKind::Ct | PhantomKind::Mri) {
            assert!(corner < 3 * 50, "{index}: {corner}");
        }
    }
}
