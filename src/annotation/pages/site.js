"use strict";
// What the page of a case does better with a script: digits enter scores, the image zooms, a failed image says
// so, and leaving with unsaved changes asks first.

const form = document.querySelector("form.rating");
if (form) {
  const all = [...form.querySelectorAll("fieldset.scores")];
  let changed = false;
  form.addEventListener("change", () => { changed = true; });
  form.addEventListener("submit", () => { changed = false; });
  addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });

  // Enter in the reason skips the case; without this, the browser takes the first button of the form.
  const reason = form.querySelector("[name=reason]");
  if (reason) reason.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    form.querySelector("[value=skip]").click();
  });

  // A digit chooses the score of the focused group, or of the first group without one, and goes on.
  addEventListener("keydown", (event) => {
    const typing = event.target.matches("textarea, input:not([type=radio])");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !/^[0-9]$/.test(event.key)) return;
    const focused = event.target.closest("fieldset.scores");
    // A digit must not enter a score that nobody sees.
    const groups = all.filter((group) => !group.closest("details:not([open])"));
    const group = focused || groups.find((group) => !group.querySelector(":checked"));
    const choice = group && group.querySelector(`input[value="${event.key}"]`);
    if (!choice || choice.disabled || choice.matches(":disabled")) return;
    choice.checked = true;
    changed = true;
    const next = groups[groups.indexOf(group) + 1];
    const target = next && (next.querySelector(":checked") || next.querySelector("input"));
    (target || form.querySelector(".preference input") || choice).focus();
    event.preventDefault();
  });
}

const viewer = document.querySelector(".viewer");
if (viewer) {
  const image = viewer.querySelector("img");
  let scale = 1, x = 0, y = 0, drag = null;
  const show = () => {
    const least = (length) => length * (1 - scale);
    x = Math.min(0, Math.max(least(viewer.clientWidth), x));
    y = Math.min(0, Math.max(least(viewer.clientHeight), y));
    image.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
    // A finger moves the image only if there is more of it than is shown, and the page otherwise.
    viewer.style.touchAction = scale > 1 ? "none" : "auto";
  };
  const zoom = (factor, px, py) => {
    const next = Math.min(12, Math.max(1, scale * factor));
    x = px - (px - x) * next / scale;
    y = py - (py - y) * next / scale;
    scale = next;
    show();
  };
  const middle = (factor) => zoom(factor, viewer.clientWidth / 2, viewer.clientHeight / 2);
  viewer.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && scale === 1 && event.deltaY > 0) return;
    const box = viewer.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, event.clientX - box.left, event.clientY - box.top);
    event.preventDefault();
  }, { passive: false });
  viewer.addEventListener("pointerdown", (event) => {
    if (scale === 1) return;
    drag = { px: event.clientX - x, py: event.clientY - y };
    viewer.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  viewer.addEventListener("pointermove", (event) => {
    if (!drag) return;
    x = event.clientX - drag.px;
    y = event.clientY - drag.py;
    show();
  });
  for (const end of ["pointerup", "pointercancel"]) viewer.addEventListener(end, () => { drag = null; });
  const bar = document.createElement("div");
  bar.className = "zoom";
  const button = (text, label, act) => {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = text;
    element.setAttribute("aria-label", label);
    element.addEventListener("click", act);
    bar.append(element);
  };
  button("+", "Zoom in", () => middle(1.5));
  button("−", "Zoom out", () => middle(1 / 1.5));
  button("Whole image", "Show the whole image", () => { scale = 1; x = 0; y = 0; show(); });
  for (const [text, label, dx, dy] of [["←", "left", 60, 0], ["→", "right", -60, 0], ["↑", "up", 0, 60], ["↓", "down", 0, -60]]) {
    button(text, `Move the view ${label}`, () => { x += dx; y += dy; show(); });
  }
  viewer.after(bar);
  const note = document.createElement("p");
  note.setAttribute("aria-live", "polite");
  bar.after(note);
  const tell = () => {
    const failed = image.complete && image.naturalWidth === 0;
    viewer.hidden = bar.hidden = failed;
    note.hidden = !failed;
    note.textContent = failed ? "The image cannot be shown. Reload the page, or tell the administrator." : "";
  };
  image.addEventListener("load", tell);
  image.addEventListener("error", tell);
  tell();
  // Another window changes the image only, so that entries and the place on the page stay.
  const fields = document.querySelector(".window");
  if (fields) {
    const [center, width] = ["center", "width"].map((name) => fields.querySelector(`[name=${name}]`));
    const path = image.src.split("?")[0];
    fields.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      // Enter in the form of the ratings also presses the first button.
      const isPressed = event.detail > 0 || fields.contains(document.activeElement);
      if (!button || !isPressed) return;
      event.preventDefault();
      if (button.value) [center.value, width.value] = button.value.includes(",") ? button.value.split(",") : ["", ""];
      const chosen = center.value !== "" && width.value !== "";
      image.src = chosen ? `${path}?${new URLSearchParams({ center: center.value, width: width.value })}` : path;
      viewer.parentElement.querySelector("figcaption a").href = image.src;
    });
  }
}
