//! Overhead of the client for served judges: ten thousand cases and a server that answers in 50 ms,
//! with faults in five of a hundred requests.
//!
//! `cargo bench --bench served -- CASES` prints the time of a run, the time of all answers of the server
//! divided by the number of requests at a time, the difference in percent, and the peak memory. An
//! answer begins when the server reads the request. The server runs in the process of the bench, on the
//! same cores, so its own work must be small.

#![expect(clippy::unwrap_used, reason = "a failed benchmark may panic")]
#![expect(clippy::print_stdout, reason = "the times are the result")]
#![expect(dead_code, reason = "the tests use more of the mock")]

#[path = "../tests/it/served/constrained_text.rs"]
mod constrained_text;
#[path = "../tests/it/served/engine_settings.rs"]
mod engine_settings;
#[path = "../tests/it/served/mock_engine.rs"]
mod mock_engine;
#[path = "../tests/it/served/mock_http.rs"]
mod mock_http;
#[path = "../tests/it/served/mock_reply.rs"]
mod mock_reply;

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mock_engine::{EngineSettings, MockEngine};

const DELAY: Duration = Duration::from_millis(50);
const CONCURRENCY: u64 = 64;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let cases: u64 = numbers.next().unwrap_or(10_000);
    let folder = tempfile::tempdir().unwrap();
    write_cases(folder.path(), cases);
    for faults_percent in [0, 5] {
        let engine = MockEngine::start(EngineSettings {
            owner: "vllm",
            delay: DELAY,
            faults_percent,
            ..EngineSettings::default()
        });
        let out = format!("out-{faults_percent}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_acem3"));
        command.current_dir(folder.path()).stdout(Stdio::null()).args(["judge", "cases.jsonl"]);
        command.args(["--out", &out, "--panel", &engine.url, "--model", "judge"]);
        command.args(["--concurrency", &CONCURRENCY.to_string(), "--progress", "none"]);
        let start = Instant::now();
        let mut child = command.spawn().unwrap();
        let peak = watch_memory(&mut child);
        let seconds = start.elapsed().as_secs_f64();
        let least = engine.busy().as_secs_f64() / CONCURRENCY as f64;
        println!(
            "{cases} cases, {faults_percent} % faults: {seconds:.1} s, answers {least:.1} s, \
             overhead {:.1} %, {} requests, peak memory {} MiB",
            (seconds / least - 1.0) * 100.0,
            engine.requests(),
            peak >> 20
        );
    }
    let [sound, faulty] = ["out-0", "out-5"]
        .map(|out| std::fs::read(folder.path().join(out).join("records.jsonl")).unwrap());
    println!("equal records with and without faults: {}", sound == faulty);
}

/// Writes cases of which five share an image.
fn write_cases(folder: &std::path::Path, cases: u64) {
    let mut lines = String::new();
    for i in 0..cases {
        if i % 5 == 0 {
            let shade = |x: u32, y: u32| image::Luma([(x * 3 + y * 5 + i as u32) as u8]);
            let picture = image::GrayImage::from_fn(256, 256, shade);
            picture.save(folder.join(format!("{}.png", i / 5))).unwrap();
        }
        writeln!(
            lines,
            r#"{{"id":"c{i}","image":"{}.png","question":"what is shown in {i}?","responses":[{{"model":"a","text":"a shadow, {i}"}},{{"model":"b","text":"nothing, {i}"}}]}}"#,
            i / 5
        )
        .unwrap();
    }
    std::fs::write(folder.join("cases.jsonl"), lines).unwrap();
}

/// Waits for a process and returns its peak memory in bytes.
fn watch_memory(child: &mut std::process::Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) << 10);
        std::thread::sleep(Duration::from_millis(100));
    }
    peak
}
