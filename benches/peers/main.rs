//! Decoding and prefill of this program, transformers and llama.cpp: the same weights, prompts and
//! numbers of written tokens, one engine after the other in every round.
//!
//! ```text
//! benches/peers/environment.sh FOLDER                  make the Python environment
//! cargo bench --bench peers -- FOLDER                  one thread, five rounds
//! cargo bench --bench peers -- FOLDER 2 3 f32,bf16     two threads, three rounds, two types
//! cargo bench --bench peers -- FOLDER cases            judge cases with four models
//! cargo bench --bench peers -- FOLDER images           decode, preprocess and encode images
//! cargo bench --bench peers -- FOLDER training         train with DPO
//! ```
//!
//! The modules `cases`, `images` and `training` describe their measurements.
//!
//! Prints two Markdown tables: medians in tokens per second, then the ratio to each peer with the same
//! type of weights: median, smallest and largest over the rounds.

#![expect(clippy::print_stdout, reason = "the measurements are the output")]

mod cases;
mod images;
mod model_files;
mod peer;
mod test_images;
mod training;
mod worker;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::peer::{Peer, own_worker, python};

/// Tokens of the prompt before decoding.
const PROMPT_TOKENS: usize = 32;
/// Tokens that each sequence writes.
const WRITTEN_TOKENS: usize = 16;
/// Lengths of the prompts that are processed alone.
const PREFILL_TOKENS: [usize; 2] = [600, 2000];
/// Numbers of sequences that are decoded together.
const SEQUENCES: [usize; 4] = [1, 4, 8, 32];

/// A measurement: the job, and the tokens that it processes.
struct Job {
    title: String,
    line: String,
    tokens: usize,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [first, folder, dtype] = args.as_slice() {
        let folder = Path::new(folder);
        match first.as_str() {
            "worker" => return worker::run(folder, dtype),
            "cases-worker" => return cases::worker::run(folder, dtype),
            "images-worker" => return images::work(folder, dtype),
            "training-worker" => return training::work(),
            _ => {}
        }
    }
    let Some(environment) = args.first() else {
        println!("skipped: pass the folder made by benches/peers/environment.sh");
        return Ok(());
    };
    match args.get(1).map(String::as_str) {
        Some("cases") => return cases::run(Path::new(environment), &args[2..]),
        Some("images") => return images::run(Path::new(environment), &args[2..]),
        Some("training") => return training::run(Path::new(environment), &args[2..]),
        _ => {}
    }
    let number = |i: usize, default: usize| args.get(i).map_or(Ok(default), |arg| arg.parse());
    let (threads, rounds) = (number(1, 1)?, number(2, 5)?);
    let types = args.get(3).map_or("f32,bf16,f16,q8_0,q4_k", String::as_str);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("peers");
    model_files::write(&folder)?;
    let setup = Setup {
        environment: environment.into(),
        folder,
        threads,
        types: types.split(',').collect(),
    };
    let mut peers = setup.start_all()?;
    println!("{threads} threads, {rounds} rounds\n");
    let results = peers.iter_mut().map(warm_up).collect::<Result<Vec<_>>>()?;
    let mut works = results.into_iter();
    peers.retain(|_| works.next().unwrap_or(false));
    check_first_tokens(&mut peers)?;
    let jobs = jobs();
    let mut seconds = vec![vec![Vec::new(); jobs.len()]; peers.len()];
    for _ in 0..rounds {
        for (i, job) in jobs.iter().enumerate() {
            for (peer, seconds) in peers.iter_mut().zip(&mut seconds) {
                seconds[i].push(peer.run(&job.line)?);
            }
        }
    }
    print_table(&peers, &jobs, &seconds);
    Ok(())
}

/// Lets an engine start threads and reserve memory. Returns false if another engine fails.
fn warm_up(peer: &mut Peer) -> Result<bool> {
    let failed = ["prefill 64", "decode 2 16 2"].iter().find_map(|job| peer.run(job).err());
    match failed {
        Some(error) if peer.engine == "acem3" => Err(error),
        Some(error) => {
            println!("left out: {} with {}: {error:#}\n", peer.engine, peer.dtype);
            Ok(false)
        }
        None => Ok(true),
    }
}

/// Where the engines are and how they run.
struct Setup<'a> {
    environment: PathBuf,
    folder: PathBuf,
    threads: usize,
    /// Types of weights.
    types: Vec<&'a str>,
}

impl Setup<'_> {
    fn start_all(&self) -> Result<Vec<Peer>> {
        let mut peers = Vec::new();
        let wanted = |dtype: &&str| self.types.contains(dtype);
        for dtype in ["f32", "bf16", "f16", "q8_0", "q4_k"].into_iter().filter(wanted) {
            let mut command = own_worker(self.threads)?;
            command.args(["worker".as_ref(), self.folder.as_os_str(), dtype.as_ref()]);
            peers.push(Peer::start("acem3", dtype, command)?);
        }
        for dtype in ["f32", "bf16"].into_iter().filter(wanted) {
            let mut command = python(&self.environment, "transformers_worker.py");
            command.args([self.folder.as_os_str(), dtype.as_ref()]);
            command.arg(self.threads.to_string()).env("OMP_NUM_THREADS", self.threads.to_string());
            peers.push(Peer::start("transformers", dtype, command)?);
        }
        for dtype in ["f32", "bf16", "q8_0", "q4_k"].into_iter().filter(wanted) {
            let mut command = python(&self.environment, "llama_worker.py");
            command.arg(self.folder.join(format!("model-{dtype}.gguf")));
            command.arg(self.threads.to_string());
            peers.push(Peer::start("llama.cpp", dtype, command)?);
        }
        Ok(peers)
    }
}

fn jobs() -> Vec<Job> {
    let prefill = PREFILL_TOKENS.map(|tokens| Job {
        title: format!("prefill {tokens}"),
        line: format!("prefill {tokens}"),
        tokens,
    });
    let decode = SEQUENCES.map(|sequences| Job {
        title: format!("decode {sequences}"),
        line: format!("decode {sequences} {PROMPT_TOKENS} {WRITTEN_TOKENS}"),
        tokens: sequences * WRITTEN_TOKENS,
    });
    prefill.into_iter().chain(decode).collect()
}

/// Prints whether all engines with f32 weights choose the same token after a prompt.
fn check_first_tokens(peers: &mut [Peer]) -> Result<()> {
    let mut tokens = Vec::new();
    for peer in peers.iter_mut().filter(|peer| peer.dtype == "f32") {
        tokens.push((peer.engine, peer.run("check 100")?));
    }
    let Some((_, first)) = tokens.first() else { return Ok(()) };
    let equal = tokens.iter().all(|(_, token)| (token - first).abs() < 0.5);
    println!("first tokens in f32 {}: {tokens:?}\n", if equal { "agree" } else { "DIFFER" });
    Ok(())
}

/// Prints medians, the memory, and the ratios to the fastest peer of the same type.
fn print_table(peers: &[Peer], jobs: &[Job], seconds: &[Vec<Vec<f64>>]) {
    let titles: Vec<&str> = jobs.iter().map(|job| job.title.as_str()).collect();
    println!(
        "| tokens/s | {} | memory |\n|---{}|",
        titles.join(" | "),
        "|---".repeat(jobs.len() + 1)
    );
    for (peer, seconds) in peers.iter().zip(seconds) {
        let rate = |(job, seconds): (&Job, &Vec<f64>)| {
            format!("{:.1}", job.tokens as f64 / median(seconds.clone()))
        };
        let rates: Vec<String> = jobs.iter().zip(seconds).map(rate).collect();
        let memory = peer
            .peak_memory()
            .map_or("?".to_owned(), |bytes| format!("{:.1} GB", bytes as f64 / 1e9));
        println!("| {} {} | {} | {memory} |", peer.engine, peer.dtype, rates.join(" | "));
    }
    println!();
    for (own, own_seconds) in peers.iter().zip(seconds).filter(|(peer, _)| peer.engine == "acem3") {
        for (other, other_seconds) in peers.iter().zip(seconds) {
            if other.engine == "acem3" || other.dtype != own.dtype {
                continue;
            }
            let ratios = own_seconds.iter().zip(other_seconds);
            let ratios = ratios.map(|(own, other)| describe_ratios(own, other));
            let ratios: Vec<String> = ratios.collect();
            println!("| acem3 / {} {} | {} | |", other.engine, own.dtype, ratios.join(" | "));
        }
    }
}

/// Returns how many times as fast as a peer this program is: the median, smallest and largest ratio
/// over the rounds.
fn describe_ratios(own: &[f64], other: &[f64]) -> String {
    let ratios: Vec<f64> = own.iter().zip(other).map(|(own, other)| other / own).collect();
    let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().copied().fold(0., f64::max);
    format!("{:.2} ({low:.2}–{high:.2})", median(ratios))
}

/// Returns the median, or NaN of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
