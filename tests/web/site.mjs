// The home page of the project (`make site`): each link, each picture, the search, and the viewer in it work.
// SPDX-License-Identifier: ISC
import assert from "node:assert/strict";
import {dirname, join} from "node:path";
import {fileURLToPath, pathToFileURL} from "node:url";
import {at, close, open, run, serveFolder, weft} from "./drive.mjs";

const source = join(dirname(fileURLToPath(import.meta.url)), "../..");

export function prepare() {
	run("python3", join(source, "docs/site/site.py"), source, dirname(weft), at("site"));
}

// Opens each page that links lead to; the target of each link must exist.
async function walk(page, first) {
	const anchors = new Map(), links = [], todo = [first];
	const base = first.slice(0, first.lastIndexOf("/") + 1);
	while (todo.length) {
		const url = todo.pop();
		if (anchors.has(url))
			continue;
		const response = await page.goto(url);
		assert.ok(!response || response.ok(), `${url} is not there`);
		const seen = await page.evaluate(async () => {
			const pictures = [...document.images];
			await Promise.all(pictures.map(picture => picture.decode().catch(() => 0)));
			return {
				ids: [...document.querySelectorAll("[id]")].map(element => element.id),
				links: [...document.querySelectorAll("main a[href], nav a[href], header a[href]")].map(link => link.href),
				blank: pictures.filter(picture => !picture.naturalWidth).map(picture => picture.src),
			};
		});
		assert.deepEqual(seen.blank, [], `pictures of ${url}`);
		anchors.set(url, new Set(seen.ids));
		for (const link of seen.links) {
			const [address, anchor] = link.split("#");
			if (!address.startsWith(base))
				continue;
			links.push({url, address, anchor: anchor && decodeURIComponent(anchor)});
			if (address.endsWith(".html") && !address.endsWith("/live.html"))
				todo.push(address);
		}
	}
	const dead = links.filter(({address, anchor}) => anchor && anchors.has(address) && !anchors.get(address).has(anchor));
	assert.deepEqual(dead.map(({url, address, anchor}) => `${url}: ${address}#${anchor}`), []);
	return anchors.size;
}

async function visit(first) {
	const page = await open(first, {ready: "#find", viewport: {width: 1280, height: 900}});
	const pages = await walk(page, first);
	assert.ok(pages > 60, `${pages} pages`);

	// a user searches for a word, and opens a result
	await page.goto(first);
	await page.keyboard.press("/");
	await page.keyboard.type("weft_should_resolve");
	await page.locator("#found [aria-selected=true]").waitFor();
	await page.keyboard.press("Enter");
	await page.waitForURL(/weft_\w+\.3\.html#weft_should_resolve$/);
	assert.match(await page.locator("main").innerText(), /weft_should_resolve\(\)\s+Declares that promise must resolve/);
	await page.locator("#find").fill("lost wake-up");
	await page.locator("#found a").first().click();
	await page.waitForURL(/tutorial-diagnosing\.html#it-hangs-a-lost-wake-up/);
	await page.locator("#find").fill("xylophone");
	assert.equal(await page.locator("#found").innerText(), "Nothing has these words.");

	// the viewer in the page opens its traces, and reacts to keys
	await page.goto(first);
	const viewer = await (await page.locator("iframe").elementHandle()).contentFrame();
	await viewer.waitForSelector("[data-ready]", {state: "attached"});
	await viewer.locator("canvas[tabindex]").last().focus();
	await page.keyboard.press("q");
	await viewer.locator(".panel").getByText("bind").first().waitFor();
	await close(page);
}

export const tests = {
	async "links, pictures, search and viewer of the site work from a folder"() {
		await visit(pathToFileURL(at("site/index.html")).href);
	},

	async "links, pictures, search and viewer of the site work from a server"() {
		const server = await serveFolder(at("site"));
		await visit(`${server.url}index.html`);
		server.close();
	},
};
