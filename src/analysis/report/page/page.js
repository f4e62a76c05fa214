// Case browser of the report page. Elements are created from text only: no data is parsed as HTML.
(() => {
"use strict";

const PAGE = 50;
const byId = (id) => document.getElementById(id);
const index = JSON.parse(byId("index").textContent);
const judges = index.judges;
// True if the verdicts say whether single responses are correct.
const isGraded = index.form === "correctness";
const fields = ["q", "status", "model", "flip", "label", "judges", "change", "field", "sort"];

/* ---- elements ---- */

// Creates an element with attributes and children. Strings become text nodes.
function el(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name === "class") element.className = value;
    else element.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

// Creates an element with untrusted text; its text direction follows its script.
const untrusted = (tag, text, properties) => el(tag, { dir: "auto", ...properties }, text);
const option = (value, text) => el("option", { value }, text);
// Returns a name for display. A long one is cut, so that it does not widen the page.
const displayName = (name) => (name.length > 60 ? [...name].slice(0, 60).join("") + "…" : name);
const namesOf = (entry) => entry.models.map(displayName);
const number = (value) => String(Math.round(value * 100) / 100);

/* ---- properties of an entry ---- */

const isJudged = (verdict) => Boolean(verdict) && verdict.status === "judged";
const judgedVerdicts = (entry) => entry.verdicts.filter(isJudged);
// The verdict of the form correctness: score 1 is correct, the expected score is the probability.
const grade = (verdict) => (verdict.scores[0] === 1 ? "correct" : "wrong");
const probability = (verdict) => verdict.expected[0].toFixed(2);
const differsFromExactMatch = (entry) => judgedVerdicts(entry).some((v) => (v.scores[0] === 1) !== entry.exact);
// The verdict as a value that can be compared with labels and other judges.
const outcome = (verdict) => (isGraded ? verdict.scores[0] : verdict.order);
const labelOutcome = (entry) => (isGraded ? entry.labels && entry.labels[0] : entry.label);
const isKnown = (label) => label !== null && label !== undefined;
const mark = (order) => ({ ">": "better", "=": "tie", "<": "worse" })[order];

function preferenceText(entry, order) {
  if (order === "=") return "Tie";
  return namesOf(entry)[order === ">" ? 0 : 1] + " is better";
}

function searchText(entry) {
  const texts = [entry.case, entry.question, entry.reference, entry.image, ...(entry.answers || []), ...entry.models];
  return texts.filter(Boolean).join("\n").toLowerCase();
}

const metaEntries = (entry) => Object.entries(entry.meta || {}).filter(([, v]) => v !== null && typeof v !== "object");

const entries = index.entries.map((entry, i) => ({ ...entry, number: i + 1, text: searchText(entry) }));

const hasImages = entries.some((entry) => entry.picture !== undefined);

// Filters: each returns true for the entries to list.
const filters = {
  q: (entry, words) => words.toLowerCase().split(/\s+/).every((word) => entry.text.includes(word)),
  model: (entry, model) => entry.models.includes(model),
  flip: (entry, choice) => judgedVerdicts(entry).some((v) => v.flip === (choice === "yes")),
  field: (entry, choice) => metaEntries(entry).some(([name, value]) => name + "=" + value === choice),
  change: (entry, choice) => Boolean(entry.change) === (choice === "yes"),
  status(entry, choice) {
    if (choice === "unscored") return entry.verdicts.some((v) => v && v.status === "unscored");
    if (choice === "correct" || choice === "wrong") return judgedVerdicts(entry).some((v) => grade(v) === choice);
    if (choice === "inexact") return differsFromExactMatch(entry);
    if (choice === "tie") return judgedVerdicts(entry).some((v) => v.order === "=");
    return judgedVerdicts(entry).length > 0;
  },
  label(entry, choice) {
    const label = labelOutcome(entry);
    if (choice === "unknown") return !isKnown(label);
    if (!isKnown(label) || !judgedVerdicts(entry).length) return false;
    const differs = judgedVerdicts(entry).some((v) => outcome(v) !== label);
    return differs === (choice === "differ");
  },
  judges(entry, choice) {
    const orders = judgedVerdicts(entry).map(outcome);
    if (orders.length < 2) return false;
    return orders.some((order) => order !== orders[0]) === (choice === "differ");
  },
};

// Entries without a verdict come last.
const largestScoreGap = (entry) => {
  const gaps = judgedVerdicts(entry).map((v) => Math.abs(v.scores[0] - v.scores[1]));
  return gaps.length ? Math.max(...gaps) : null;
};
const lowestScore = (entry) => {
  const scores = judgedVerdicts(entry).flatMap((v) => v.scores);
  return scores.length ? Math.min(...scores) : null;
};
const firstProbability = (entry) => (judgedVerdicts(entry).length ? judgedVerdicts(entry)[0].expected[0] : null);
const compareBy = (value, sign) => (a, b) => {
  const [x, y] = [value(a), value(b)];
  if (x === null || y === null) return (x === null) - (y === null) || a.number - b.number;
  return sign * (x - y) || a.number - b.number;
};
const sorts = {
  gap: compareBy(largestScoreGap, -1),
  close: compareBy(largestScoreGap, 1),
  low: compareBy(isGraded ? firstProbability : lowestScore, 1),
  high: compareBy(firstProbability, -1),
  undecided: compareBy((entry) => (firstProbability(entry) === null ? null : Math.abs(firstProbability(entry) - 0.5)), 1),
  case: (a, b) => (a.case || "").localeCompare(b.case || "", "en", { numeric: true }) || a.number - b.number,
};

/* ---- state, stored in the URL ---- */

let state = {};
let shown = [];

function stateFromUrl() {
  const hash = location.hash;
  const search = new URLSearchParams(hash.startsWith("#cases?") ? hash.slice(7) : "");
  const parsed = {};
  for (const name of fields) parsed[name] = search.get(name) || "";
  const integer = (name, max) => {
    const value = Number.parseInt(search.get(name), 10);
    return value >= 1 && value <= max ? value : null;
  };
  parsed.page = integer("page", 1e9) || 1;
  parsed.open = integer("open", entries.length);
  return parsed;
}

function urlFor(changes) {
  const target = { ...state, ...changes };
  const search = new URLSearchParams();
  for (const name of fields) if (target[name]) search.set(name, target[name]);
  if (target.page > 1) search.set("page", target.page);
  if (target.open) search.set("open", target.open);
  return "#cases?" + search;
}

// Applies changes to the state. If `addsHistory` is true, adds a history entry; otherwise replaces the current one.
function navigate(changes, addsHistory) {
  const url = urlFor(changes);
  if (addsHistory) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  update();
}

/* ---- the list ---- */

function filterEntries() {
  const active = fields.filter((name) => state[name] && filters[name]);
  shown = entries.filter((entry) => active.every((name) => filters[name](entry, state[name])));
  if (sorts[state.sort]) shown.sort(sorts[state.sort]);
}

// Formats the final score of each response of a verdict.
const scoresByModel = (entry, verdict) => namesOf(entry).map((model, i) => model + " " + number(verdict.scores[i])).join(", ");

// Formats the scores: with one judge next to the model names, with several judges after them.
function scoreSummary(entry) {
  const [first, second] = namesOf(entry);
  if (isGraded) {
    const graded = entry.verdicts.map((v) => (isJudged(v) ? grade(v) + ", probability " + probability(v) : "unscored"));
    return [...namesOf(entry), graded.join(" · ")].join(": ");
  }
  if (!judgedVerdicts(entry).length) return namesOf(entry).join(" / ");
  if (entry.models.length !== 2) {
    return entry.verdicts.map((v) => (isJudged(v) ? scoresByModel(entry, v) : "unscored")).join(" · ");
  }
  const scores = entry.verdicts.map((v) => (isJudged(v) ? v.scores.map(number).join(" to ") : "unscored"));
  if (scores.length > 1) return first + " / " + second + ": " + scores.join(" · ");
  const [a, b] = entry.verdicts[0].scores.map(number);
  return first + " " + a + " to " + b + " " + second;
}

function flagElements(entry) {
  const flags = [];
  if (!judgedVerdicts(entry).length) flags.push("unscored");
  if (judgedVerdicts(entry).some((v) => v.flip)) flags.push("flip");
  if (isGraded && differsFromExactMatch(entry)) flags.push("differs from exact match");
  if (filters.label(entry, "differ")) flags.push("differs from labels");
  if (filters.judges(entry, "differ")) flags.push("judges disagree");
  if (entry.change) flags.push("changed");
  return flags.map((flag) => el("span", { class: "flag" }, flag));
}

// Creates a small image for the list, or an empty box of the same size. The page has no boxes if it has no images.
function thumbnail(entry) {
  if (!hasImages) return null;
  if (entry.picture === undefined) return el("span", { class: "thumb", "aria-hidden": "true" });
  const src = byId("picture-" + entry.picture).textContent;
  return el("img", { class: "thumb", src, alt: "", width: "64", height: "64", decoding: "async" });
}

function listItem(entry) {
  const link = el("a", { href: urlFor({ open: entry.number }), "data-open": entry.number },
    thumbnail(entry),
    el("span", { class: "text" },
      el("span", { class: "id" }, entry.case || "Line " + entry.line),
      untrusted("span", entry.question || "", { class: "question" }),
      el("span", { class: "scores" }, scoreSummary(entry))));
  if (entry.number === state.open) link.setAttribute("aria-current", "true");
  return el("li", {}, link, flagElements(entry));
}

function showList() {
  const pages = Math.max(1, Math.ceil(shown.length / PAGE));
  state.page = Math.min(state.page, pages);
  const from = (state.page - 1) * PAGE;
  const list = byId("list");
  list.start = from + 1;
  list.replaceChildren(...shown.slice(from, from + PAGE).map(listItem));
  const units = isGraded ? " responses." : " pairs.";
  byId("found").textContent = shown.length === entries.length
    ? "Showing all " + entries.length + units
    : "Showing " + shown.length + " of " + entries.length + units;
  byId("page").textContent = "Page " + state.page + " of " + pages;
  byId("before").disabled = state.page <= 1;
  byId("after").disabled = state.page >= pages;
  byId("pages").hidden = pages === 1;
}
