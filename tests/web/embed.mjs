// Viewers in a foreign page: examples/embed, as described in docs/embedding.md.  SPDX-License-Identifier: ISC
import assert from "node:assert/strict";
import {copyFileSync, readdirSync, readFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {RED, at, close, count, eventually, open, record, redrawn, run, serveFolder, shot, still, until, weft} from "./drive.mjs";

const example = join(dirname(fileURLToPath(import.meta.url)), "../../examples/embed");

export function prepare() {
	run(weft, "html", "--compare", record("good"), record("bad"), "-o", "embedded");
	for (const name of readdirSync(example))
		copyFileSync(join(example, name), join(at("embedded"), name));
}

export const tests = {
	async "two viewers in a foreign page work independently"() {
		const server = await serveFolder(at("embedded"));
		const page = await open(`${server.url}lost-answer.html`, {ready: "#bad.weft canvas[aria-label]"});
		await until(page, () => [...document.querySelectorAll(".trace")].every(element =>
			element.querySelector(".message").hidden && /arp/.test(element.querySelector("canvas[tabindex]").ariaLabel)));
		await eventually("a red line", async () => await count(page, RED, "#bad .surface") > 50);
		assert.equal(await count(page, RED, "#good .surface"), 0);
		assert.equal(await page.locator(".menu-button").count(), 2);

		// the wheel zooms only the viewer under the pointer; keys go to the viewer that was clicked last
		const [good, bad] = [await still(page, "#good .surface"), await still(page, "#bad .surface")];
		await page.locator("#good canvas[tabindex]").hover();
		await page.mouse.wheel(0, -300);
		await redrawn(page, good, "#good .surface");
		assert.ok((await shot(page, "#bad .surface")).equals(bad));
		await page.locator("#good canvas[tabindex]").click({position: {x: 5, y: 60}});
		await page.keyboard.press("/");
		assert.deepEqual(await page.locator(".finder").evaluateAll(all => all.map(finder => finder.hidden)), [false, true]);
		await page.keyboard.type("a good one");
		await page.keyboard.press("Escape");

		// a link in the text of the page changes a viewer
		await page.getByRole("button", {name: "the program gives up"}).click();
		await redrawn(page, bad, "#bad .surface");
		await page.locator("#bad canvas[tabindex]").focus();
		await page.keyboard.press("n");
		await until(page, () => /\w/.test(document.querySelector("#bad .panel [data-kind=title] .name")?.textContent));
		assert.equal(new URL(page.url()).hash, "");
		assert.deepEqual(page.requests.map(url => url.slice(server.url.length)).filter(url => !url.startsWith("a:")).sort(),
			["lost-answer.css", "lost-answer.html", "lost-answer.js", "trace-1.gz", "trace-2.gz", "weft.js"]);
		await close(page);
		server.close();
	},

	async "viewer API answers and obeys the page around it"() {
		const server = await serveFolder(at("embedded"));
		const page = await open(`${server.url}lost-answer.html`, {ready: "#bad.weft canvas[aria-label]"});
		const bytes = readFileSync(join(at("embedded"), "trace-2.gz")).toString("base64");
		const answers = await page.evaluate(async text => {
			const element = document.createElement("div");
			document.body.append(element);
			const blob = new Blob([Uint8Array.from(atob(text), character => character.charCodeAt(0))]);
			const view = weft.show(element, ["trace-1.gz", {source: blob, name: "from memory"}, "none.gz"]);
			const opened = await view.opened;
			const titles = [...element.querySelectorAll("h2")].map(title => title.textContent);
			const message = element.querySelector(".message").textContent;
			const [right, wrong] = [await view.go("t=0..1ms&find=ARP"), await view.go("t=nonsense")];
			view.close();
			const transfer = new DataTransfer();
			transfer.items.add(new File(["a letter"], "letter.txt"));
			const drop = new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true});
			element.dispatchEvent(drop); // after close(), a drop on the element belongs to the page again
			const left = element.childNodes.length, classes = element.className, taken = drop.defaultPrevented;
			const called = [weft.show(element, "trace-1.gz"), weft.show(element, "trace-2.gz")]; // the second trace replaces the first
			const both = await Promise.all(called.map(({opened: promise}) => promise));
			const canvases = element.querySelectorAll("canvas[tabindex]").length;
			called[1].close();
			return {taken, both, canvases, opened, titles, message, right, wrong, left, classes};
		}, bytes);
		assert.deepEqual([answers.opened, answers.titles, answers.right], [2, ["trace-1.gz", "from memory"], ""]);
		assert.match(answers.message, /^none\.gz: 404/);
		assert.match(answers.wrong, /nonsense/);
		assert.deepEqual([answers.left, answers.classes, answers.taken], [0, "", false]);
		assert.deepEqual([answers.both, answers.canvases], [[0, 1], 1]);
		page.complaints = page.complaints.filter(text => !text.includes("404"));
		await close(page);
		server.close();
	},
};
