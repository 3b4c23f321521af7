// Screenshots of the page, for tools/pictures: screens.mjs DRIVER WORK.json, which has the actions of a user before each screenshot.
// SPDX-License-Identifier: ISC
import {readFileSync} from "node:fs";
import {join, resolve} from "node:path";
import {pathToFileURL} from "node:url";

const PATIENCE_MS = 60000;
const [driver, list] = process.argv.slice(2);
const {chromium} = await import(pathToFileURL(join(resolve(driver), "node_modules/playwright-core/index.mjs")));
const {folder, work} = JSON.parse(readFileSync(list, "utf-8"));
const browser = await chromium.launch({executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"]});

async function until(what, ask) {
	for (const deadline = Date.now() + PATIENCE_MS; !await ask();) {
		if (Date.now() > deadline)
			throw new Error(`never: ${what}`);
		await new Promise(later => setTimeout(later, 50));
	}
}

async function still(page) {
	let before = "";
	await until("a picture that stays", async () => {
		await page.locator("[aria-busy=true]").first().waitFor({state: "detached"});
		await page.waitForTimeout(200);
		const now = await page.screenshot(), same = before && now.equals(before);
		before = now;
		return same;
	});
}

for (const [name, where, width, height, colorScheme, trace, steps] of work.filter(one => one[1] === "page")) {
	const page = await browser.newPage({viewport: {width, height}, colorScheme});
	await page.goto(pathToFileURL(resolve(`${trace}.html`)).href);
	await page.waitForSelector("[data-ready]", {state: "attached"});
	await still(page);
	for (const step of steps) {
		if (step.startsWith("find ")) {
			await page.keyboard.press("/");
			await page.locator(".finder input").fill(step.slice(5));
			await until(step, async () => /^[1-9]/.test(await page.locator(".finder output").textContent()));
			await page.keyboard.press("Enter");
			await until("one is selected", () => page.url().includes("sel="));
			await page.keyboard.press("Escape");
		} else {
			await page.keyboard.press(step);
		}
		await still(page);
	}
	await page.mouse.move(3, 3);
	await still(page);
	await page.screenshot({path: join(folder, `${name}.png`)});
	console.log(name);
	await page.close();
}
await browser.close();
