//! Seconds per image of this program and of transformers: decoding, preprocessing and encoding with
//! `clip-vit-l14-336`.
//!
//! ```text
//! cargo bench --bench peers -- FOLDER images           one thread, five rounds
//! cargo bench --bench peers -- FOLDER images 2 3       two threads, three rounds
//! cargo bench --bench peers -- FOLDER images 1 3 q8_0  the tower of this program in q8_0 (or bf16)
//! ```
//!
//! transformers has two image processors: `slow` computes with Pillow and `NumPy`, `fast` with
//! torchvision. Both get an image from Pillow. The encoders return the hidden state before the last
//! block, which this program does not compute.

use std::fs;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use acem3::support::device::environment::{self, Workload};
use acem3_vision::{ImageLimits, decode};
use anyhow::{Result, bail};
use candle::{Device, Tensor};

use crate::cases::files::write_vision;
use crate::cases::worker::ImageEncoder;
use crate::peer::{Peer, own_worker, python};
use crate::{describe_ratios, median, test_images};

/// Repetitions of decoding and preprocessing in a job.
const REPEATS: usize = 10;
const JPEG_FILE: &str = "image.jpg";
const PNG_FILE: &str = "image.png";

/// The measurements. Each has a title, a job for this program, and jobs for transformers.
const JOBS: [(&str, &str, &[&str]); 6] = [
    ("decode JPEG", "decode image.jpg", &["decode image.jpg"]),
    ("decode PNG", "decode image.png", &["decode image.png"]),
    ("decode and preprocess JPEG", "slow image.jpg", &["slow image.jpg", "fast image.jpg"]),
    ("decode and preprocess PNG", "slow image.png", &["slow image.png", "fast image.png"]),
    ("encode, batch of 1", "encode 1", &["encode 1"]),
    ("encode, batch of 8", "encode 8", &["encode 8"]),
];

/// Measures both engines, one after the other in every round.
pub(crate) fn run(environment: &Path, args: &[String]) -> Result<()> {
    let number = |i: usize, default: usize| args.get(i).map_or(Ok(default), |arg| arg.parse());
    let (threads, rounds) = (number(0, 1)?, number(1, 5)?);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("peers-images");
    if !folder.join(PNG_FILE).exists() {
        write_vision(&folder)?;
        fs::write(folder.join(JPEG_FILE), test_images::jpeg(0)?)?;
        fs::write(folder.join(PNG_FILE), test_images::png(0)?)?;
    }
    let mut own = own_worker(threads)?;
    let dtype = args.get(2).map_or("f32", String::as_str);
    own.args(["images-worker".as_ref(), folder.as_os_str(), dtype.as_ref()]);
    let mut other = python(environment, "images_worker.py");
    other.arg(&folder).arg(threads.to_string()).env("OMP_NUM_THREADS", threads.to_string());
    let mut own = Peer::start("acem3", dtype, own)?;
    let mut other = Peer::start("transformers", "f32", other)?;
    println!("{threads} threads, {rounds} rounds\n");
    println!("| seconds per image | acem3 | transformers | ratio | fast processor | ratio |");
    println!("|---|---|---|---|---|---|");
    for (title, job, other_jobs) in JOBS {
        // The first run reserves memory.
        own.run(job)?;
        for job in other_jobs {
            other.run(job)?;
        }
        let mut seconds = Vec::new();
        let mut other_seconds = vec![Vec::new(); other_jobs.len()];
        for _ in 0..rounds {
            seconds.push(own.run(job)?);
            for (job, seconds) in other_jobs.iter().zip(&mut other_seconds) {
                seconds.push(other.run(job)?);
            }
        }
        let others = other_seconds.iter().map(|other| {
            format!("{:.4} | {}", median(other.clone()), describe_ratios(&seconds, other))
        });
        let mut cells: Vec<String> = others.collect();
        cells.resize(2, " | ".to_owned());
        println!("| {title} | {:.4} | {} |", median(seconds.clone()), cells.join(" | "));
    }
    Ok(())
}

/// Runs jobs from standard input until it ends. Writes seconds per image to standard output.
pub(crate) fn work(folder: &Path, dtype: &str) -> Result<()> {
    environment::set_variables(Workload::Judging);
    let encoder = ImageEncoder::load(folder, dtype)?;
    let side = encoder.side();
    let mut output = std::io::stdout().lock();
    writeln!(output, "ready")?;
    output.flush()?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let Some((job, argument)) = line.trim().split_once(' ') else {
            bail!("unknown job `{line}`");
        };
        let start = Instant::now();
        let images = match job {
            "decode" => {
                for _ in 0..REPEATS {
                    decode(&fs::read(folder.join(argument))?, &ImageLimits::default())?;
                }
                REPEATS
            }
            "slow" => {
                for _ in 0..REPEATS {
                    encoder.prepare(&folder.join(argument))?;
                }
                REPEATS
            }
            "encode" => {
                let images = argument.parse()?;
                let shape = (images, 3, side, side);
                let pixel_values = Tensor::full(0.5f32, shape, &Device::Cpu)?;
                rayon::scope(|_| encoder.features(&pixel_values))?;
                images
            }
            _ => bail!("unknown job `{line}`"),
        };
        writeln!(output, "{}", start.elapsed().as_secs_f64() / images as f64)?;
        output.flush()?;
    }
    Ok(())
}
