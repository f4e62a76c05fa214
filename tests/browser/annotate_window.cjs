// Changes the window of DICOM images on the site of `acem3 annotate` in a browser, and decides about a
// disagreement. Fails on any problem.
// Usage: node annotate_window.cjs MODULES CHROMIUM RATER_LINK ADMINISTRATOR_LINK
"use strict";
const assert = require("node:assert");

const [modules, executablePath, raterLink, administratorLink] = process.argv.slice(2);
const { siteBrowser } = require("./site_browser.cjs");
const origin = new URL(raterLink).origin;
const { run, forEachLook, enter, check } = siteBrowser({ modules, executablePath, origin });
const source = (page) => page.getAttribute(".viewer img", "src");

// With a script, only the image changes; a saved draft keeps the window.
async function changeWindow(browser) {
  const page = await enter(browser, raterLink, { viewport: { width: 1440, height: 900 } });
  await page.goto(origin + "/case/2");
  const ofFile = [await page.inputValue("[name=center]"), await page.inputValue("[name=width]")];
  assert.ok(ofFile.every((value) => value !== ""));
  await page.locator("fieldset.scores input").first().check();
  await page.click("text=Bone");
  assert.match(await source(page), /center=400&width=1800/);
  assert.equal(await page.inputValue("[name=center]"), "400");
  assert.ok(await page.locator("fieldset.scores input").first().isChecked());
  await page.fill("[name=center]", "30");
  await page.press("[name=center]", "Enter");
  assert.match(await source(page), /center=30&width=1800/);
  await page.click("text=Save draft");
  assert.match(await source(page), /center=30&width=1800/);
  assert.ok(await page.locator("fieldset.scores input").first().isChecked());
  await page.click("text=Window of the file");
  assert.deepEqual([await page.inputValue("[name=center]"), await page.inputValue("[name=width]")], ofFile);
  // The case stays in view beside the end of the form.
  await page.locator("text=Submit and go on").scrollIntoViewIfNeeded();
  assert.ok(await page.locator(".viewer").isVisible());
  const box = await page.locator(".case .text").last().boundingBox();
  assert.ok(box.y >= 0 && box.y < 900, JSON.stringify(box));
  // Enter in the reason skips the case.
  await page.click("summary:has-text('Skip')");
  await page.fill("[name=reason]", "Not my field.");
  await page.press("[name=reason]", "Enter");
  await page.waitForURL((url) => url.pathname !== "/case/2");
  await page.goto(origin + "/case/2");
  assert.match(await page.textContent("[role=status]"), /skipped/);
}

// Without a script, another window saves the entries as a draft.
async function changeWindowWithoutScripts(browser) {
  const page = await enter(browser, raterLink, { javaScriptEnabled: false, viewport: { width: 768, height: 1024 } });
  await page.goto(origin + "/case/3");
  await page.locator("fieldset.scores input").nth(4).check();
  await page.click("text=Brain");
  assert.match(await source(page), /center=40&width=80/);
  assert.ok(await page.locator("fieldset.scores input").nth(4).isChecked());
}

// Decides about the preference of the first case, on which the raters disagree.
async function decide(browser) {
  const page = await enter(browser, administratorLink, { viewport: { width: 1440, height: 900 } });
  await page.click("text=Disagreements to decide");
  await page.click("a:has-text('Preference')");
  await page.click("text=Brain");
  assert.match(await source(page), /center=40&width=80/);
  assert.match(await page.textContent("main"), /For this rater, answer 1 was Answer [AB]/);
  await page.click("label:has-text('answer 1 is better')");
  await page.click("text=Save the decision");
  assert.match(await page.textContent("main"), /decided: answer 1 is better/);
}

run(async (browser) => {
  await changeWindow(browser);
  await changeWindowWithoutScripts(browser);
  await decide(browser);
  await forEachLook(browser, raterLink, async (rater, look) => {
    await rater.goto(origin + "/case/2");
    await check(rater, `window ${look}`);
  });
  await forEachLook(browser, administratorLink, async (administrator, look) => {
    await administrator.goto(origin + "/admin/disagreements");
    await check(administrator, `open disagreements ${look}`);
    await administrator.click("a:has-text('Factual')");
    await check(administrator, `disagreement ${look}`);
  });
});
