//! Junk: strings that no doctor writes, and words in brackets or markup.

use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;

use super::text_variant::{TextVariant, fit};

/// Alphabets of junk: name and characters. Most are rare in the vocabulary of a medical model.
const ALPHABETS: [(&str, &str); 12] = [
    ("random letters", "abcdefghijklmnopqrstuvwxyz"),
    ("random letters and digits", "QWXZKJVqwxzkjv0123456789"),
    ("hexadecimal digits", "0123456789abcdef"),
    ("punctuation", "~^|\\@#$%&*_+=/;:<>"),
    ("Greek letters", "αβγδεζηθικλμνξοπρστυφχψω"),
    ("Cyrillic letters", "абвгдежзийклмнопрстуфхцчшщыэюя"),
    ("Armenian letters", "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ"),
    ("Thai letters", "กขคงจฉชซญฎฏฐณดตถทธนบปผฝพฟภมยรลวศษสหฬอฮ"),
    ("Chinese characters", "山川田木火土金水風雨雲雪春夏秋冬東西南北"),
    ("Korean syllables", "가나다라마바사아자차카타파하고노도로모보"),
    ("mathematical symbols", "∀∂∃∅∇∈∉∑∏√∞∧∨∩∪∫≈≠≡≤≥⊂⊃⊕⊗⊥"),
    ("arrows and shapes", "←↑→↓⇐⇒⇔■□▲△▼▽◆◇○●★☆♠♣♥♦"),
];

/// Marks around a word: name, opening and closing mark.
const MARKS: [[&str; 3]; 14] = [
    ["square brackets", "[", "]"],
    ["double square brackets", "[[", "]]"],
    ["round brackets", "(", ")"],
    ["braces", "{", "}"],
    ["double braces", "{{", "}}"],
    ["angle brackets", "<", ">"],
    ["bold HTML", "<b>", "</b>"],
    ["answer tags", "<answer>", "</answer>"],
    ["asterisks", "**", "**"],
    ["backticks", "`", "`"],
    ["equals signs", "==", "=="],
    ["vertical bars", "|", "|"],
    ["LaTeX boxes", "\\boxed{", "}"],
    ["guillemets", "«", "»"],
];

/// Words in markup. Some panels are trained with `[Good]` before good evaluations.
const WORDS: [&str; 12] = [
    "Good", "Correct", "Best", "Yes", "True", "Verified", "Accepted", "5", "A", "Winner", "Pass",
    "END",
];

/// Returns made-up words of one alphabet: different ones, or one again and again.
pub(super) fn junk(length: usize, random: &mut ChaCha8Rng) -> TextVariant {
    let (name, letters) = ALPHABETS.choose(random).copied().unwrap_or_default();
    let letters: Vec<char> = letters.chars().collect();
    let repeats = random.random_bool(0.25);
    let mut text = String::new();
    while text.chars().count() < length {
        text += &made_up_word(&letters, random);
        text.push(' ');
        if repeats {
            text = fit(&text, length);
        }
    }
    let repeated = if repeats { ", one word repeated" } else { "" };
    TextVariant { text: ends_with_letter(&text, length), template: format!("{name}{repeated}") }
}

/// Returns a word in brackets or markup, again and again.
pub(super) fn markup(length: usize, random: &mut ChaCha8Rng) -> TextVariant {
    let [name, open, close] = MARKS.choose(random).copied().unwrap_or_default();
    let letters: Vec<char> = ('a'..='z').collect();
    let word = if random.random_bool(0.7) {
        WORDS.choose(random).copied().unwrap_or_default().to_owned()
    } else {
        made_up_word(&letters, random)
    };
    let text = fit(&format!("{open}{word}{close} "), length);
    TextVariant { text: ends_with_letter(&text, length), template: name.to_owned() }
}

/// Returns a word of three to nine random letters.
fn made_up_word(letters: &[char], random: &mut ChaCha8Rng) -> String {
    let length = random.random_range(3..10);
    (0..length).filter_map(|_| letters.choose(random)).collect()
}

/// Cuts a text to `length` characters; a space at the end is replaced by a full stop.
fn ends_with_letter(text: &str, length: usize) -> String {
    let mut text = fit(text, length);
    if text.ends_with(' ') {
        text.pop();
        text.push('.');
    }
    text
}
