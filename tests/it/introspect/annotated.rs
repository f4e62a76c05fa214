//! A person decides about unresolved pairs on the site, and the next round trains on the decision.

use serde_json::Value;

use super::discussions::{
    build_index, discuss, discuss_until_people, start_adviser, start_reviewer,
};
use super::{lines, training_folder};
use crate::annotate_site::Site;
use crate::browser::run_in_browser;
use crate::folder::Folder;

const STUDY: &str = "name = \"Unresolved\"\nraters = [\"dr-ada\"]\nstages = [\"decision\"]\n";

fn annotate(folder: &Folder, more: &[&str]) -> std::process::Command {
    let args = ["annotate", "phantoms", "--study", "study.toml", "--out", "decided"];
    let unresolved = ["--unresolved", "rounds/round-0/unresolved.jsonl"];
    folder.command(&[&args[..], &unresolved, more].concat())
}

/// Returns the fields of an own evaluation with this score of the first response on all criteria.
fn own_evaluation(text: &str, finals: [u8; 2]) -> String {
    let mut fields = vec!["action=submit".to_owned(), "decision=own".to_owned()];
    for i in 0..11 {
        for (response, last) in finals.iter().enumerate() {
            let score = if i == 10 { *last } else { 3 };
            fields.push(format!("score-{i}-{response}={score}"));
            fields.push(format!("analysis-{i}-{response}={text}"));
        }
    }
    fields.join("&")
}

#[test]
fn decision_on_the_site_goes_back_into_training() {
    let folder = training_folder();
    build_index(&folder, "index");
    let (adviser, reviewer) = (start_adviser(&folder), start_reviewer());
    let models = [&adviser, &reviewer];
    let line = discuss_until_people(&folder, models).remove(0);
    folder.write("study.toml", STUDY);
    let site = Site::start_command(&mut annotate(&folder, &["--listen", "127.0.0.1:0"]));
    let page = site.get("dr-ada", "/case/1").text();
    for text in ["Suggestion 3", "A bright lesion.", "My own evaluation", "Known final scores"] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    for model in line["pair"].as_array().unwrap() {
        assert!(!page.contains(model.as_str().unwrap()));
    }
    let filled = site.get("dr-ada", "/case/1?from=2").text();
    let is_filled = |page: &str| page.matches("A bright lesion.</textarea>").count() > 1;
    assert!(is_filled(&filled) && !is_filled(&page));
    // A decision must be complete, and agree with the labels as the command requires.
    let missing = site.post("dr-ada", "/case/1", "action=submit");
    assert!(missing.status == 422 && missing.text().contains("Choose a suggestion"));
    let half = site.post("dr-ada", "/case/1", "action=submit&decision=own&score-0-0=3");
    assert!(half.status == 422 && half.text().contains("no analysis of answer B"));
    let labels = [0, 1].map(|i| line["known"][i].as_f64().unwrap());
    let wrong = if labels[0] > labels[1] { [0, 5] } else { [5, 0] };
    let wrong = site.post("dr-ada", "/case/1", &own_evaluation("So.", wrong));
    assert!(wrong.status == 422 && wrong.text().contains("by the known final scores"));
    let numbered = site.post("dr-ada", "/case/1", &own_evaluation("Response+1+is+right.", [5, 0]));
    assert!(numbered.status == 422 && numbered.text().contains("instead of “response 1”"));
    let unknown = site.post("dr-ada", "/case/1", "action=submit&decision=accept-9");
    assert!(unknown.status == 422 && unknown.text().contains("does not fit"));
    let right = labels.map(|label| label.round() as u8);
    let text = "A person decided this.";
    let sent = site.post("dr-ada", "/case/1", &own_evaluation(&text.replace(' ', "+"), right));
    assert_eq!(sent.status, 303, "{}", sent.text());
    site.kill();
    let status = annotate(&folder, &["--results"]).output().unwrap().status;
    assert!(status.success());
    let decided = lines(&folder.read("decided/decisions.jsonl"));
    assert_eq!(decided[0]["decision"]["by"], "dr-ada");
    let without = |line: &Value| {
        let mut line = line.clone();
        line.as_object_mut().unwrap().remove("decision");
        line
    };
    assert_eq!(without(&decided[0]), without(&line));

    // The numbers of suggestions belong to the file that the person saw.
    let file = "rounds/round-0/unresolved.jsonl";
    let original = folder.read(file);
    folder.write(file, &original.replace("\"number\":1", "\"number\":9"));
    let output = annotate(&folder, &["--results"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("different: the unresolved pairs"), "{error}");
    folder.write(file, &original);

    let flags = ["--decisions", "decided/decisions.jsonl", "--wait-for-people"];
    let output = discuss(&folder, models, &flags);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("by people"), "{}", output.stdout);
    let data = folder.read("rounds/data/round-1.jsonl");
    assert!(data.contains(text), "the next round trains on the decision");
}

#[test]
fn studies_of_decisions_need_pairs() {
    let folder = training_folder();
    folder.write("study.toml", STUDY);
    let args = ["annotate", "phantoms", "--study", "study.toml", "--out", "decided", "--results"];
    let output = folder.run(&args);
    assert!(output.stderr.contains("needs pairs to decide about"), "{}", output.stderr);
    folder.write("unresolved.jsonl", "{\"case\": \"x\", \"pair\": [\"a\", \"b\"]}\n");
    let flags = ["--unresolved", "unresolved.jsonl"];
    let output = folder.run(&[&args[..], &flags].concat());
    assert!(output.stderr.contains("no responses of a and b in case x"), "{}", output.stderr);
    folder.write("study.toml", &STUDY.replace("[\"decision\"]", "[\"ratings\"]"));
    let output = folder.run(&[&args[..], &flags].concat());
    assert!(output.stderr.contains("is about decisions"), "{}", output.stderr);
}

#[test]
fn decision_page_works_in_a_browser() {
    let folder = training_folder();
    let (adviser, reviewer) = (start_adviser(&folder), start_reviewer());
    discuss_until_people(&folder, [&adviser, &reviewer]);
    folder.write("study.toml", STUDY);
    let site = Site::start_command(&mut annotate(&folder, &["--listen", "127.0.0.1:0"]));
    let printed = run_in_browser("annotate_decisions.cjs", &[&site.link("dr-ada")]);
    site.kill();
    if printed.is_some() {
        assert!(annotate(&folder, &["--results"]).output().unwrap().status.success());
        let decided = lines(&folder.read("decided/decisions.jsonl"));
        assert_eq!(decided[0]["decision"]["accept"], 2);
    }
}
