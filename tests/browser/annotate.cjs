// Rates a case on the site of `acem3 annotate` in a browser, and fails on any problem.
// Usage: node annotate.cjs MODULES CHROMIUM RATER_LINK ADMINISTRATOR_LINK
"use strict";
const assert = require("node:assert");

const [modules, executablePath, raterLink, administratorLink] = process.argv.slice(2);
const { siteBrowser } = require("./site_browser.cjs");
const origin = new URL(raterLink).origin;
const { run, forEachLook, enter, check } = siteBrowser({ modules, executablePath, origin });

// Enters all scores of the open case with the keyboard, from the top of the page.
async function rateByKeyboard(page) {
  const groups = await page.locator("fieldset.scores").count();
  for (let i = 0; i < groups; i += 1) await page.keyboard.press(String(i % 6));
  assert.equal(await page.locator("fieldset.scores :checked").count(), groups);
  const values = await page.locator("fieldset.scores :checked").evaluateAll((all) => all.map((one) => Number(one.value)));
  assert.deepEqual(values, values.map((_, i) => i % 6));
}

async function rate(browser) {
  const page = await enter(browser, raterLink, { viewport: { width: 1440, height: 900 } });
  await page.click("text=Start");
  const first = page.url();
  // An incomplete case stays a draft and says what is missing.
  await page.click("text=Submit and go on");
  assert.ok(await page.locator("[role=alert]").isVisible());
  await check(page, "case with problems");
  await page.goto(first);
  await rateByKeyboard(page);
  await page.click("text=Both are equally good");
  await page.fill("textarea", "Fine.");
  await page.click("text=Save draft");
  assert.match(await page.textContent("[role=status]"), /Saved/);
  await page.reload();
  assert.equal(await page.inputValue("textarea"), "Fine.");
  // Zoom by button and by wheel.
  const scale = () => page.evaluate(() => new DOMMatrix(getComputedStyle(document.querySelector(".viewer img")).transform).a);
  await page.click("[aria-label='Zoom in']");
  assert.ok(await scale() > 1.4);
  await page.hover(".viewer");
  await page.mouse.wheel(0, -200);
  assert.ok(await scale() > 1.6);
  await page.click("[aria-label='Show the whole image']");
  assert.equal(await scale(), 1);
  await page.click("text=Submit and go on");
  assert.notEqual(page.url(), first);
  await page.click("text=All cases");
  assert.match(await page.textContent("main"), /1 of \d+ submitted/);
}

// Rates the second case without scripts.
async function rateWithoutScripts(browser) {
  const page = await enter(browser, raterLink, { javaScriptEnabled: false, viewport: { width: 768, height: 1024 } });
  await page.click("text=Go on");
  for (const group of await page.locator("fieldset.scores").all()) await group.locator("input").nth(4).check();
  await page.locator("fieldset.preference input").first().check();
  await page.click("text=Submit and go on");
  await page.click("text=All cases");
  assert.match(await page.textContent("main"), /2 of \d+ submitted/);
}

run(async (browser) => {
  await rate(browser);
  await rateWithoutScripts(browser);
  await forEachLook(browser, raterLink, async (rater, look) => {
    await check(rater, `overview ${look}`);
    await rater.goto(origin + "/case/1");
    await check(rater, `submitted case ${look}`);
    await rater.goto(origin + "/case/3");
    await check(rater, `open case ${look}`);
  });
  await forEachLook(browser, administratorLink, async (administrator, look) => {
    await check(administrator, `progress ${look}`);
    await administrator.goto(origin + "/admin/disagreements");
    await check(administrator, `disagreements ${look}`);
  });
});
