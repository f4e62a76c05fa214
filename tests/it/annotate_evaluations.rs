//! The second part of a study, through the program: raters see the evaluations of judges after their own
//! ratings are final.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use acem3::judging::run::record::checksum::append_checksum;
use serde_json::{Value, json};

use crate::annotate_site::{Answer, Site, command, demo};
use crate::browser::run_in_browser;

const RATER: &str = "dr-lee";
/// Folders of the runs. Their names stand for the judges, so no page may contain them.
const JUDGES: [&str; 2] = ["judge-saffron", "judge-thyme"];
/// Text in the evaluations of the second judge.
const MARK: &str = "the second judge says that it is clear.";

/// Judges the demo cases, and writes a second run whose analyses of the first criterion differ.
fn write_runs(folder: &Path) {
    let [first, second] = JUDGES.map(|name| folder.join(name));
    let mut judge = Command::new(env!("CARGO_BIN_EXE_acem3"));
    judge.arg("judge").arg(demo()).arg("--out").arg(&first).arg("--quiet");
    assert!(judge.stdout(Stdio::null()).status().unwrap().success());
    fs::create_dir(&second).unwrap();
    let records = fs::read_to_string(first.join("records.jsonl")).unwrap();
    let lines = records.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record.as_object_mut().unwrap().remove("checksum");
        for order in record["orders"].as_array_mut().unwrap() {
            order["aspects"]["expression"]["clarity_of_response"]["analyses"] = json!([MARK, MARK]);
        }
        append_checksum(&record.to_string()) + "\n"
    });
    fs::write(second.join("records.jsonl"), lines.collect::<String>()).unwrap();
}

fn write_study(folder: &Path, extra: &str) {
    let study = format!("name = \"Demo study\"\nseed = 5\nraters = [\"{RATER}\"]\n{extra}\n");
    fs::write(folder.join("study.toml"), study).unwrap();
}

fn count_cases() -> usize {
    fs::read_to_string(demo().join("cases.jsonl")).unwrap().lines().count()
}

/// Returns the fields of a complete form about a pair.
fn complete_form() -> String {
    let scores = (0..11).flat_map(|i| [format!("score-{i}-0=4"), format!("score-{i}-1=2")]);
    format!("action=submit&preference=first&{}", scores.collect::<Vec<_>>().join("&"))
}

/// Rates all cases but the last, which is skipped.
fn rate_responses(site: &Site) {
    for number in 1..=count_cases() {
        let is_last = number == count_cases();
        let fields = if is_last {
            "action=skip&reason=blurred".to_owned()
        } else {
            assert_eq!(site.get(RATER, "/evaluation/1").status, 403);
            assert_eq!(site.post(RATER, "/evaluations/start", "").status, 403);
            complete_form()
        };
        let sent = site.post(RATER, &format!("/case/{number}"), &fields);
        assert_eq!(sent.status, 303, "{}", sent.text());
    }
}

/// Checks that nothing of an answer names a model or a judge.
fn check_blind(answer: &Answer) {
    let cases = fs::read_to_string(demo().join("cases.jsonl")).unwrap();
    let cases = cases.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let models = cases.flat_map(|case| case["responses"].as_array().unwrap().clone());
    let models = models.map(|response| response["model"].as_str().unwrap().to_owned());
    let text = answer.headers.clone() + &answer.text();
    for name in models.chain(JUDGES.map(str::to_owned)) {
        assert!(!text.contains(&name), "{name}");
    }
}

fn read_results(folder: &Path, file: &str) -> Vec<Vec<String>> {
    let status = command(folder).arg("--results").stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    let text = fs::read_to_string(folder.join("out").join(file)).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn evaluations_open_after_ratings_are_final() {
    let dir = tempfile::tempdir().unwrap();
    write_runs(dir.path());
    write_study(dir.path(), "evaluations = [\"judge-saffron\", \"judge-thyme\"]");
    let site = Site::start(dir.path());
    let (cases, last) = (count_cases(), count_cases());
    assert!(site.get(RATER, "/").text().contains("Part two opens after"));
    rate_responses(&site);
    // Seeing the overview does not open the part; the rater decides.
    assert!(site.get(RATER, "/").text().contains("Start part two"));
    assert_eq!(site.get(RATER, "/evaluation/1").status, 403);
    assert_eq!(site.post(RATER, "/evaluations/start", "").status, 303);
    let changed = site.post(RATER, &format!("/case/{last}"), &complete_form());
    assert_eq!(changed.status, 409, "ratings are final after the start");
    assert_eq!(site.get(RATER, &format!("/evaluation/{last}")).status, 403, "the case was skipped");
    site.kill();
    let mut site = Site::start(dir.path());
    assert_eq!(site.post(RATER, &format!("/case/{last}"), &complete_form()).status, 409);
    let mut second_is_better = 0;
    for number in 1..cases {
        let path = format!("/evaluation/{number}");
        let page = site.get(RATER, &path);
        assert_eq!(page.status, 200);
        check_blind(&page);
        let page = page.text();
        let marked = page.find(MARK).unwrap();
        let is_second_first = marked < page.find(">Evaluation 2<").unwrap();
        second_is_better += usize::from(is_second_first);
        let incomplete = site.post(RATER, &path, "action=submit&comment=hm");
        assert_eq!(incomplete.status, 422);
        let sent = site.post(RATER, &path, "action=submit&preference=first&comment=hm");
        assert_eq!(sent.status, 303, "{}", sent.text());
        assert_eq!(site.post(RATER, &path, "action=save&preference=second").status, 409);
        if number % 4 == 0 {
            site.kill();
            site = Site::start(dir.path());
        }
    }
    assert!((1..cases - 1).contains(&second_is_better), "sides are drawn: {second_is_better}");
    assert!(site.get(RATER, "/").text().contains("You have rated all evaluations"));
    let admin = site.get("administrator", "/admin").text();
    assert!(admin.contains("dr-lee, evaluations") && admin.contains("Evaluation: Preference"));
    assert!(admin.contains("judge-saffron preferred to judge-thyme"));
    site.kill();
    let choices = read_results(dir.path(), "evaluation_preferences.csv");
    assert_eq!(choices.len(), cases - 1);
    assert!(choices.iter().all(|row| row[4] == JUDGES[0] && row[5] == JUDGES[1]));
    let for_second = choices.iter().filter(|row| row[6] == "b").count();
    assert_eq!(for_second, second_is_better);
    let details = read_results(dir.path(), "details.csv");
    let shown = details.iter().filter(|row| row[9] == "evaluations" && row[5] == JUDGES[1]);
    assert!(shown.count() >= second_is_better);
}

#[test]
fn evaluations_of_one_judge_get_scores() {
    let dir = tempfile::tempdir().unwrap();
    write_runs(dir.path());
    // A study about evaluations only.
    write_study(dir.path(), "stages = []\nevaluations = [\"judge-thyme\"]");
    let site = Site::start(dir.path());
    assert_eq!(site.get(RATER, "/case/1").status, 404);
    assert_eq!(site.post(RATER, "/case/1", &complete_form()).status, 409);
    assert_eq!(site.post(RATER, "/evaluations/start", "").status, 303);
    for number in 1..=count_cases() {
        let path = format!("/evaluation/{number}");
        let page = site.get(RATER, &path);
        check_blind(&page);
        assert!(page.text().contains(MARK));
        let missing = site.post(RATER, &path, "action=submit&score-0-0=5");
        assert!(missing.status == 422 && missing.text().contains("Fluency"));
        let score = number % 6;
        let fields = format!("action=submit&score-0-0={score}&score-1-0=3&score-2-0=5");
        assert_eq!(site.post(RATER, &path, &fields).status, 303);
    }
    site.kill();
    let scores = read_results(dir.path(), "evaluation_scores.csv");
    assert_eq!(scores.len(), 3 * count_cases());
    let sum: usize = scores
        .iter()
        .filter(|row| row[5] == "knowledge_correctness")
        .map(|row| row[6].parse::<usize>().unwrap())
        .sum();
    assert_eq!(sum, (1..=count_cases()).map(|number| number % 6).sum::<usize>());
    assert!(scores.iter().all(|row| row[4] == "judge-thyme"));
}

#[test]
fn runs_that_do_not_fit_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    write_runs(dir.path());
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let records = fs::read_to_string(dir.path().join(JUDGES[1]).join("records.jsonl")).unwrap();
    for (replaced, expected) in [
        (("\"responses\":[\"", "\"responses\":[\"Other: "), "judged other responses"),
        (("\"case\":\"", "\"case\":\"other-"), "no verdict on any of the cases"),
        (("\"analyses\":[", "\"ignored\":["), "scores without analyses"),
    ] {
        let lines = records.lines().map(|line| {
            let line = line.replace(replaced.0, replaced.1);
            let mut record: Value = serde_json::from_str(&line).unwrap();
            record.as_object_mut().unwrap().remove("checksum");
            append_checksum(&record.to_string()) + "\n"
        });
        fs::write(other.join("records.jsonl"), lines.collect::<String>()).unwrap();
        write_study(dir.path(), "evaluations = [\"other\"]");
        let output = command(dir.path()).arg("--results").output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(expected) && error.contains("hint:"), "{error}");
        assert!(error.contains("other"), "{error}");
    }
    write_study(dir.path(), "rubric = \"hdceval\"\nevaluations = [\"judge-thyme\"]");
    let output = command(dir.path()).arg("--results").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("another rubric than the study"), "{error}");
    write_study(dir.path(), "evaluations = [\"missing\"]");
    let output = command(dir.path()).arg("--results").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("evaluations") && error.contains("missing"), "{error}");
}

#[test]
fn evaluations_work_in_a_browser() {
    for (way, judges) in [("choose", &JUDGES[..]), ("score", &JUDGES[..1])] {
        let dir = tempfile::tempdir().unwrap();
        write_runs(dir.path());
        write_study(dir.path(), &format!("stages = []\nevaluations = {judges:?}"));
        let site = Site::start(dir.path());
        let links = [site.link(RATER), site.link("administrator")];
        run_in_browser("annotate_evaluations.cjs", &[&links[0], &links[1], way]);
    }
}
