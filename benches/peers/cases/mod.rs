//! Cases per minute of this program and of transformers: a vision tower and four decoders judge
//! pairs of answers about images in both orders.
//!
//! ```text
//! cargo bench --bench peers -- FOLDER cases                one thread, two rounds, all types
//! cargo bench --bench peers -- FOLDER cases 2 3 f32        two threads, three rounds, one type
//! ```
//!
//! In each order, three experts write 32 tokens each, and the conclusion model reads their texts
//! and writes 32 tokens. transformers runs four complete models one after the other; every model
//! encodes the image of a case once. This program runs its engine: one tower, one trunk of nine
//! layers and four heads of three layers. It also writes a score after each text. Both have the
//! same weights and prompts. With `q8_0`, the tower and the decoders of this program have quantised
//! weights, and transformers runs in f32.

pub(crate) mod files;
mod prompts;
pub(crate) mod worker;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::peer::{Peer, own_worker, python};
use crate::{describe_ratios, median};

/// Layers that the four decoders share.
const TRUNK_LAYERS: usize = 9;
/// Tokens that each member writes.
const WRITTEN_TOKENS: usize = 32;

/// A measurement: the number of cases, and the number of prompts that transformers processes
/// together. This program processes all prompts of the cases together.
struct Job {
    cases: usize,
    batch: usize,
}

/// The measurements.
const JOBS: [Job; 2] = [Job { cases: 1, batch: 1 }, Job { cases: 4, batch: 8 }];

/// Types of the weights of two compared engines.
struct ComparedTypes {
    own: &'static str,
    transformers: &'static str,
}

/// The comparisons.
const COMPARED: [ComparedTypes; 3] = [
    ComparedTypes { own: "f32", transformers: "f32" },
    ComparedTypes { own: "bf16", transformers: "bf16" },
    ComparedTypes { own: "q8_0", transformers: "f32" },
];

/// Results of one engine for one job: seconds and peak memory in bytes of each round.
#[derive(Clone, Default)]
struct Measured {
    seconds: Vec<f64>,
    memory: Vec<u64>,
}

/// Measures both engines in each comparison.
pub(crate) fn run(environment: &Path, args: &[String]) -> Result<()> {
    let number = |i: usize, default: usize| args.get(i).map_or(Ok(default), |arg| arg.parse());
    let (threads, rounds) = (number(0, 1)?, number(1, 2)?);
    let types = args.get(2).map_or("f32,bf16,q8_0", String::as_str);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("peers-cases");
    files::write(&folder)?;
    println!("{threads} threads, {rounds} rounds\n");
    println!(
        "| cases per minute (memory) | one prompt, 1 case | 8 prompts, 4 cases |\n|---|---|---|"
    );
    let is_known = |name: &str| COMPARED.iter().any(|compared| compared.own == name);
    if let Some(unknown) = types.split(',').find(|name| !is_known(name)) {
        bail!("unknown type {unknown:?}, expected f32, bf16 or q8_0");
    }
    for compared in COMPARED.iter().filter(|compared| types.split(',').any(|t| t == compared.own)) {
        measure(environment, &folder, [threads, rounds], compared)?;
    }
    Ok(())
}

/// Measures both engines, one after the other in every round.
fn measure(
    environment: &Path,
    folder: &Path,
    [threads, rounds]: [usize; 2],
    compared: &ComparedTypes,
) -> Result<()> {
    let mut own = own_worker(threads)?;
    own.args(["cases-worker".as_ref(), folder.as_os_str(), compared.own.as_ref()]);
    let mut other = python(environment, "cases_worker.py");
    other.args([folder.as_os_str(), compared.transformers.as_ref()]);
    other.arg(threads.to_string()).env("OMP_NUM_THREADS", threads.to_string());
    let mut peers = [
        Peer::start("acem3", compared.own, own)?,
        Peer::start("transformers", compared.transformers, other)?,
    ];
    let mut measured = vec![vec![Measured::default(); JOBS.len()]; peers.len()];
    for _ in 0..rounds {
        for (i, job) in JOBS.iter().enumerate() {
            for (peer, measured) in peers.iter_mut().zip(&mut measured) {
                peer.reset_peak_memory();
                measured[i].seconds.push(peer.run(&format!("judge {} {}", job.cases, job.batch))?);
                measured[i].memory.extend(peer.peak_memory());
            }
        }
    }
    for (peer, measured) in peers.iter().zip(&measured) {
        let cells = JOBS.iter().zip(measured).map(|(job, measured)| {
            let rate = 60. * job.cases as f64 / median(measured.seconds.clone());
            let memory = measured.memory.iter().max().map_or(f64::NAN, |bytes| *bytes as f64 / 1e9);
            format!("{rate:.2} ({memory:.1} GB)")
        });
        let cells: Vec<_> = cells.collect();
        println!("| {} {} | {} |", peer.engine, peer.dtype, cells.join(" | "));
    }
    let ratios = measured[0].iter().zip(&measured[1]);
    let ratios = ratios.map(|(own, other)| describe_ratios(&own.seconds, &other.seconds));
    let ratios: Vec<_> = ratios.collect();
    let ComparedTypes { own, transformers } = compared;
    println!("| acem3 {own} / transformers {transformers} | {} |", ratios.join(" | "));
    println!("\n{}\n", compare_texts(folder, compared)?);
    Ok(())
}

/// Returns the file to which an engine writes the texts of its last job, one per line.
fn texts_file(folder: &Path, engine: &str, dtype: &str) -> PathBuf {
    folder.join(format!("texts-{engine}-{dtype}.txt"))
}

/// Says how many words at the start of the texts of the last job are equal. With random weights,
/// small differences of rounding grow, and some texts differ after a few words. The conclusion model
/// then reads other texts, so only those of the experts count.
fn compare_texts(folder: &Path, compared: &ComparedTypes) -> Result<String> {
    let [own, other] = [("acem3", compared.own), ("transformers", compared.transformers)]
        .map(|(engine, dtype)| fs::read_to_string(texts_file(folder, engine, dtype)));
    let (own, other) = (own?, other?);
    let texts = own.lines().zip(other.lines()).enumerate();
    let equal_words =
        texts.filter(|(i, _)| i % files::MEMBERS + 1 < files::MEMBERS).map(|(_, (own, other))| {
            let words = own.split_whitespace().zip(other.split_whitespace());
            words.take_while(|(own, other)| own == other).count()
        });
    let equal_words: Vec<usize> = equal_words.collect();
    let texts = equal_words.len();
    let starts = equal_words.iter().filter(|words| **words > 0).count();
    let mean = equal_words.iter().sum::<usize>() as f64 / texts as f64;
    Ok(format!(
        "{} and {}: {starts} of {texts} texts of experts start with the same word; on average, \
         {mean:.1} of {WRITTEN_TOKENS} words are equal before the first difference",
        compared.own, compared.transformers
    ))
}
