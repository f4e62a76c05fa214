//! Twenty raters at once: every confirmed submission is stored once, and no page takes long.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::annotate_site::{Answer, Site, annotate_command};

const RATERS: usize = 20;
const CASES: usize = 12;
/// Width and height of the images, as of a chest radiograph that was made smaller.
const SIZE: [u32; 2] = [1200, 1000];
/// No request takes longer, also on a machine with two busy cores.
const LIMIT: Duration = Duration::from_secs(10);

/// The times of all requests, by kind.
#[derive(Default)]
struct Latencies(Mutex<BTreeMap<&'static str, Vec<Duration>>>);

impl Latencies {
    /// Adds the time of a request.
    fn measure(&self, kind: &'static str, request: impl FnOnce() -> Answer) -> Answer {
        let start = Instant::now();
        let answer = request();
        self.0.lock().unwrap().entry(kind).or_default().push(start.elapsed());
        answer
    }

    /// Returns the median, the 95th percentile and the maximum of each kind, in milliseconds.
    fn table(&self) -> String {
        let mut text = String::new();
        for (kind, times) in self.0.lock().unwrap().iter_mut() {
            times.sort();
            let at = |part: f64| times[(part * (times.len() - 1) as f64) as usize].as_millis();
            let [median, high, most] = [0.5, 0.95, 1.0].map(at);
            let count = times.len();
            let _ = writeln!(text, "{kind}: {count}, {median} / {high} / {most} ms");
        }
        text
    }

    fn maximum(&self) -> Duration {
        self.0.lock().unwrap().values().flatten().max().copied().unwrap_or_default()
    }
}

/// Writes cases with noisy images, which do not become small as PNG.
fn write_study(folder: &Path) {
    fs::create_dir_all(folder.join("cases/images")).unwrap();
    let mut lines = String::new();
    for i in 0..CASES {
        let [width, height] = SIZE;
        let noise = |x: u32, y: u32| (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)) >> 13;
        let picture = image::GrayImage::from_fn(width, height, |x, y| {
            let value = (x * 200 / width + y * 40 / height + noise(x, y) % 16) + i as u32;
            image::Luma([value.min(255) as u8])
        });
        picture.save(folder.join(format!("cases/images/{i}.png"))).unwrap();
        let case = json!({
            "id": format!("c{i}"),
            "image": format!("images/{i}.png"),
            "question": format!("what is shown in {i}?"),
            "responses": [{"model": "alpha", "text": "a shadow"}, {"model": "beta", "text": "nothing"}],
        });
        let _ = writeln!(lines, "{case}");
    }
    fs::write(folder.join("cases/cases.jsonl"), lines).unwrap();
    let names: Vec<String> = (0..RATERS).map(rater_name).collect();
    let study = format!("name = \"Load\"\nstages = [\"preference\"]\nraters = {names:?}\n");
    fs::write(folder.join("study.toml"), study).unwrap();
}

fn rater_name(rater: usize) -> String {
    format!("rater-{rater}")
}

/// Rates all cases. Every fourth form is sent twice at the same time. Returns the confirmed cases.
fn rate_all(site: &Site, rater: usize, latencies: &Latencies) -> Vec<usize> {
    let name = rater_name(rater);
    let mut confirmed = Vec::new();
    for number in 1..=CASES {
        let path = format!("/case/{number}");
        let page = latencies.measure("page", || site.get(&name, &path));
        let image = latencies.measure("image", || site.get(&name, &format!("{path}/image")));
        assert_eq!((page.status, image.status), (200, 200));
        assert!(image.body.starts_with(b"\x89PNG"));
        let submit = || {
            let fields = "action=submit&preference=first";
            latencies.measure("submission", || site.post(&name, &path, fields)).status
        };
        let statuses = if number % 4 == 0 {
            std::thread::scope(|scope| {
                let other = scope.spawn(submit);
                vec![submit(), other.join().unwrap()]
            })
        } else {
            vec![submit()]
        };
        assert!(statuses.iter().all(|status| [303, 409].contains(status)), "{statuses:?}");
        confirmed.extend(statuses.iter().filter(|status| **status == 303).map(|_| number));
    }
    confirmed
}

#[test]
#[expect(clippy::print_stderr, reason = "prints the times of the requests")]
fn twenty_raters_at_once_are_served() {
    let dir = tempfile::tempdir().unwrap();
    write_study(dir.path());
    let mut command = annotate_command(&dir.path().join("cases"), dir.path());
    let site = Site::start_command(command.args(["--listen", "127.0.0.1:0"]));
    let (latencies, barrier) = (Latencies::default(), Barrier::new(RATERS));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for rater in 0..RATERS {
            let (site, latencies, barrier) = (&site, &latencies, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let confirmed = rate_all(site, rater, latencies);
                assert_eq!(confirmed, (1..=CASES).collect::<Vec<_>>());
            });
        }
    });
    let admin = latencies.measure("progress", || site.get("administrator", "/admin"));
    assert_eq!(admin.status, 200);
    eprintln!(
        "{RATERS} raters, {CASES} cases, {:.1} s; number, median / 95 % / maximum\n{}",
        start.elapsed().as_secs_f64(),
        latencies.table()
    );
    site.kill();
    let journal = fs::read_to_string(dir.path().join("out/ratings.jsonl")).unwrap();
    let mut stored: Vec<(String, String)> = Vec::new();
    for line in journal.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        assert_eq!(entry["action"], "submit");
        let text = |key: &str| entry[key].as_str().unwrap().to_owned();
        stored.push((text("rater"), text("case")));
    }
    assert_eq!(stored.len(), RATERS * CASES);
    stored.sort();
    stored.dedup();
    assert_eq!(stored.len(), RATERS * CASES);
    assert!(latencies.maximum() < LIMIT, "{:?}", latencies.maximum());
}
