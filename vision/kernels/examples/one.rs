use acem3_kernels::*;
use candle::*;
fn main() -> Result<()> {
    let a: Vec<usize> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let (rows, columns, n) = (a[0], a[1], a[2]);
    let w = Tensor::randn(0f32, 1.0, (rows, columns), &Device::Cpu)?;
    let x = Tensor::randn(0f32, 1.0, (n, columns), &Device::Cpu)?;
    let m = if a[3] == 0 { Matrix::Dense(w) } else if a[3] == 1 { Matrix::Dense(w.to_dtype(DType::BF16)?) } else { Matrix::Rounded(w.to_dtype(DType::BF16)?) };
    let mut best = f64::MAX;
    let t0 = std::time::Instant::now();
    while t0.elapsed().as_secs_f64() < 3. {
        let reps = (400_000_000 / (n * rows * columns)).clamp(1, 50);
        let t = std::time::Instant::now();
        for _ in 0..reps { m.linear(&x, None)?; }
        best = best.min(t.elapsed().as_secs_f64() / reps as f64);
    }
    println!("{:.3} ms {:.0} GMAC/s", best * 1e3, (n * rows * columns) as f64 / best / 1e9);
    Ok(())
}
