// Rows of the page's panel, for tests/gtk/rows_test.py: rows.mjs DRIVER PAGE.html...: prints a line of JSON for each page: the rows of the summary and of the findings, the
// rows of the findings with each of the first few opened in turn, and the rows of promises in flight.  SPDX-License-Identifier: ISC
import {join, resolve} from "node:path";
import {pathToFileURL} from "node:url";

const OPENED = 3, PATIENCE_MS = 60000;
const [driver, ...pages] = process.argv.slice(2);
const {chromium} = await import(pathToFileURL(join(resolve(driver), "node_modules/playwright-core/index.mjs")));
const browser = await chromium.launch({executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"]});

// Returns kind, tone, whether the row is open, whether it is a link, name and value, as a person sees them.
const rows = (page, section = 1) => page.locator(".panel section").nth(section).locator(".row").evaluateAll(all => all.map(row => {
	const text = part => row.querySelector(part)?.textContent ?? "";
	return [row.dataset.kind, row.dataset.tone, Boolean(row.dataset.open), row.matches("button") || Boolean(row.querySelector("button")), text(".name"), text(".value")];
}));

async function known(page) {
	const deadline = Date.now() + PATIENCE_MS;
	for (;;) {
		const now = await rows(page);
		if (now.length && now.every(([kind]) => kind !== "working"))
			return now;
		if (Date.now() > deadline)
			throw new Error(`${page.url()} never knows what went wrong: ${JSON.stringify(now)}, ${await page.locator(".message").textContent()}`);
		await page.waitForTimeout(50);
	}
}

for (const path of pages) {
	const page = await browser.newPage({viewport: {width: 1200, height: 800}});
	await page.goto(pathToFileURL(resolve(path)).href);
	await page.waitForSelector("[data-ready]", {state: "attached"});
	await page.keyboard.press("e");
	const found = await known(page), said = [await rows(page, 0), found];
	const names = found.filter(([kind]) => kind === "finding").map(([, , , , name, value]) => `${value}: ${name}`);
	for (const name of [...new Set(names)].slice(0, OPENED)) {
		await page.getByRole("button", {name, exact: true}).first().click();
		await page.locator(".card.open").filter({hasText: name.slice(name.indexOf(": ") + 2)}).first().waitFor();
		said.push(await rows(page));
	}
	await page.keyboard.press("F");
	await page.locator(".panel section[aria-label=Live] .row").first().waitFor();
	said.push(await rows(page, 3));
	console.log(JSON.stringify(said));
	await page.close();
}
await browser.close();
