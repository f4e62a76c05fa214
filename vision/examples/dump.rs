//! temporary
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    for p in &a {
        let b = std::fs::read(p).unwrap();
        let s = std::time::Instant::now();
        match acem3_vision::decode(&b, &acem3_vision::Limits::default()) {
            Ok(i) => { let t = s.elapsed(); 
              let s = std::time::Instant::now();
              let v = acem3_vision::ImageProcessor::square(64).view(&i).unwrap();
              let _ = acem3_vision::ImageProcessor::square(64).preprocess(&i).unwrap();
              eprintln!("{}x{} decode {t:?} twice preprocess {:?}", i.width(), i.height(), s.elapsed());
              std::fs::write(format!("{p}.rgb"), i.data()).unwrap(); std::fs::write(format!("{p}.view"), v.data()).unwrap(); }
            Err(e) => println!("{p}: {e}"),
        }
    }
}
