//! Neutral sentences: about nothing that a judge scores.

use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand_chacha::ChaCha8Rng;

/// Sentences with placeholders.
const SENTENCES: [&str; 14] = [
    "This note was typed on a {day} {time}.",
    "The file was opened on a {day} in {month}.",
    "The window of the {room} looks out on a small garden.",
    "The train to the coast leaves every {day} {time}.",
    "It was a mild {time} in {month}, with a little wind.",
    "The table in the {room} is made of pale wood.",
    "Tea is served in the {room} on a {day}.",
    "The page was printed on plain paper in {month}.",
    "A neighbour waters the plants on a {day} {time}.",
    "The clock in the {room} was bought in {month}.",
    "The bakery near the station opens on a {day} {time}.",
    "Two chairs stand next to the door of the {room}.",
    "The road along the river was quiet that {time}.",
    "A blue umbrella hangs behind the door of the {room}.",
];
const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const TIMES: [&str; 4] = ["morning", "noon", "afternoon", "evening"];
const MONTHS: [&str; 8] =
    ["January", "February", "April", "May", "June", "September", "October", "November"];
const ROOMS: [&str; 5] = ["kitchen", "library", "office", "hall", "reading room"];

/// Returns different neutral sentences, joined by spaces.
pub(super) fn sentences(count: usize, random: &mut ChaCha8Rng) -> String {
    let mut templates = SENTENCES;
    templates.shuffle(random);
    let mut fill = |template: &&str| {
        let mut text = (*template).to_owned();
        for (placeholder, words) in
            [("{day}", &DAYS[..]), ("{time}", &TIMES), ("{month}", &MONTHS), ("{room}", &ROOMS)]
        {
            text = text.replace(placeholder, words.choose(random).copied().unwrap_or_default());
        }
        text
    };
    templates.iter().take(count).map(&mut fill).collect::<Vec<_>>().join(" ")
}
