// What hands do: keys, mouse, fingers; each action is acted and what came of it observed.  SPDX-License-Identifier: ISC
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {at, close, drop, file, fingers, found, generate, open, place, record, run, selected, times, until, weft} from "./drive.mjs";

const NONE = 0xffffffff;
const MAIN = 'label:="main"';

export function prepare() {
	record("good");
	record("bad");
	run(generate, "short", "--events=2000", "-o", "other.ctf");
	run(generate, "random", "--events=20000", "-o", "many.ctf");
	run(weft, "html", "many.ctf", "-o", "many.html");
	run(weft, "html", "arp-bad", "-o", "input.html");
	run(weft, "html", "other.ctf", "arp-bad", "-o", "different.html");
}

// The span in ns that is seen.
const seen = page => page.evaluate(() => {
	const number = text => Number.parseFloat(text) * {ns: 1, us: 1e3, ms: 1e6, s: 1e9}[text.match(/[a-z]+$/)?.[0] ?? "s"];
	const [from, to] = weft.stage.surface.ask("place").match(/t=([^&]*)/)[1].split("..").map(number);
	return {from, to, span: to - from};
});
const enter = async (page, text) => {
	await page.keyboard.press("/");
	await page.locator(".finder input").fill(text);
	await until(page, () => !weft.stage.core.call.weft_compare_search_step(weft.stage.surface.compare, 0));
	await page.keyboard.press("Enter");
	await page.keyboard.press("Escape");
};

export const tests = {
	async "everything by keyboard"() {
		const page = await open(file("input.html"));
		const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
		await press("Home");
		const whole = await seen(page);
		await press("+", "+");
		const near = await seen(page);
		assert.ok(near.span < whole.span / 1.5);
		await press("ArrowRight");
		assert.ok((await seen(page)).from > near.from);
		await press("ArrowLeft", "PageDown");
		assert.ok((await seen(page)).from > near.from + near.span / 2);
		await press("PageUp", "-", "-");
		assert.ok((await seen(page)).span > near.span * 1.5);

		// a dialog asks for a time; nonsense is told
		await press("s");
		await page.keyboard.type("soon");
		await press("Enter");
		assert.match(await page.locator("dialog .wrong").textContent(), /is a number and/);
		await page.locator("dialog input").fill("20ms");
		await press("Enter");
		await press("d");
		await page.locator("dialog input").fill("10ms");
		await press("Enter");
		const asked = await seen(page);
		assert.ok(Math.abs(asked.from - 20e6) < 1e5 && Math.abs(asked.span - 10e6) < 1e5, JSON.stringify(asked));

		// selecting, and walking along links
		await press("Home");
		await enter(page, MAIN);
		const main = await selected(page);
		assert.notEqual(main, NONE);
		await press("a");
		assert.notEqual(await selected(page), main, "what it waits for");
		await press("c");
		await press("Alt+ArrowLeft", "Alt+ArrowLeft");
		assert.equal(await selected(page), main);
		await press("Alt+ArrowRight");
		assert.notEqual(await selected(page), main);
		await press("z");
		assert.ok((await seen(page)).span < whole.span);

		// switches
		for (const [key, name] of [["o", "overview"], ["Space", "metrics"], ["f", "filter"]]) {
			const on = () => page.evaluate(action => weft.stage.state(weft.stage.actions.find(({name: own}) => own === action)) & 4, name);
			const before = await on();
			await press(key);
			assert.notEqual(await on(), before, name);
			await press(key);
			assert.equal(await on(), before, name);
		}
		await press("p");
		assert.ok(await page.locator(".panel").isHidden());
		await press("F9");
		assert.ok(await page.locator(".panel").isVisible());
		await press("h");
		assert.ok(await found(page) > 0, "what it became and came from");
		await press("l");
		assert.match(await place(page), /find=/);
		await press("Escape", "Escape");
		assert.equal(await selected(page), NONE);

		// the main menu by Tab, its items by arrows; the context menu by its key; the list of keys
		await page.locator("canvas").focus();
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
		assert.match(await page.locator("dialog dl").textContent(), /Next match/);
		await press("Escape");
		assert.ok(await page.locator("dialog").isHidden());
		await close(page);
	},

	async "the next match is in the other trace where this one has none"() {
		const page = await open(file("different.html"));
		await enter(page, "failed");
		await enter(page, "ARP response");
		assert.equal(await page.evaluate(() => weft.stage.core.call.active()), 1);
		assert.notEqual(await selected(page), NONE);
		await page.locator(".panel h2", {hasText: "Findings in arp-bad"}).waitFor();
		await close(page);
	},

	async "a file that is dropped with shift stands below, axes go together or apart"() {
		const page = await open(file("input.html"));
		await drop(page, "other.ctf", readFileSync(at("other.ctf")), true);
		await page.locator(".titles h2").nth(1).waitFor();
		assert.deepEqual(await page.locator(".titles h2").allTextContents(), ["arp-bad", "other.ctf"]);
		const spans = () => page.evaluate(() => [0, 1].map(number => {
			const {core, surface} = weft.stage;
			core.call.weft_compare_activate(surface.compare, number);
			return surface.ask("place").match(/t=([^&]*)/)[1];
		}));
		const [first, second] = await spans();
		assert.equal(first, second);
		await page.keyboard.press("x");
		await page.keyboard.press("+");
		const apart = await spans();
		assert.notEqual(apart[0], apart[1]);
		await close(page);
	},

	async "the overview moves what is shown, by its middle and by its edges"() {
		const page = await open(`${file("input.html")}#t=0..200ms`);
		const before = await seen(page), box = await page.locator("canvas").boundingBox();
		const edge = 200 / 2002; // of the width, about
		await page.mouse.move(box.x + box.width * edge / 2, 15);
		await page.mouse.down();
		await page.mouse.move(box.x + box.width * 0.5, 15, {steps: 5});
		await page.mouse.up();
		const moved = await seen(page);
		assert.ok(moved.from > before.to && Math.abs(moved.span / before.span - 1) < 0.1, JSON.stringify([before, moved]));
		await close(page);
	},

	async "the focus goes through the rows by keys, wheel and drag"() {
		const page = await open(file("many.html"));
		const row = async () => Number((await place(page)).match(/&y=([^&]*)/)?.[1] ?? 0);
		await page.keyboard.press("Home");
		const top = await row();
		for (let i = 0; i < 30; i++)
			await page.keyboard.press("ArrowDown");
		const below = await row();
		assert.ok(below > top, `${below} rows down`);
		await page.keyboard.down("Control");
		await page.mouse.move(500, 300);
		await page.mouse.wheel(0, 600);
		await page.keyboard.up("Control");
		assert.ok(await row() > below);
		await page.mouse.down();
		await page.mouse.move(500, 400, {steps: 5});
		await page.mouse.up();
		const dragged = await row();
		assert.notEqual(dragged, below);
		await close(page);
	},

	async "a span is measured in the ruler and with shift, zoomed to, and cleared"() {
		const page = await open(file("input.html"));
		await page.keyboard.press("Home");
		const whole = await seen(page);
		const ruler = await page.evaluate(() => {
			const {core, surface} = weft.stage;
			surface.draw();
			const [, y, , height] = new Float64Array(core.bytes.buffer, core.call.pane(3) >>> 0, 4);
			return y + height / 2;
		});
		await page.mouse.move(300, ruler);
		await page.mouse.down();
		await page.mouse.move(500, ruler, {steps: 4});
		await page.mouse.up();
		await page.keyboard.press("m");
		const measured = await seen(page);
		assert.ok(measured.span < whole.span / 3);
		await page.keyboard.press("Escape");
		await page.keyboard.press("m");
		assert.deepEqual(await seen(page), measured, "there is none to zoom to");
		await page.keyboard.press("Home");
		await page.keyboard.down("Shift");
		await page.mouse.move(300, 300);
		await page.mouse.down();
		await page.mouse.move(400, 320, {steps: 4});
		await page.mouse.up();
		await page.keyboard.up("Shift");
		assert.deepEqual((await seen(page)).span, whole.span, "it does not pan");
		await page.keyboard.press("m");
		assert.ok((await seen(page)).span < whole.span / 3);
		await close(page);
	},

	async "a click selects, a double click highlights, what is under the pointer is told by the cursor"() {
		const page = await open(`${file("input.html")}#t=0..60ms`);
		// where the promise called main is drawn
		await enter(page, MAIN);
		const line = await page.evaluate(() => {
			const {core, surface} = weft.stage;
			for (let y = 100; y < 600; y++) {
				core.call.weft_compare_motion(surface.compare, 300, y);
				if (core.call.hovered(surface.active) === core.call.selected(surface.active))
					return y;
			}
			return 0;
		});
		assert.ok(line > 0);
		await page.keyboard.press("Escape");
		await page.keyboard.press("Escape");
		assert.equal(await selected(page), NONE);
		await page.mouse.move(300, line);
		assert.equal(await page.evaluate(() => weft.stage.surface.canvas.style.cursor), "pointer");
		await page.mouse.click(300, line);
		assert.notEqual(await selected(page), NONE);
		assert.match(await page.locator(".status").textContent(), /main/);
		for (let i = 0; i < 50 && !await found(page); i++) // two clicks may be far apart on a busy machine
			await page.mouse.dblclick(300, line);
		assert.ok(await found(page) > 0);
		await page.mouse.click(300, line, {button: "right"});
		await page.getByRole("menuitem", {name: /Zoom to the promise/}).click();
		assert.ok((await seen(page)).span > 1e9);
		await close(page);
	},

	async "fingers: a drag pans, a pinch zooms where it is, a double tap highlights, a tap selects"() {
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
		const pinched = await seen(page), factor = before.span / pinched.span;
		assert.ok(factor > 1.7 && factor < 2.3, `zoomed by ${factor}`);
		assert.ok(Math.abs((pinched.from + pinched.to) / (before.from + before.to) - 1) < 0.1, "around the fingers");
		await touch("touchStart", [300, 400]);
		for (let i = 1; i <= 5; i++)
			await touch("touchMove", [300 - 20 * i, 400]);
		await touch("touchEnd");
		const panned = await seen(page);
		assert.ok(panned.from > pinched.from && Math.abs(panned.span / pinched.span - 1) < 0.01);
		const line = await page.evaluate(() => {
			const {core, surface} = weft.stage;
			for (let y = 100; y < 700; y++) {
				core.call.weft_compare_motion(surface.compare, 100, y);
				if (core.call.hovered(surface.active) >>> 0 !== 0xffffffff)
					return y;
			}
			return 0;
		});
		await tap(100, line);
		assert.notEqual(await selected(page), NONE);
		await page.locator(".panel .close").tap();
		for (let i = 0; i < 50 && !await found(page); i++) { // two taps may be far apart on a busy machine
			await tap(100, line);
			await tap(100, line);
		}
		assert.ok(await found(page) > 0);
		await close(page);
	},

	async "back and forward go through what was selected and searched for"() {
		const page = await open(file("input.html"));
		await enter(page, "ARP response");
		await until(page, () => /sel=/.test(location.hash) && /find=ARP/.test(location.hash));
		const first = [await place(page), await selected(page)];
		await enter(page, MAIN);
		await until(page, () => /find=label/.test(location.hash));
		await page.goBack();
		await until(page, () => /find=ARP/.test(weft.stage.surface.ask("place")));
		assert.deepEqual([await place(page), await selected(page)], first);
		await page.goForward();
		await until(page, () => /find=label/.test(weft.stage.surface.ask("place")));
		await page.evaluate(() => {
			location.hash = "#t=nonsense";
		});
		await until(page, () => /nonsense/.test(document.querySelector(".status").textContent));
		await close(page);
	},

	async "what is drawn is told in words too: roles, labels, a note without scripts"() {
		const page = await open(file("input.html"));
		assert.equal(await page.getByRole("application", {name: "Promises of arp-bad"}).count(), 1);
		assert.equal(await page.getByRole("button", {name: "Menu"}).count(), 1);
		await enter(page, MAIN);
		assert.equal(await page.getByRole("complementary", {name: /selected promise/}).count(), 1);
		assert.match(await page.locator("[role=status].status").textContent(), /^main, bind, at/);
		await page.keyboard.press("/");
		await page.locator(".results li").first().waitFor();
		assert.ok(await page.getByRole("searchbox", {name: "Find promises"}).isVisible());
		assert.ok(await page.getByRole("list").first().isVisible());
		await close(page);
		const silent = await open(file("input.html"), {javaScriptEnabled: false, ready: "noscript"});
		assert.match(await silent.locator("noscript").textContent(), /switched off/);
		await close(silent);
	},

	async "a link to the place is copied, or shown where that is not allowed"() {
		const page = await open(`${file("input.html")}#t=5ms..25ms`);
		await page.keyboard.press("Control+l");
		await until(page, () => document.querySelector("dialog[open] textarea")?.value || /copied/.test(document.querySelector(".status").textContent));
		const shown = await page.evaluate(() => document.querySelector("dialog[open] textarea")?.value ?? "");
		assert.ok(!shown || shown.includes("#t=5ms..25ms"), shown);
		await close(page);
	},
};
