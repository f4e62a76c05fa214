use super::*;
use rand::{SeedableRng};
#[test] #[ignore] fn look() {
    let root = std::path::Path::new("/work/shared/data");
    let t = std::time::Instant::now();
    let mut all = Vec::new();
    for s in [RealSplit::SlakeTrain, RealSplit::SlakeValidate, RealSplit::VqaRadTrain, RealSplit::VqaRadHeldOut, RealSplit::PathVqaTrain] {
        let items = load_real(root, s).unwrap();
        let images: std::collections::BTreeSet<_> = items.iter().map(|i| i.image_key.clone()).collect();
        println!("## {s:?} {} items {} images {} closed {:?}", items.len(), images.len(), items.iter().filter(|i| i.closed).count(), t.elapsed());
        let wrong = WrongAnswers::new(&items);
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(std::env::var("LOOK").unwrap_or_default().parse().unwrap_or(3));
        let none = items.iter().filter(|i| wrong.draw(i, &mut rng).is_none()).count();
        println!("none: {none}");
        let open: Vec<_> = items.iter().filter(|i| !["yes","no"].contains(&i.answer.to_lowercase().as_str())).collect();
        for _ in 0..30 { let i = open[rand::Rng::random_range(&mut rng, 0..open.len())]; println!("[{}{}] {} | {} | {:?}", i.group, if i.closed {" c"} else {""}, i.question, i.answer, wrong.draw(i, &mut rng)); }
        all.extend(items);
    }
    for r in [0..1000, 1000..1500] { let p = path_vqa_model_pairs(root, r.clone()).unwrap(); println!("{r:?}: {} pairs, {} opposed, first better {}", p.len(), p.iter().filter(|p| p.opposed).count(), p.iter().filter(|p| p.better==0).count()); }
}
