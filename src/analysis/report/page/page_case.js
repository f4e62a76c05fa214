// Continues page.js, in the same function: one case, and the start of the page.

/* ---- one case ---- */

const chunks = new Map();

// Returns the analyses of an entry. Their chunk of the data is parsed on first use; one chunk is kept.
function entryDetails(entry) {
  const chunkIndex = Math.floor((entry.number - 1) / index.chunk);
  if (!chunks.has(chunkIndex)) {
    chunks.clear();
    chunks.set(chunkIndex, JSON.parse(byId("details-" + chunkIndex).textContent));
  }
  return chunks.get(chunkIndex)[(entry.number - 1) % index.chunk];
}

// Creates a bar for a score from 0 to 5. It is hidden from screen readers: the score is next to it as text.
function scoreBar(value) {
  const inner = el("span", {});
  inner.style.width = Math.max(0, Math.min(100, value * 20)) + "%";
  return el("span", { class: "bar", "aria-hidden": "true" }, inner);
}

function scoreElements(score, expected, spread) {
  const text = "expected " + expected.toFixed(2) + (spread === undefined ? "" : "\u00a0±\u00a0" + spread.toFixed(2));
  return [el("strong", { class: "score" }, number(score)), scoreBar(expected), el("span", { class: "expected" }, text)];
}

function probabilityChart(probabilities) {
  const text = probabilities.map((p, score) => score + ": " + p + " %").join(", ");
  const columns = probabilities.map((p, score) => {
    const column = el("span", { class: "column" });
    column.style.height = Math.max(p, 1) + "%";
    return el("span", { class: "chance" }, el("span", { class: "tall" }, column), el("span", {}, String(score)));
  });
  return el("span", { class: "chances", role: "img", "aria-label": "Probability of each score: " + text }, columns);
}

// Creates a heading row and a row with one cell per response.
function titledRows(title, level, cells) {
  return [
    el("tr", { class: level }, el("th", { scope: "rowgroup", colspan: String(cells.length) }, title)),
    el("tr", {}, cells.map((cell) => el("td", {}, cell))),
  ];
}

function scoreRows(title, level, scores) {
  return titledRows(title, level, scores.scores.map((score, side) => [
    el("p", { class: "line" }, scoreElements(score, scores.expected[side], scores.spread[side])),
    scores.probabilities ? probabilityChart(scores.probabilities[side]) : null,
    scores.analyses ? untrusted("p", scores.analyses[side] + (scores.cut && scores.cut[side] ? " […]" : ""), { class: "analysis" }) : null,
  ]));
}

function pairTable(entry, caption, bodies) {
  const headers = namesOf(entry).map((model) => el("th", { scope: "col" }, model));
  return el("div", { class: "scroll" }, el("table", { class: "pair" },
    el("caption", {}, caption), el("thead", {}, el("tr", {}, headers)), bodies.map((body) => el("tbody", {}, body))));
}

// The model whose response was shown first.
const firstShown = (entry, order) => namesOf(entry)[order.first_shown ?? (order.swapped ? 1 : 0)];

// The evaluations of one presentation order: the conclusion, then each aspect's criteria.
function evaluationTable(entry, order) {
  const bodies = [scoreRows("Conclusion", "aspect", order.conclusion)];
  for (const [aspect, title] of index.aspects) {
    if (!index.criteria.some(([key, , criterionAspect]) => criterionAspect === aspect && order.criteria[key])) continue;
    const body = [el("tr", { class: "aspect" }, el("th", { scope: "rowgroup", colspan: String(entry.models.length) }, title))];
    for (const [key, name, criterionAspect] of index.criteria) {
      if (criterionAspect === aspect && order.criteria[key]) body.push(scoreRows(name, "criterion", order.criteria[key]));
    }
    bodies.push(body.flat());
  }
  return pairTable(entry, orderTitle(entry, order), bodies);
}

// Names a presentation order; a response alone has only one.
const orderTitle = (entry, order) => (entry.models.length === 1 ? "Shown alone" : firstShown(entry, order) + " shown first");

function combinedTable(entry, verdict, detail) {
  const meanRows = (title, level, pair) => titledRows(title, level, pair.map((value) =>
    el("p", { class: "line" }, el("strong", { class: "score" }, number(value)), scoreBar(value))));
  const final = titledRows("Final score", "aspect", verdict.scores.map((score, side) =>
    el("p", { class: "line" }, scoreElements(score, verdict.expected[side]))));
  const bodies = [final];
  for (const [aspect, title] of index.aspects) {
    if (detail.aspects[aspect]) bodies.push(meanRows(title, "criterion", detail.aspects[aspect]));
  }
  return pairTable(entry, "Combined scores (mean over presentation orders)", bodies);
}

// Names the criteria in which the preferred response leads most, with their scores.
function decidingText(verdict, detail) {
  if (!verdict.order || verdict.order === "=") return null;
  const sign = verdict.order === ">" ? 1 : -1;
  const leads = index.criteria.filter(([key]) => detail.criteria[key]).map(([key, name]) => {
    const [a, b] = detail.criteria[key];
    return { text: name + " (" + number(a) + " to " + number(b) + ")", lead: sign * (a - b) };
  });
  const largest = Math.max(0, ...leads.map(({ lead }) => lead));
  if (largest < 1e-6) return "The preferred response leads in no criterion: the conclusion model prefers it all the same.";
  const deciding = leads.filter(({ lead }) => lead > largest - 1e-6).map(({ text }) => text);
  return "Largest lead of the preferred response: " + deciding.join(", ") + ".";
}

// The verdict on the correctness of a response, with the judge's analyses.
function gradeParts(entry, verdict, detail) {
  const text = (verdict.scores[0] === 1 ? "Correct" : "Wrong") + ": probability " + probability(verdict)
    + " that the response is correct.";
  const bar = el("span", { class: "bar", "aria-hidden": "true" }, el("span", {}));
  bar.firstChild.style.width = Math.max(0, Math.min(100, verdict.expected[0] * 100)) + "%";
  const written = detail.orders.flatMap((order) => [...Object.values(order.criteria), order.conclusion]);
  const analyses = written.flatMap((scores) => (scores.analyses || []).map((analysis, k) =>
    analysis && untrusted("p", analysis + (scores.cut && scores.cut[k] ? " […]" : ""), { class: "analysis" }))).filter(Boolean);
  const none = [el("p", { class: "keys" }, "No analysis: the run was judged with scores only.")];
  return [el("p", { class: "line" }, el("strong", {}, text), bar), ...(analyses.length ? [el("h4", {}, "Analysis"), ...analyses] : none)];
}

function verdictSection(entry, i, detail) {
  const verdict = entry.verdicts[i];
  const parts = [el("h4", {}, judges.length > 1 ? judges[i] : "Verdict")];
  if (!verdict) {
    parts.push(el("p", {}, "This judge has no record of this " + (isGraded ? "response." : "pair.")));
  } else if (!isJudged(verdict)) {
    parts.push(el("p", {}, "Unscored (" + verdict.reason + "): " + verdict.message));
  } else if (isGraded) {
    parts.push(...gradeParts(entry, verdict, detail));
  } else {
    const flipTexts = { true: "Flip: the preference changes with the presentation order.", false: "No flip: both presentation orders give the same preference." };
    parts.push(el("p", {}, verdict.order
      ? preferenceText(entry, verdict.order) + ", " + verdict.scores.map(number).join(" to ") + ". "
        + (flipTexts[verdict.flip] || "Judged in one presentation order only.")
      : "Final scores: " + scoresByModel(entry, verdict) + "."));
    const deciding = decidingText(verdict, detail);
    if (deciding) parts.push(el("p", {}, deciding));
    parts.push(combinedTable(entry, verdict, detail));
    parts.push(el("p", { class: "keys" }, "Final score: given by the conclusion model; it is not the mean of the aspects. Aspects: means of their criteria. All from 0 to 5."));
    detail.orders.forEach((order, k) => {
      const open = k === 0 ? { open: "" } : {};
      const title = orderTitle(entry, order);
      const summary = "Analyses" + (entry.models.length === 1 ? "" : ", " + title);
      parts.push(el("details", open, el("summary", {}, summary), evaluationTable(entry, order)));
    });
  }
  return el("section", { class: "verdict" }, parts);
}

function imageFigure(entry) {
  if (!entry.image) return null;
  const caption = el("figcaption", {}, entry.image);
  if (entry.picture === undefined) return el("figure", {}, el("p", { class: "absent" }, "Image not in this file"), caption);
  const src = byId("picture-" + entry.picture).textContent;
  return el("figure", {}, el("img", { src, alt: "Image of the case" }), caption);
}

// What text metrics say about the response, and its label.
function gradeElements(entry) {
  const facts = [];
  const add = (name, text) => facts.push(el("dt", {}, name), el("dd", {}, text));
  if (entry.exact !== undefined) add("Exact match", entry.exact ? "yes" : "no");
  if (entry.recall !== undefined) add("Token recall", Math.round(entry.recall * 100) + "\u00a0%");
  if (isKnown(entry.closed)) add("Question type", entry.closed ? "closed" : "open");
  if (entry.labels) add("Label", entry.labels[0] === 1 ? "correct" : "wrong");
  return facts;
}

function labelElements(entry) {
  if (isGraded) return gradeElements(entry);
  if (!entry.label && !entry.labels) return null;
  if (!entry.label) {
    const text = namesOf(entry).map((model, i) => model + " " + number(entry.labels[i])).join(", ");
    return [el("dt", {}, "Label"), el("dd", {}, text)];
  }
  const scores = entry.labels ? " (" + entry.labels.map(number).join(" to ") + ")" : "";
  return [el("dt", {}, "Label"), el("dd", {}, preferenceText(entry, entry.label) + scores)];
}

function showCase(focus) {
  const article = byId("case");
  const entry = state.open ? entries[state.open - 1] : null;
  article.hidden = !entry;
  byId("browser").classList.toggle("opened", Boolean(entry));
  if (!entry) return article.replaceChildren();
  const position = shown.findIndex((other) => other.number === entry.number);
  const stepButton = (name, other) => {
    const button = el("button", { type: "button" }, name);
    button.disabled = !other;
    if (other) button.addEventListener("click", () => openCase(other.number));
    return button;
  };
  const back = el("button", { type: "button", id: "back" }, "Back to the list");
  back.addEventListener("click", closeCase);
  const facts = [];
  if (entry.question) facts.push(el("dt", {}, "Question"), untrusted("dd", entry.question));
  if (entry.reference) facts.push(el("dt", {}, "Reference"), untrusted("dd", entry.reference));
  facts.push(labelElements(entry));
  if (entry.change) facts.push(el("dt", {}, "Change"), el("dd", {}, entry.change));
  for (const [name, value] of metaEntries(entry)) facts.push(el("dt", { class: "meta" }, name), untrusted("dd", String(value)));
  const answers = entry.answers
    ? pairTable(entry, "Responses", [[el("tr", {}, entry.answers.map((text) => untrusted("td", text, { class: "answer" })))]])
    : null;
  const detail = entryDetails(entry);
  article.replaceChildren(
    el("p", { class: "steps" }, back, stepButton("Previous", shown[position - 1]), stepButton("Next", position < 0 ? shown[0] : shown[position + 1])),
    el("h3", { id: "case-h" }, entry.case || "Line " + entry.line),
    el("div", { class: "asked" }, ...[imageFigure(entry), el("dl", {}, facts.flat())].filter(Boolean)),
    ...(answers ? [answers] : []),
    el("div", { class: "verdicts" }, entry.verdicts.map((_, i) => verdictSection(entry, i, detail[i]))));
  updateTabStops();
  const current = document.querySelector("#list [aria-current]");
  if (current) current.scrollIntoView({ block: "nearest" });
  if (focus) {
    article.focus({ preventScroll: true });
    article.scrollIntoView({ block: "start" });
  }
}

let focusNext = false;

function openCase(n) {
  focusNext = true;
  const position = shown.findIndex((entry) => entry.number === n);
  navigate({ open: n, page: position < 0 ? state.page : Math.floor(position / PAGE) + 1 }, true);
}

function closeCase() {
  const last = state.open;
  navigate({ open: null }, true);
  const link = document.querySelector('[data-open="' + last + '"]') || byId("q");
  link.focus();
}

/* ---- page ---- */

function update() {
  state = stateFromUrl();
  for (const name of fields) {
    const control = byId("filters").elements[name];
    if (control.value !== state[name]) control.value = state[name];
    // Ignore values from the URL that the control does not offer.
    if (control.value !== state[name]) state[name] = "";
  }
  filterEntries();
  showList();
  showCase(focusNext);
  focusNext = false;
}

// Offers the filters of the form correctness instead of those of pairs.
function fillGradeSelects() {
  const options = (id, choices) => byId(id).replaceChildren(...choices.map(([value, text]) => option(value, text)));
  options("status", [["", "any"], ["correct", "correct"], ["wrong", "wrong"], ["unscored", "unscored"],
    ["inexact", "differs from exact match"]]);
  options("sort", [["", "record order"], ["low", "lowest probability"], ["high", "highest probability"],
    ["undecided", "probability near one half"], ["case", "case id"]]);
  byId("flip").parentElement.hidden = true;
}

function fillSelects() {
  if (isGraded) fillGradeSelects();
  const models = [...new Set(entries.flatMap((entry) => entry.models))].sort();
  byId("model").append(...models.map((model) => option(model, displayName(model))));
  const values = new Map();
  for (const entry of entries) {
    for (const [name, value] of metaEntries(entry)) {
      if (!values.has(name)) values.set(name, new Set());
      values.get(name).add(String(value));
    }
  }
  for (const [name, all] of [...values].sort()) {
    // Skip fields with one value or more than 40 values.
    if (all.size < 2 || all.size > 40) continue;
    const group = el("optgroup", { label: name }, [...all].sort().map((value) => option(name + "=" + value, value)));
    byId("field").append(group);
  }
  byId("judges-p").hidden = judges.length < 2;
  byId("change-p").hidden = !entries.some((entry) => entry.change);
}

function onKey(event) {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape" && state.open) return closeCase();
  if (isTyping) return;
  const position = shown.findIndex((entry) => entry.number === state.open);
  const next = { j: position + 1, k: position - 1 }[event.key];
  if (event.key === "/") {
    byId("q").focus();
    event.preventDefault();
  } else if (next !== undefined && shown[next]) {
    openCase(shown[next].number);
    event.preventDefault();
  }
}

// Only tables that scroll sideways get a tab stop.
function updateTabStops() {
  for (const region of document.querySelectorAll(".scroll")) {
    if (region.scrollWidth > region.clientWidth + 1) region.setAttribute("tabindex", "0");
    else region.removeAttribute("tabindex");
  }
}

function start() {
  fillSelects();
  byId("off").remove();
  byId("browser").hidden = false;
  const form = byId("filters");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    const values = {};
    for (const name of fields) values[name] = form.elements[name].value;
    navigate({ ...values, page: 1 }, false);
  });
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    navigate({ ...Object.fromEntries(fields.map((name) => [name, ""])), page: 1 }, false);
  });
  byId("before").addEventListener("click", () => navigate({ page: state.page - 1 }, true));
  byId("after").addEventListener("click", () => navigate({ page: state.page + 1 }, true));
  byId("list").addEventListener("click", (event) => {
    const link = event.target.closest("a[data-open]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openCase(Number(link.dataset.open));
  });
  byId("browser").addEventListener("keydown", onKey);
  addEventListener("popstate", () => { if (/^#cases|^$/.test(location.hash)) update(); });
  addEventListener("hashchange", () => {
    if (location.hash.startsWith("#cases?")) {
      focusNext = true;
      update();
    }
  });
  addEventListener("resize", updateTabStops);
  focusNext = location.hash.includes("open=");
  update();
  // No element has this id with parameters, so the browser stays at the top.
  if (location.hash.startsWith("#cases?") && !state.open) byId("cases").scrollIntoView();
  updateTabStops();
}

start();
})();
