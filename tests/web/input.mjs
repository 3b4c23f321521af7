// The tests perform each action by keys, mouse or touch, and check its visible effect.  SPDX-License-Identifier: ISC
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {isDeepStrictEqual} from "node:util";
import {YELLOW, at, canvas, close, count, cursor, dragFinger, drop, dropFolder, eventually, file, find, fingers, generate, open, part, place, placed, promiseAt, record, redrawn, run, seen, selected, shot, slow, still, until, unpack, weft} from "./drive.mjs";

const MAIN = 'label:="main"';

export function prepare() {
	record("good");
	record("bad");
	run(generate, "short", "--events=2000", "-o", "other.ctf");
	run(generate, "random", "--events=20000", "-o", "many.ctf");
	run(weft, "html", "many.ctf", "-o", "many.html");
	run(weft, "html", "arp-bad", "-o", "input.html");
	run(weft, "html", "--compare", "other.ctf", "arp-bad", "-o", "different.html");
	run(weft, "html", "--empty", "-o", "empty.html");
	run(slow, "connections", "by-key");
	run(weft, "html", "by-key", "-o", "by-key.html");
}

const yellow = page => count(page, YELLOW, ".surface");

// Searches, goes to the first match, and closes the finder, which ends the search.
async function enter(page, text) {
	await find(page, text);
	const before = part(page, "sel");
	await page.keyboard.press("Enter");
	const there = await selected(page, id => id && id !== before);
	await page.keyboard.press("Escape");
	return there;
}

export const tests = {
	async "keys reach each function of the page"() {
		const page = await open(file("input.html"));
		const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
		await press("S"); // shows sleep in its full length
		const whole = await seen(page);
		await press("+", "+");
		const near = await seen(page, ({span}) => span < whole.span / 1.5);
		await press("ArrowRight");
		const right = await seen(page, ({from}) => from > near.from);
		await press("ArrowLeft");
		await seen(page, ({from}) => from < right.from);
		await press("PageDown");
		const paged = await seen(page, ({from}) => from > near.from + near.span / 2);
		await press("PageUp");
		await seen(page, ({from}) => from < paged.from);
		await press("-", "-");
		await seen(page, ({span}) => span > near.span * 1.5);

		// a dialog asks for a time; an invalid one is reported
		await press("@");
		await page.keyboard.type("1s");
		await press("Enter");
		await seen(page, ({from, to}) => Math.abs((from + to) / 2 - 1e9) < (to - from) / 100);
		await press("s");
		await page.keyboard.type("soon");
		await press("Enter");
		assert.match(await page.locator("dialog .wrong").textContent(), /must be a number with/);
		await page.locator("dialog input").fill("20ms");
		await press("Enter", "d");
		await page.locator("dialog input").fill("10ms");
		await press("Enter");
		await seen(page, ({from, span}) => Math.abs(from - 20e6) < 1e5 && Math.abs(span - 10e6) < 1e5);

		// selects promises, and goes along links
		await press("Home");
		assert.equal(await enter(page, "ring.write"), "6");
		for (const [key, there] of [["r", "11"], ["Alt+ArrowLeft", "6"], ["w", "7"], ["Backspace", "6"], ["r", "11"], ["c", "4"],
			["Backspace", "11"], ["a", "13"], ["Alt+ArrowLeft", "11"], ["Alt+ArrowRight", "13"]]) {
			await press(key);
			await selected(page, id => id === there);
		}
		await press("z");
		await seen(page, ({span}) => span < whole.span);
		await close(page);
	},

	async "key of each switch changes the picture and restores it"() {
		const page = await open(file("input.html"));
		const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
		await press("l"); // without a selection, this key has no effect
		await enter(page, "ARP response");
		await press("p");
		assert.ok(await page.locator(".panel").isHidden());
		await press("F9");
		assert.ok(await page.locator(".panel").isVisible());
		assert.equal(await yellow(page), 0, "Escape in the finder takes the matches away");
		await press("h");
		await eventually("what it became and came from", async () => await yellow(page) > 0);
		await press("Escape");
		await eventually("no longer", async () => await yellow(page) === 0);
		await press("l");
		await placed(page, where => /find=/.test(where));
		const before = await still(page, ".surface");
		for (const key of ["o", "Space", "f", "t"]) {
			await press(key);
			await redrawn(page, before, ".surface");
			await press(key);
			await eventually(`${key} once more: as before`, async () => (await shot(page, ".surface")).equals(before));
		}
		await press("Escape");
		await placed(page, where => !/find=/.test(where));
		await press("Escape");
		await placed(page, where => !/sel=/.test(where));
		await close(page);
	},

	// Each key has a visible or audible effect after only other keys were pressed.
	async "key of each listed action performs the action"() {
		const first = ["Home", "Shift+ArrowDown"]; // a promise is selected
		const before = {
			"Show the whole trace": ["+"], "Zoom out": ["+", "+"], "Move earlier": ["+", "+", "ArrowRight", "ArrowRight"], "Move later": ["+", "+"],
			"Move a screen earlier": ["+", "+", "+", "PageDown"], "Move a screen later": ["+", "+", "+"], "Zoom to the measured interval": ["M", "+"],
			"Next match": ["l"], "Previous match": ["l"], "Dim promises that do not match": ["l"], "Unfold everything": ["b"], "Show everything again": ["i"],
			"Back": ["+"], "Forward": ["+", "Alt+ArrowLeft"],
			"Select the promise above": ["Shift+ArrowDown"], "Select the previous promise in the row": ["Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowRight"],
			"Select the next promise in the row": ["Shift+ArrowDown", "Shift+ArrowDown"], "Clear interval, highlights, selection": [], "Fold or unfold this kind": ["Shift+ArrowDown"],
		};
		/* These actions need objects that this page lacks: a second trace, a program to follow, kernel events, or many rows. */
		const elsewhere = ["OS threads: CPU states", "Next time off CPU of a running promise", "Previous time off CPU of a running promise", "Separate time axes", "Reload the trace", "Fold low tracks automatically", "Go to what the promise waits for", "Go to what resolved the promise",
			"Go to the creator", "Go to the promise that it woke", "Show rows without a visible promise", "Copy a link to this view", "Show rows further up", "Show rows further down",
			"Next match", "Previous match", "Sort matches by time, duration, name", "Hide this kind", "Hide similar promises", "Show only this kind", "Show only similar promises", "Rows for internals of runtimes"];
		const list = await open(file("by-key.html"));
		await list.keyboard.press("?");
		const labels = await list.locator("dialog dd").allTextContents(), keys = await list.locator("dialog dt").allTextContents();
		await close(list);
		const actions = labels.map((label, i) => [label, keys[i].split(", ")[0]]).filter(([, key]) => !/ |^(Drag|Wheel|Click)$/.test(key) && !key.endsWith("wheel"));
		assert.ok(actions.length > 50, actions.length);
		const page = await open(file("by-key.html"), {viewport: {width: 900, height: 420}});
		const now = async () => [await still(page), page.url(), await page.locator(".status").textContent(), await page.evaluate(() => document.activeElement.className + document.activeElement.tagName)];
		for (const [label, key] of actions.filter(([name]) => !elsewhere.includes(name))) {
			await page.goto("about:blank");
			await page.goto(file("by-key.html"));
			await page.waitForSelector("[data-ready]", {state: "attached"});
			for (const one of [...first, ...before[label] ?? []])
				await page.keyboard.press(one);
			let told = 0;
			const count = () => told++;
			page.on("filechooser", count).on("download", count);
			const was = await now();
			await page.keyboard.press(key.replace("Ctrl+", "Control+").replace(/^Escape$/, "Escape"));
			await eventually(`${key}: ${label}`, async () => told > 0 || !isDeepStrictEqual(await now(), was));
			page.off("filechooser", count).off("download", count);
		}
		await close(page);
	},

	async "keys operate menus, dialogs and lists"() {
		const page = await open(file("input.html"));
		const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
		// Tab leads to the main menu, and arrows to its items; a key opens the context menu, and another the list of keys
		await page.locator(canvas).focus();
		await press("Tab");
		assert.equal(await page.evaluate(() => document.activeElement.title), "Menu");
		await press("Enter");
		assert.ok(await page.locator(".popup").isVisible());
		await press("ArrowDown", "ArrowDown", "End", "Home");
		assert.match(await page.evaluate(() => document.activeElement.textContent), /^Open a trace/);
		await press("Escape");
		assert.ok(await page.evaluate(() => document.activeElement.tagName === "CANVAS"));
		await press("Shift+F10");
		assert.ok(await page.locator(".popup").isVisible());
		await press("Escape", "?");
		assert.match((await page.locator("dialog dl").allTextContents()).join("\n"), /Next match/);
		await press("Escape");
		assert.ok(await page.locator("dialog").isHidden());
		await close(page);
	},

	async "next match is in the other trace if this one has none"() {
		const page = await open(file("different.html"));
		await find(page, "failed", /found/);
		await page.keyboard.press("Enter");
		const failed = await selected(page);
		await page.locator(".finder input").fill("ARP response");
		await page.keyboard.press("Enter");
		await selected(page, id => id && id !== failed);
		await placed(page, where => /on=1/.test(where));
		await page.getByText("1 finding in arp-bad").waitFor();
		await close(page);
	},

	async "page without a trace opens dropped and chosen files"() {
		const page = await open(file("empty.html"));
		assert.equal(await page.title(), "weft");
		await page.getByRole("button", {name: "Open a trace"}).waitFor();
		await drop(page, "notes.txt", "no trace");
		await page.locator(".message.failed").waitFor();
		await page.getByRole("button", {name: "Open a trace"}).waitFor(); // the button is still there after the error
		await drop(page, "other.ctf", readFileSync(at("other.ctf")));
		await page.getByRole("button", {name: "Open a trace"}).waitFor({state: "detached"});
		await page.locator(".message").waitFor({state: "hidden"});
		await page.keyboard.press("+");
		await placed(page, where => /t=/.test(where)); // the address of the page changes, too
		await close(page);
		const folder = await open(file("empty.html"));
		await dropFolder(folder, at("arp-bad"));
		await folder.locator(".header strong", {hasText: "arp-bad"}).waitFor();
		await close(folder);
		const other = await open(file("empty.html"));
		const [chooser] = await Promise.all([other.waitForEvent("filechooser"), other.getByRole("button", {name: "Open a trace"}).click()]);
		await chooser.setFiles(at("other.ctf"));
		await other.getByRole("button", {name: "Open a trace"}).waitFor({state: "detached"});
		await close(other);
	},

	async "file dropped with Shift is shown below, with locked or free axis"() {
		const page = await open(file("input.html"));
		await drop(page, "other.ctf", readFileSync(at("other.ctf")), true);
		await page.locator(".titles h2").nth(1).waitFor();
		assert.deepEqual(await page.locator(".titles h2").allTextContents(), ["arp-bad", "other.ctf"]);
		const {width, height} = await page.locator(canvas).boundingBox();
		const halves = async () => { // only the picture, without titles, overviews and rulers of the panes
			const png = unpack(await still(page, ".surface")), row = y => Math.round(y) * width * 3;
			return [png.rgb.subarray(row(height * 0.25), row(height * 0.48)), png.rgb.subarray(row(height * 0.75), row(height * 0.98))];
		};
		await page.mouse.move(3, 3);
		const before = await halves();
		await page.keyboard.press("+");
		const together = await halves();
		assert.ok(!together[0].equals(before[0]) && !together[1].equals(before[1]), "both zoom");
		await page.keyboard.press("x");
		await placed(page, where => /free=1/.test(where));
		const free = await halves();
		await page.keyboard.press("+");
		const apart = await halves();
		assert.ok(!apart[0].equals(free[0]) && apart[1].equals(free[1]), "one zooms");
		await close(page);
	},

	async "overview moves the view by its middle and its edges"() {
		const page = await open(`${file("input.html")}#t=0..200ms`);
		const before = await seen(page), box = await page.locator(canvas).boundingBox();
		const edge = 200 / 2002; // of the width, about
		await page.mouse.move(box.x + box.width * edge / 2, box.y + 15);
		await page.mouse.down();
		await page.mouse.move(box.x + box.width * 0.5, box.y + 15, {steps: 5});
		await page.mouse.up();
		const moved = await seen(page, ({from}) => from > before.to);
		assert.ok(Math.abs(moved.span / before.span - 1) < 0.1, JSON.stringify([before, moved]));
		let edgeAt = box.x + box.width * (moved.to / 2010e6) - 25;
		do {
			await page.mouse.move(++edgeAt, box.y + 15);
			// The cursor changes with the next frame, which may be late on a busy machine.
			await page.evaluate(() => new Promise(resolved => requestAnimationFrame(() => requestAnimationFrame(resolved))));
		} while (await cursor(page) !== "ew-resize" && edgeAt < box.x + box.width);
		assert.ok(edgeAt < box.x + box.width, "the frame has an edge");
		await page.mouse.down();
		await page.mouse.move(box.x + box.width * 0.9, box.y + 15, {steps: 5});
		await page.mouse.up();
		await seen(page, ({from, span}) => span > moved.span * 2 && Math.abs(from - moved.from) < 1e6);
		await close(page);
	},

	async "keys, wheel and drag move the focus through the rows"() {
		const page = await open(file("many.html"));
		const row = condition => eventually(`a row where ${condition}`, () => place(page) && condition(Number(part(page, "y") || 0))).then(() => Number(part(page, "y") || 0));
		await page.keyboard.press("Home");
		const top = await row(() => true);
		/* ArrowDown moves the focus by a few rows, and does not jump to the other end. */
		await page.keyboard.press("ArrowDown");
		const next = await row(y => y > top && y < top + 20);
		for (let i = 0; i < 29; i++)
			await page.keyboard.press("ArrowDown");
		const below = await row(y => y > next);
		await page.keyboard.down("Control");
		await page.mouse.move(500, 300);
		await page.mouse.wheel(0, 600);
		await page.keyboard.up("Control");
		const wheeled = await row(y => y > below + 1);
		await page.mouse.down();
		await page.mouse.move(500, 400, {steps: 5});
		await page.mouse.up();
		await row(y => y < wheeled);
		await close(page);
	},

	async "measured interval is zoomed to and cleared"() {
		const page = await open(file("input.html"));
		await page.keyboard.press("Home");
		const whole = await seen(page);
		// finds the ruler: over it, the pointer is a cross
		let ruler = 0;
		for (let y = 20; y < 200 && !ruler; y += 2) {
			await page.mouse.move(300, y);
			ruler = await cursor(page) === "crosshair" ? y + 4 : 0;
		}
		assert.ok(ruler > 0);
		await page.mouse.move(300, ruler);
		await page.mouse.down();
		await page.mouse.move(500, ruler, {steps: 4});
		assert.equal(await cursor(page), "crosshair");
		await page.mouse.up();
		await page.keyboard.press("m");
		const measured = await seen(page, ({span}) => span < whole.span / 3);
		await page.keyboard.press("Home");
		await seen(page, ({span}) => Math.abs(span - whole.span) < 2);
		await page.keyboard.press("Escape");
		await page.keyboard.press("m"); // there is none to zoom to
		await page.keyboard.press("o");
		await page.keyboard.press("o");
		await still(page);
		assert.ok(Math.abs((await seen(page)).span - whole.span) < 2);
		assert.ok(measured.span > 0);
		await page.keyboard.down("Shift");
		await page.mouse.move(300, 300);
		await page.mouse.down();
		await page.mouse.move(400, 320, {steps: 4});
		await page.mouse.up();
		await page.keyboard.up("Shift");
		await still(page);
		assert.ok(Math.abs((await seen(page)).from - whole.from) < 2, "it does not pan");
		await page.keyboard.press("m");
		await seen(page, ({span}) => span < whole.span / 3);
		await close(page);
	},

	async "click selects, double click highlights, cursor shows the target"() {
		const page = await open(`${file("input.html")}#t=0..60ms`);
		const line = await promiseAt(page, 300);
		await page.mouse.click(300, line);
		await selected(page);
		assert.match(await page.locator(".status").textContent(), /, promise \d+: starts at|, at /);
		for (let i = 0; i < 50 && !await yellow(page); i++) // tries again, because the two clicks may be too far apart on a busy machine
			await page.mouse.dblclick(300, line);
		assert.ok(await yellow(page) > 0);
		await page.mouse.move(300, line + 8);
		await page.mouse.down();
		await page.mouse.move(320, line + 8, {steps: 3});
		assert.equal(await cursor(page), "grabbing");
		await page.mouse.up();
		await page.mouse.click(320, line, {button: "right"});
		await page.getByRole("menuitem", {name: /Zoom to the promise/}).click();
		await seen(page, ({span}) => span > 61e6 || span < 59e6);
		await close(page);
	},

	async "fingers pan, zoom, select and highlight"() {
		const page = await open(`${file("input.html")}#t=0..60ms`, {hasTouch: true, isMobile: true, viewport: {width: 390, height: 780}});
		const touch = await fingers(page);
		const tap = async (x, y) => {
			await touch("touchStart", [x, y]);
			await touch("touchEnd");
		};
		const before = await seen(page);
		await touch("touchStart", [150, 400], [250, 400]);
		for (let i = 1; i <= 5; i++)
			await touch("touchMove", [150 - 10 * i, 400], [250 + 10 * i, 400]);
		await touch("touchEnd");
		const pinched = await seen(page, ({span}) => before.span / span > 1.7 && before.span / span < 2.3);
		assert.ok(Math.abs((pinched.from + pinched.to) / (before.from + before.to) - 1) < 0.1, "around the fingers");
		await dragFinger(page, touch, [300, 400], -100);
		await seen(page, ({from, span}) => from > pinched.from && Math.abs(span / pinched.span - 1) < 0.01);
		// tries several heights, one of which is on a row
		for (let y = 150; y < 700 && !part(page, "sel"); y += 6) {
			await tap(100, y);
			await page.waitForTimeout(500); // no double tap
			if (await page.locator(".panel").isVisible()) {
				await selected(page);
				await page.locator(".panel > .close").tap();
				for (let i = 0; i < 50 && !await yellow(page); i++) { // tries again, because the two taps may be too far apart on a busy machine
					await tap(100, y);
					await tap(100, y);
				}
				assert.ok(await yellow(page) > 0);
			}
		}
		assert.ok(part(page, "sel"), "something was selected");
		await close(page);
	},

	async "finger in the ruler measures, and a long press opens the menu"() {
		const page = await open(`${file("input.html")}#t=0..60ms`, {hasTouch: true, isMobile: true, viewport: {width: 390, height: 780}});
		const touch = await fingers(page), {from, span} = await seen(page), before = await still(page);
		await dragFinger(page, touch, [100, 112], 100);
		await redrawn(page, before);
		assert.equal((await seen(page)).from, from, "it does not pan");
		await touch("touchStart", [200, 400]);
		await page.locator(".popup").waitFor();
		await touch("touchEnd");
		await still(page); // the menu stays open when the finger leaves the screen
		await page.getByRole("menuitem", {name: "Zoom to the measured interval"}).tap();
		const measured = await seen(page, now => now.span < span / 2);
		assert.ok(Math.abs(measured.span / span - 100 / 390) < 0.1, `${measured.span} of ${span}`); // an end may be at an event nearby
		await close(page);
	},

	async "Back and Forward restore selections and searches"() {
		const page = await open(file("input.html"));
		await find(page, "ARP response");
		await page.keyboard.press("Enter");
		const first = await placed(page, where => /sel=/.test(where) && /find=ARP/.test(where));
		await page.locator(".finder input").fill(MAIN);
		await placed(page, where => /find=label/.test(where));
		const before = await still(page, ".surface");
		await page.goBack();
		await placed(page, where => where === first);
		await redrawn(page, before, ".surface");
		await page.goForward();
		await placed(page, where => /find=label/.test(where));
		await eventually("the picture of before", async () => (await shot(page, ".surface")).equals(before));
		await page.goto(`${file("input.html")}#t=nonsense`); // changes the address as a user who types it
		await until(page, () => /nonsense/.test(document.querySelector(".status").textContent));
		await close(page);
	},

	async "page elements have roles, labels and a text without scripts"() {
		const page = await open(file("input.html"));
		assert.equal(await page.getByRole("application", {name: "Promises of arp-bad"}).count(), 1);
		assert.equal(await page.getByRole("button", {name: "Menu"}).count(), 1);
		await enter(page, MAIN);
		assert.equal(await page.getByRole("complementary", {name: /selected promise/}).count(), 1);
		assert.match(await page.locator("[role=status].status").textContent(), /^main, bind, promise \d+: starts at/);
		await page.keyboard.press("/");
		await page.locator(".finder input").fill("main");
		await page.getByRole("group", {name: "Matches"}).getByRole("button", {name: /^main/}).first().waitFor();
		assert.ok(await page.getByRole("searchbox", {name: "Find promises"}).isVisible());
		await close(page);
		const silent = await open(file("input.html"), {javaScriptEnabled: false, ready: "noscript"});
		assert.match(await silent.locator("noscript").textContent(), /switched off/);
		await close(silent);
	},

	async "screen reader gets tracks, findings and table rows"() {
		const page = await open(file("by-key.html"));
		const session = await page.context().newCDPSession(page);
		/* Reads Chromium's accessibility tree: role, name and properties of each object. */
		const tree = async () => (await session.send("Accessibility.getFullAXTree")).nodes.filter(node => !node.ignored).map(node => ({
			role: node.role?.value, name: node.name?.value ?? "", ...Object.fromEntries((node.properties ?? []).map(({name, value}) => [name, value.value]))}));
		const only = async (what, suits) => eventually(what, async () => (await tree()).find(suits));
		await page.keyboard.press("Home");
		await page.keyboard.press("Shift+ArrowDown");
		await selected(page);
		await only("the picture", ({role, name, focused}) => role === "application" && name === "Promises of by-key" && focused);
		const spoken = async what => eventually(what.source, async () => what.test(await page.locator("[role=status].status").textContent()));
		await spoken(/^client 1, connection, promise \d+: starts at .*; a track of \d+ rows$/);
		await only("it is live", ({role, live}) => role === "status" && live === "polite");
		await page.keyboard.press("b");
		await spoken(/^client 1, connection, .*; a folded track with \d+ promises$/);
		await page.keyboard.press("b");
		await spoken(/; a track of \d+ rows$/);
		await page.keyboard.press("q");
		const sort = ({role, name}) => role === "button" && /^request "GET \/\*", \d+ \u00b7 p50 /.test(name);
		assert.equal((await only("a row of the table", node => sort(node) && node.focusable)).expanded, false);
		await page.getByRole("button", {name: /^request "GET \/\*", /}).press("Enter");
		await only("it is open", node => sort(node) && node.expanded === true);
		await close(page);
		const bad = await open(file("input.html"));
		const other = await bad.context().newCDPSession(bad);
		await bad.keyboard.press("e");
		await eventually("the finding, which has the focus", async () => {
			const finding = (await other.send("Accessibility.getFullAXTree")).nodes.find(
				node => node.role?.value === "button" && /^Hang: bind \d+ "main" never resolved/.test(node.name?.value ?? ""));
			const state = Object.fromEntries((finding?.properties ?? []).map(({name, value}) => [name, value.value]));
			return state.focusable && state.focused && state.expanded === false;
		});
		await close(bad);
	},

	async "link to the view is copied, or shown if copying is forbidden"() {
		const page = await open(`${file("input.html")}#t=5ms..25ms`);
		await page.keyboard.press("Control+l");
		await until(page, () => document.querySelector("dialog[open] textarea")?.value || /copied/.test(document.querySelector(".status").textContent));
		const shown = await page.evaluate(() => document.querySelector("dialog[open] textarea")?.value ?? "");
		assert.ok(!shown || shown.includes("#t=5ms..25ms"), shown);
		await close(page);
	},
};
