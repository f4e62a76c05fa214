use acem3_kernels::*;
use candle::*;
fn main() -> Result<()> {
    println!("tiles {}", has_tile_unit());
    for (rows, columns) in [(1024, 1024), (1024, 2816)] {
        let w = Tensor::randn(0f32, 1.0, (rows, columns), &Device::Cpu)?;
        let h = w.to_dtype(DType::BF16)?;
        for n in [1usize, 4, 8, 16, 32, 64, 600] {
            let x = Tensor::randn(0f32, 1.0, (n, columns), &Device::Cpu)?;
            let mut line = format!("{rows}x{columns} n={n}:");
            let mut best = [f64::MAX; 3];
            for _ in 0..5 {
            for (k, m) in [Matrix::Dense(w.clone()), Matrix::Dense(h.clone()), Matrix::Rounded(h.clone())].iter().enumerate() {
                let reps = (400_000_000 / (n * rows * columns)).clamp(1, 50);
                let t = std::time::Instant::now();
                for _ in 0..reps { m.linear(&x, None)?; }
                let s = t.elapsed().as_secs_f64() / reps as f64;
                best[k]=best[k].min(s);
            }}
            for s in best { line += &format!(" {:.3} ms {:.0} GMAC/s |", s * 1e3, (n * rows * columns) as f64 / s / 1e9); }
            println!("{line}");
        }
    }
    Ok(())
}
