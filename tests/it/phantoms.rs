//! Phantoms: the images show what the scenes say, the labels follow the rule, the mix is as meant.

use std::collections::BTreeSet;

use acem3::data::phantoms::{
    Lesion, LesionSide, LesionSize, LesionTone, Phantom, PhantomKind, QuestionKind, Scene,
    WrittenResponse, draw, phantom, scene,
};
use acem3_experts::{Aspect, Criterion};

const SEED: u64 = 20_260;
const N: i32 = 128;

#[test]
fn equal_seed_and_index_give_equal_phantoms() {
    for index in 0..40 {
        let [a, b] = [phantom(SEED, index), phantom(SEED, index)];
        assert_eq!(a.image.as_raw(), b.image.as_raw());
        assert_eq!(a.responses, b.responses);
        assert_eq!(a.question, b.question);
        assert_eq!(a.scene, scene(SEED, index));
        assert_eq!(a.image, draw(&a.scene));
    }
    assert_ne!(phantom(SEED, 0).image, phantom(SEED, 1).image);
    assert_ne!(phantom(SEED, 0).image, phantom(SEED + 1, 0).image);
}

/// A change of any pixel or word makes committed demo cases and figures stale; it must be meant.
#[test]
fn the_bytes_of_a_phantom_do_not_drift() {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for index in 0..32 {
        let phantom = phantom(7, index);
        eat(phantom.image.as_raw());
        eat(phantom.question.text.as_bytes());
        eat(phantom.reference.as_bytes());
        for response in &phantom.responses {
            eat(response.text.as_bytes());
            eat(response.conclusion.analysis.as_bytes());
        }
    }
    assert_eq!(format!("{hash:016x}"), "f9bc52171dc4e45e");
}

#[test]
fn the_labels_follow_the_rule() {
    for index in 0..800 {
        let phantom = phantom(SEED, index);
        for response in &phantom.responses {
            let order: Vec<Criterion> = response.ratings.iter().map(|(c, _)| *c).collect();
            assert_eq!(order, Criterion::ALL);
            check_final(response);
            check_facts(&phantom, response);
        }
    }
}

fn check_final(response: &WrittenResponse) {
    let least = |aspect: Aspect| {
        let scores = aspect.criteria().iter().map(|c| response.score(*c));
        scores.min().expect("an aspect has criteria")
    };
    let expression = least(Aspect::Expression) + 1;
    let others = least(Aspect::MedicalKnowledge).min(least(Aspect::PatientRelevance));
    let last = expression.min(others).min(5);
    assert_eq!(response.conclusion.score, last, "{response:?}");
    let text = &response.conclusion.analysis;
    assert_eq!(text == "No weakness.", last == 5);
    if last < 5 {
        let blamed = Criterion::ALL.into_iter().find(|c| {
            let bonus = u8::from(c.aspect() == Aspect::Expression);
            response.score(*c) + bonus == last
        });
        let blamed = blamed.expect("some criterion decides");
        assert_eq!(
            *text,
            format!("Weakest: {} {}.", blamed.name(), response.score(blamed))
        );
    }
}

/// What the analysis of factual accuracy says is claimed is what the text says.
fn check_facts(phantom: &Phantom, response: &WrittenResponse) {
    let analysis = &response.ratings[4].1.analysis;
    let rest = analysis
        .strip_prefix("Claims ")
        .expect("the form of the analysis");
    let (claimed, truth) = rest
        .split_once("; the image shows ")
        .expect("the form of the analysis");
    let (truth, agreement) = truth.split_once(": ").expect("the form of the analysis");
    let known: BTreeSet<String> = phantom
        .scene
        .facts()
        .into_iter()
        .filter(|(question, _)| question.text == phantom.question.text)
        .map(|(_, answer)| answer)
        .collect();
    assert_eq!(
        known.into_iter().collect::<Vec<_>>(),
        [truth],
        "{}",
        phantom.question.text
    );
    let text = response.text.to_lowercase();
    if claimed != "nothing" && !text.is_empty() {
        for word in claimed
            .to_lowercase()
            .split([' ', ','])
            // "right side, so no": the link between fact and answer is the analysis's own.
            .filter(|word| !matches!(*word, "" | "so"))
        {
            assert!(text.contains(word), "{word:?} of {claimed:?} in {text:?}");
        }
    }
    let score = response.score(Criterion::FactualAccuracy);
    let said = match score {
        0 => "nothing to compare.",
        1 => "they differ.",
        5 => "they agree.",
        _ => "they agree in part.",
    };
    assert_eq!(agreement, said);
    match score {
        5 => assert!(truth.contains(claimed) || claimed.split(", ").all(|c| truth.contains(c))),
        0 => assert_eq!(claimed, "nothing"),
        _ => assert_ne!(claimed, truth),
    }
}

#[test]
fn the_mix_of_qualities_is_as_meant() {
    let cases: Vec<Phantom> = (0..2000).map(|index| phantom(SEED, index)).collect();
    let share = |count: usize, of: usize| count as f64 / of as f64;
    let orders = cases.iter().map(|case| {
        let [a, b] = &case.responses;
        a.conclusion.score.cmp(&b.conclusion.score)
    });
    let mut counts = [0usize; 3];
    orders.for_each(|order| counts[(order as i8 + 1) as usize] += 1);
    let [less, equal, greater] = counts.map(|count| share(count, cases.len()));
    assert!((0.35..0.45).contains(&less), "{less}");
    assert!((0.15..0.25).contains(&equal), "{equal}");
    assert!((0.35..0.45).contains(&greater), "{greater}");

    let all: Vec<&WrittenResponse> = cases.iter().flat_map(|case| &case.responses).collect();
    let wrong = all
        .iter()
        .filter(|r| matches!(r.score(Criterion::FactualAccuracy), 1 | 3));
    assert!((0.40..0.52).contains(&share(wrong.count(), all.len())));
    let whole = all.iter().filter(|r| r.conclusion.score == 5).count();
    assert!((0.25..0.45).contains(&share(whole, all.len())), "{whole}");
    for (i, criterion) in Criterion::ALL.into_iter().enumerate() {
        let low = all.iter().filter(|r| r.ratings[i].1.score < 4).count();
        assert!(
            share(low, all.len()) > 0.02,
            "{} is never low",
            criterion.key()
        );
    }

    let kinds: BTreeSet<&str> = cases.iter().map(|case| case.question.kind.key()).collect();
    assert_eq!(kinds.len(), QuestionKind::ALL.len());
    let empty = cases.iter().filter(|case| case.scene.count() == 0).count();
    assert!((0.12..0.18).contains(&share(empty, cases.len())));

    // The knowledge aspect must hinge on the image: else a judge need not look.
    let blind = cases.iter().filter(|case| {
        let [a, b] = &case.responses;
        a.score(Criterion::FactualAccuracy) == b.score(Criterion::FactualAccuracy)
    });
    assert!(share(blind.count(), cases.len()) < 0.3);
}

#[test]
fn a_question_is_asked_only_where_its_premise_holds() {
    for index in 0..500 {
        let phantom = phantom(SEED, index);
        assert!(phantom.question.kind.fits(&phantom.scene));
        assert_eq!(
            phantom.question.truth(&phantom.scene).len(),
            phantom.question.kind.concerns().len()
        );
        if phantom.scene.count() == 0 {
            assert!(
                !phantom.question.text.contains("the lesion "),
                "{}",
                phantom.question.text
            );
        }
    }
}

#[test]
fn every_lesion_is_drawn_where_the_scene_says() {
    for index in 0..200 {
        let scene = scene(SEED, index);
        let mut bare = scene.clone();
        bare.lesions.clear();
        let found = blobs(&grey(&scene), &grey(&bare));
        assert_eq!(
            found.len(),
            scene.count(),
            "count of {index}: {found:?} {scene:?}"
        );
        for lesion in &scene.lesions {
            let near =
                |blob: &&Blob| (blob.x - lesion.x).abs() < 2.0 && (blob.y - lesion.y).abs() < 2.0;
            let blob = found
                .iter()
                .find(near)
                .unwrap_or_else(|| panic!("{index}: {lesion:?}"));
            let (least, most) = match scene.size {
                Some(LesionSize::Small) => (3.3, 6.0),
                _ => (8.3, 11.0),
            };
            assert!((least..most).contains(&blob.radius), "{index}: {blob:?}");
            assert_eq!(
                blob.brighter,
                scene.tone == Some(LesionTone::Bright),
                "{index}"
            );
            assert!(blob.contrast > 40.0, "{index}: {blob:?}");
        }
        check_side(&scene, &found);
        check_gaps(&scene.lesions);
    }
}

fn check_side(scene: &Scene, found: &[Blob]) {
    let left = found.iter().filter(|blob| blob.x < 64.0).count();
    match scene.side {
        None => assert!(found.is_empty()),
        Some(LesionSide::Left) => assert_eq!(left, found.len()),
        Some(LesionSide::Right) => assert_eq!(left, 0),
        Some(LesionSide::Both) => assert!(left > 0 && left < found.len()),
    }
}

fn check_gaps(lesions: &[Lesion]) {
    for (i, a) in lesions.iter().enumerate() {
        for b in &lesions[i + 1..] {
            let gap = (a.x - b.x).hypot(a.y - b.y) - a.radius - b.radius;
            assert!(gap > 4.0, "{a:?} {b:?}");
        }
    }
}

#[derive(Debug)]
struct Blob {
    x: f32,
    y: f32,
    radius: f32,
    brighter: bool,
    contrast: f32,
}

/// Brightness, smoothed over 3×3 pixels.
fn grey(scene: &Scene) -> Vec<f32> {
    let image = draw(scene);
    let level = |x: i32, y: i32| {
        let [r, g, b] = image
            .get_pixel(x.clamp(0, N - 1) as u32, y.clamp(0, N - 1) as u32)
            .0;
        0.3 * f32::from(r) + 0.59 * f32::from(g) + 0.11 * f32::from(b)
    };
    let around = |x: i32, y: i32| {
        (-1..=1)
            .flat_map(|dy| (-1..=1).map(move |dx| level(x + dx, y + dy)))
            .sum::<f32>()
            / 9.0
    };
    (0..N * N).map(|i| around(i % N, i / N)).collect()
}

/// Connected regions of at least 20 pixels where the two images differ.
fn blobs(image: &[f32], bare: &[f32]) -> Vec<Blob> {
    let difference: Vec<f32> = image.iter().zip(bare).map(|(a, b)| a - b).collect();
    let mut open: Vec<bool> = difference.iter().map(|d| d.abs() > 25.0).collect();
    let mut found = Vec::new();
    for start in 0..N * N {
        let (mut stack, mut region) = (vec![start], Vec::new());
        while let Some(at) = stack.pop() {
            if !std::mem::take(&mut open[at as usize]) {
                continue;
            }
            region.push(at);
            let (x, y) = (at % N, at / N);
            let steps = [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)];
            let inside = |(x, y): &(i32, i32)| (0..N).contains(x) && (0..N).contains(y);
            stack.extend(
                steps
                    .iter()
                    .filter(|step| inside(step))
                    .map(|(x, y)| y * N + x),
            );
        }
        if region.len() < 20 {
            continue;
        }
        let size = region.len() as f32;
        let mean =
            |value: &dyn Fn(i32) -> f32| region.iter().map(|at| value(*at)).sum::<f32>() / size;
        let change = mean(&|at| difference[at as usize]);
        found.push(Blob {
            x: mean(&|at| (at % N) as f32),
            y: mean(&|at| (at / N) as f32),
            radius: (size / std::f32::consts::PI).sqrt(),
            brighter: change > 0.0,
            contrast: change.abs(),
        });
    }
    found
}

#[test]
fn the_four_kinds_differ_in_colour_and_ground() {
    for index in 0..200 {
        let scene = scene(SEED, index);
        let image = draw(&scene);
        let [r, g, b] = image.get_pixel(64, 3).0.map(i32::from);
        let coloured = (r - g).abs() > 15 && (b - g).abs() > 5;
        assert_eq!(
            coloured,
            scene.kind == PhantomKind::Histology,
            "{index}: {:?}",
            scene.kind
        );
        let corner: i32 = image.get_pixel(1, 1).0.map(i32::from).iter().sum();
        if matches!(scene.kind, PhantomKind::Ct | PhantomKind::Mri) {
            assert!(corner < 3 * 50, "{index}: {corner}");
        }
    }
}
