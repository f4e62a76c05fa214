//! Five raters in a real browser rate forty cases, while the site is killed and started again. Nothing that
//! was confirmed is lost, no name of a model reaches a rater, and the program prints the coefficients that
//! follow from what the raters entered.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::annotate_site::{Site, annotate_command};
use crate::browser::find_browser;
use crate::entered_ratings::{EnteredRatings, RatedValues, score_keys};
use crate::folder::Folder;
use crate::rater_coefficients::{
    icc_two_single, nominal_alpha, ordinal_alpha, quadratic_kappa, unweighted_kappa,
};
use crate::recording_proxy::RecordingProxy;

const RATERS: [&str; 5] = ["dr-lee", "dr-ito", "dr-roy", "dr-kim", "dr-abe"];
const CASES: usize = 40;
/// Lines of the journal after which the site is killed. The raters submit 200 cases and save 20 drafts.
const KILLS: [usize; 6] = [3, 31, 70, 111, 150, 196];
/// How long the site is away.
const PAUSE: Duration = Duration::from_millis(700);

/// The cases, the site and the proxy in front of it.
struct BrowserStudy {
    folder: Folder,
    cases: Vec<Value>,
    server: SocketAddr,
    proxy: RecordingProxy,
}

impl BrowserStudy {
    /// Generates cases whose image files name the models, so that the search would find a file that is
    /// sent as it is.
    fn create() -> Self {
        let folder = Folder::empty();
        fs::remove_dir_all(folder.path("cases")).unwrap();
        let count = CASES.to_string();
        let args = ["data", "phantoms", "--out", "cases", "--count", &count, "--seed", "11"];
        assert_eq!(folder.run(&args).exit_code, 0);
        let text = folder.read("cases/cases.jsonl");
        let mut cases: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for (i, case) in cases.iter_mut().enumerate() {
            let question = case["question"].as_str().unwrap();
            case["question"] = format!("{question} (question {})", i + 1).into();
            let image = folder.path("cases").join(case["image"].as_str().unwrap());
            let names = case["responses"][0]["model"].as_str().unwrap();
            fs::write(&image, [&fs::read(&image).unwrap(), names.as_bytes()].concat()).unwrap();
        }
        // One image is a DICOM object, and its file has the name of a model.
        let dicom = format!("images/{}.dcm", cases[0]["responses"][0]["model"].as_str().unwrap());
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/dicom/ct.dcm");
        fs::copy(golden, folder.path("cases").join(&dicom)).unwrap();
        cases[0]["image"] = dicom.into();
        folder.write_cases(&cases);
        let raters = format!("name = \"Five raters\"\nseed = 3\nraters = {RATERS:?}\n");
        folder.write("study.toml", &raters);
        let server = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self { folder, cases, server, proxy: RecordingProxy::start(server) }
    }

    /// Starts the site, always on the same port, under the name of the proxy.
    fn start(&self) -> Site {
        let mut command = annotate_command(&self.folder.path("cases"), &self.folder.path(""));
        command.arg("--listen").arg(self.server.to_string());
        command.arg("--site-name").arg(self.proxy.address.to_string());
        Site::start_command(&mut command)
    }

    /// Returns the names of all models and the ids of all cases.
    fn names(&self) -> Vec<String> {
        let responses = self.cases.iter().flat_map(|case| case["responses"].as_array().unwrap());
        let models = responses.map(|response| &response["model"]);
        let ids = self.cases.iter().map(|case| &case["id"]);
        let mut names: Vec<String> =
            models.chain(ids).map(|name| name.as_str().unwrap().to_owned()).collect();
        names.sort();
        names.dedup();
        names
    }

    fn journal(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path("out/ratings.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "prints the times, or the reason for a skipped test")]
fn five_raters_in_a_browser_survive_kills() {
    let Some((modules, chromium)) = find_browser() else {
        eprintln!(
            "skipped: ACEM3_BROWSER is not a folder with playwright-core and axe-core, or chromium is missing"
        );
        return;
    };
    let start = Instant::now();
    let study = BrowserStudy::create();
    let mut site = study.start();
    assert_eq!(site.host, study.proxy.address.to_string());
    let tokens = site.tokens.clone();
    let mut raters = run_raters(&study, &site, [modules, chromium]);
    for lines in KILLS {
        while study.journal().len() < lines && raters.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        site.kill();
        std::thread::sleep(PAUSE);
        site = study.start();
        assert_eq!(site.tokens, tokens);
    }
    let output = raters.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let entered = EnteredRatings::parse(&study.folder.read("entered.jsonl"), &study.cases);
    let confirmed = entered.0.iter().filter(|rating| rating.is_confirmed).count();
    let repeated = entered.0.iter().filter(|rating| rating.attempts > 1).count();
    eprintln!(
        "{} submissions, {confirmed} confirmed, {repeated} entered again, {} kills, {:.0} s; {}",
        entered.0.len(),
        KILLS.len(),
        start.elapsed().as_secs_f64(),
        String::from_utf8_lossy(&output.stdout).trim()
    );
    assert_eq!(entered.0.len(), RATERS.len() * CASES);
    check_journal(&study, &entered);
    check_received(&study);
    // The administrator's page names models, so it does not pass through the proxy.
    site.host = study.server.to_string();
    let page = site.get("administrator", "/admin").text();
    let details = site.get("administrator", "/admin/results/details.csv");
    assert!(names_in(&details.body, &study.names()).len() > CASES);
    site.kill();
    let targets = entered.targets();
    check_page(&page, &targets);
    check_agree(&study, &targets);
}

/// Starts the script of the raters.
fn run_raters(study: &BrowserStudy, site: &Site, browser: [PathBuf; 2]) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/annotate_raters.cjs");
    let mut command = Command::new("node");
    command.arg(script).args(browser).arg(study.folder.path("entered.jsonl"));
    command.args(RATERS.map(|name| site.link(name)));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Checks that the journal has every submission exactly once, as it was entered.
fn check_journal(study: &BrowserStudy, entered: &EnteredRatings) {
    let journal = study.journal();
    let submitted: Vec<&Value> = journal.iter().filter(|e| e["action"] == "submit").collect();
    assert_eq!(submitted.len(), entered.0.len());
    for rating in &entered.0 {
        let is_about = |entry: &&&Value| {
            entry["rater"] == RATERS[rating.rater] && entry["case"] == rating.case
        };
        let found: Vec<_> = submitted.iter().filter(is_about).collect();
        assert_eq!(found.len(), 1, "{} of {}", rating.case, RATERS[rating.rater]);
        let answers = &found[0]["answers"];
        let preference = match answers["preference"].as_str().unwrap() {
            "first" => 1.0,
            "second" => -1.0,
            _ => 0.0,
        };
        assert!((preference - rating.preference).abs() < 1e-9);
        for (index, key) in score_keys().into_iter().enumerate() {
            let scores = [0, 1].map(|i| answers["scores"][key][i].as_u64().unwrap());
            assert_eq!(scores, [0, 1].map(|i| rating.scores[i][index]), "{}", rating.case);
        }
    }
}

/// Returns some bytes as text in lower case, in which names can be found.
fn searchable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).to_ascii_lowercase()
}

/// Returns the names that are in some bytes, in upper or lower case.
fn names_in<'a>(bytes: &[u8], names: &'a [String]) -> Vec<&'a str> {
    let text = searchable(bytes);
    names.iter().map(String::as_str).filter(|name| text.contains(*name)).collect()
}

/// Checks that nothing that a rater received names a model or a case.
fn check_received(study: &BrowserStudy) {
    let received = study.proxy.received();
    let names = study.names();
    let all = searchable(&received.concat());
    let count = |text: &str| all.matches(text).count();
    // The search sees what was sent: the bytes are neither compressed nor in chunks.
    assert_eq!(count("\r\ncontent-encoding:") + count("\r\ntransfer-encoding:"), 0);
    assert!(count("<title>case ") >= RATERS.len() * CASES);
    assert!(count("\r\ncontent-type: image/png\r\n") >= RATERS.len() * CASES);
    for case in &study.cases {
        let (_, number) = case["question"].as_str().unwrap().rsplit_once('(').unwrap();
        assert!(count(number) >= RATERS.len(), "{number}");
        let image = study.folder.path("cases").join(case["image"].as_str().unwrap());
        let is_named = !names_in(&fs::read(&image).unwrap(), &names).is_empty();
        assert!(is_named || image.extension().unwrap() == "dcm");
    }
    for bytes in &received {
        assert_eq!(names_in(bytes, &names), Vec::<&str>::new());
    }
}

/// Checks the coefficients of the administrator's page, which has two decimals.
fn check_page(page: &str, targets: &[RatedValues]) {
    let table = page.split_once("Agreement so far").unwrap().1;
    let rows: Vec<&str> = table.split("<tr>").skip(2).collect();
    assert_eq!(rows.len(), targets.len());
    for (row, target) in rows.iter().zip(targets) {
        let cells: Vec<&str> = row.split("<td class=\"number\">").skip(1).collect();
        let value = |i: usize| cells[i].split([' ', '<']).next().unwrap().parse::<f64>();
        assert_eq!(value(0).unwrap() as usize, target.units.len());
        let expected = if target.is_preference {
            assert!(value(3).is_err());
            vec![nominal_alpha(&target.units), target.mean_kappa(unweighted_kappa)]
        } else {
            let alpha = ordinal_alpha(&target.units);
            vec![alpha, target.mean_kappa(quadratic_kappa), icc_two_single(&target.units)]
        };
        for (i, expected) in (1..).zip(expected) {
            let found = value(i).unwrap();
            assert!((found - expected).abs() < 0.005 + 1e-9, "{row}: {expected}");
        }
    }
}

/// Checks the coefficients that `acem3 agree` computes from the exported files, and that `acem3 calibrate`
/// reads them.
#[expect(clippy::print_stderr, reason = "prints the coefficients")]
fn check_agree(study: &BrowserStudy, targets: &[RatedValues]) {
    let folder = &study.folder;
    let mut results = annotate_command(&folder.path("cases"), &folder.path(""));
    assert!(results.arg("--results").stdout(Stdio::null()).status().unwrap().success());
    assert_eq!(folder.judge("judged", &[]).exit_code, 0);
    let agree = |labels: &str| {
        let args = ["agree", "judged", "--labels", labels, "--resamples", "20", "--format", "json"];
        let output = folder.run(&args);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        let found: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(found["raters"].as_array().unwrap().len(), RATERS.len());
        found
    };
    let (scores, preferences) = (agree("out/scores.csv"), agree("out/preferences.csv"));
    for target in targets {
        let key = if target.is_preference { "final" } else { &target.key };
        let found = if target.is_preference { &preferences } else { &scores };
        let sections = found["sections"].as_array().unwrap();
        let section = sections.iter().find(|section| section["target"] == key).unwrap();
        let figures = section["figures"].as_array().unwrap();
        let expected = if target.is_preference {
            vec![("order_alpha_nominal", nominal_alpha(&target.units))]
        } else {
            vec![
                ("alpha_ordinal", ordinal_alpha(&target.units)),
                ("kappa_quadratic", target.mean_kappa_with_others(quadratic_kappa)),
                ("icc_2_1", icc_two_single(&target.units)),
            ]
        };
        for (name, expected) in expected {
            let figure = figures.iter().find(|figure| figure["statistic"] == name).unwrap();
            let value = figure["ceiling"]["value"].as_f64().unwrap();
            assert!((value - expected).abs() < 1e-9, "{} {name}: {value} {expected}", target.key);
            eprintln!("{} {name} {value:.6}", target.key);
        }
    }
    let fit = ["calibrate", "fit", "judged", "--labels", "out/scores.csv", "--out", "map.json"];
    let output = folder.run(&fit);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("final"), "{}", output.stdout);
}
