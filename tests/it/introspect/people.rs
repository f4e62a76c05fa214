//! Decisions of people about pairs without consensus.

use serde_json::{Value, json};

use super::discussions::{
    build_index, discuss, discuss_until_people, start_adviser, start_reviewer,
};
use super::mock_model::MockModel;
use super::{lines, training_folder};
use crate::folder::Folder;

/// Returns an evaluation with these final scores in the form of a decision.
fn evaluation(scores: Option<[u8; 2]>, line: &Value) -> Value {
    let order = &line["suggestions"][0]["orders"][0];
    let mut evaluation = json!({"criteria": order["criteria"], "final": order["final"]});
    match scores {
        Some(scores) => evaluation["final"]["scores"] = json!(scores),
        None => {
            evaluation["final"].as_object_mut().unwrap().remove("scores");
        }
    }
    evaluation["final"]["analyses"] = json!(["A person wrote this.", "And this."]);
    evaluation
}

/// Returns a line with a decision.
fn decided(line: &Value, decision: Value) -> Value {
    let mut line = line.clone();
    line["decision"] = decision;
    line
}

/// Checks the errors for half-filled and wrong decisions. `wrong`: scores against the labels.
fn reject_wrong_decisions(folder: &Folder, models: [&MockModel; 2], line: &Value, wrong: [u8; 2]) {
    // Half-filled and wrong decisions name the file and the line, and start no training.
    let error_of = |line: &Value| {
        folder.write("decisions.jsonl", &format!("\n{line}\n"));
        let output = discuss(folder, models, &["--decisions", "decisions.jsonl"]);
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        assert!(output.stderr.contains("decisions.jsonl, line 2"), "{}", output.stderr);
        assert!(output.stderr.contains("hint: "), "{}", output.stderr);
        assert!(!folder.path("rounds/round-1").exists());
        output.stderr
    };
    let decided = |decision: Value| decided(line, decision);
    let number = error_of(&decided(json!({"accept": 4})));
    assert!(number.contains("the suggestions of this line are 1, 2, 3"), "{number}");
    for form in [json!({}), json!("2"), json!({"acept": 2}), json!({"accept": null})] {
        assert!(error_of(&decided(form)).contains("{\"accept\": N}"));
    }
    let mut half = evaluation(None, line);
    half["criteria"].as_object_mut().unwrap().remove("factual_accuracy");
    let missing = error_of(&decided(json!({"evaluation": half})));
    assert!(missing.contains("criterion `factual_accuracy` is missing"), "{missing}");
    let mut half = evaluation(None, line);
    half["criteria"]["factual_accuracy"]["analyses"] = json!(["So.", " "]);
    let empty = error_of(&decided(json!({"evaluation": half})));
    assert!(empty.contains("`factual_accuracy` lacks an analysis"), "{empty}");
    let mut numbered = evaluation(None, line);
    numbered["final"]["analyses"][0] = "Better than Response 2.".into();
    let numbered = error_of(&decided(json!({"evaluation": numbered})));
    assert!(numbered.contains("both presentation orders"), "{numbered}");
    let contradicting = error_of(&decided(json!({"evaluation": evaluation(Some(wrong), line)})));
    assert!(contradicting.contains("the decision contradicts the labels"), "{contradicting}");
    let mut foreign = decided(json!({"accept": 1}));
    foreign["case"] = "nobody".into();
    assert!(error_of(&foreign).contains("the cases have no pair"));
    // The file of the program is not the place for decisions.
    let own = "rounds/round-0/unresolved.jsonl";
    let original = folder.read(own);
    folder.write(own, &format!("{}\n", decided(json!({"accept": 2}))));
    let output = discuss(folder, models, &["--decisions", own]);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("this command writes the file anew"), "{}", output.stderr);
    folder.write(own, &original);
}

#[test]
fn people_decide_and_the_next_round_trains_on_it() {
    let folder = training_folder();
    build_index(&folder, "index");
    let (adviser, reviewer) = (start_adviser(&folder), start_reviewer());
    let models = [&adviser, &reviewer];
    let unresolved = discuss_until_people(&folder, models);
    let requests = adviser.prompts().len() + reviewer.prompts().len();
    assert_eq!(unresolved.len(), 1);
    let line = &unresolved[0];
    assert_eq!(line["suggestions"].as_array().unwrap().len(), 3, "{line}");
    assert_eq!(line["suggestions"][1]["number"], 2);
    assert_eq!(line["decision"], Value::Null);
    let known = &line["known"];
    let labels = [0, 1].map(|i| known[i].as_f64().unwrap());
    let wrong = if labels[0] > labels[1] { [0, 5] } else { [5, 0] };

    reject_wrong_decisions(&folder, models, line, wrong);
    let decided = |decision: Value| decided(line, decision);

    // An undecided line changes nothing.
    folder.write("decisions.jsonl", &format!("{line}\n"));
    let flags = ["--decisions", "decisions.jsonl", "--wait-for-people"];
    assert_eq!(discuss(&folder, models, &flags).exit_code, 1);
    let decision = json!({"by": "Dr. Ada", "evaluation": evaluation(None, line)});
    folder.write("decisions.jsonl", &format!("{}\n", decided(decision)));
    let output = discuss(&folder, models, &flags);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("by people"), "{}", output.stdout);
    assert!(!output.stderr.contains("had no effect"), "{}", output.stderr);
    assert_eq!(adviser.prompts().len() + reviewer.prompts().len(), requests);

    let rounds: Value = serde_json::from_str(&folder.read("rounds/rounds.json")).unwrap();
    let round = &rounds["rounds"][0];
    let count = |name: &str| round[name].as_u64().unwrap();
    assert_eq!((count("by_people"), count("left")), (1, 0), "{round}");
    assert_eq!(count("mended"), count("by_adviser") + 1);
    let log = lines(&folder.read("rounds/round-0/suggestions.jsonl"));
    let people: Vec<&Value> = log.iter().filter(|line| line["by"] == "people").collect();
    assert_eq!(people.len(), 1);
    assert_eq!((&people[0]["person"], &people[0]["case"]), (&json!("Dr. Ada"), &line["case"]));
    let data = folder.read("rounds/data/round-1.jsonl");
    // The missing final scores are the labels, and both presentation orders have the evaluation.
    let trained = lines(&data).into_iter().filter(|line| {
        line["completion"].as_str().is_some_and(|text| text.contains("A person wrote this."))
    });
    let trained: Vec<String> =
        trained.map(|line| line["completion"].as_str().unwrap().to_owned()).collect();
    assert_eq!(trained.len(), 2, "{trained:?}");
    let shown = format!("Analysis: A person wrote this.\nScore: {}", labels[0]);
    assert!(trained.iter().all(|text| text.contains(&shown)), "{shown}: {trained:?}");

    // The finished run stays as it is; another decision comes too late, and the command says so.
    let again = discuss(&folder, models, &flags);
    assert_eq!((again.exit_code, &again.stdout), (0, &output.stdout), "{}", again.stderr);
    assert!(!again.stderr.contains("had no effect"), "{}", again.stderr);
    folder.write("decisions.jsonl", &format!("{}\n", decided(json!({"accept": 2}))));
    let late = discuss(&folder, models, &flags);
    assert_eq!((late.exit_code, &late.stdout), (0, &output.stdout), "{}", late.stderr);
    assert!(late.stderr.contains("1 of 1 decision of people had no effect"), "{}", late.stderr);
    assert_eq!(folder.read("rounds/data/round-1.jsonl"), data);
}

/// A decision about a discussion is the number of a suggestion, possibly with corrected text.
#[test]
fn accepted_suggestion_replaces_the_evaluations() {
    let folder = training_folder();
    let (adviser, reviewer) = (start_adviser(&folder), start_reviewer());
    let models = [&adviser, &reviewer];
    let mut line = discuss_until_people(&folder, models).remove(0);
    line["decision"] = json!({"accept": 2});
    folder.write("decisions.jsonl", &format!("{line}\n"));
    let output = discuss(&folder, models, &["--decisions", "decisions.jsonl"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let log = lines(&folder.read("rounds/round-0/suggestions.jsonl"));
    let people = log.iter().find(|line| line["by"] == "people").unwrap();
    assert_eq!((&people["accept"], &people["case"]), (&json!(2), &line["case"]));
    let suggested = &line["suggestions"][1]["orders"][0]["final"];
    let accepted = &people["accepted"]["orders"][0]["conclusion"];
    assert_eq!(accepted["scores"], suggested["scores"]);
    assert_eq!(accepted["analyses"], suggested["analyses"]);
}
