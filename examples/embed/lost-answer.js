// SPDX-License-Identifier: ISC
const element = id => document.getElementById(id);

weft.show(element("good"), {source: "trace-1.gz", name: "arp-good"});
const bad = weft.show(element("bad"), {source: "trace-2.gz", name: "arp-bad"});

for (const button of document.querySelectorAll("[data-place]"))
	button.addEventListener("click", () => bad.go(button.dataset.place));
