/* Draws a draw list (src/draw/draw.h) on a canvas. */

const PRIM_BYTES = 36; /* bytes of a struct weft_prim; core.c asserts its layout */

class Painter {
	constructor(core) {
		this.core = core;
		this.fonts = ["", "", "bold "].map((style, font) => `${style}${core.call.weft_font_px(font)}px ${FONT_FAMILY}`);
		this.paints = {};
	}

	/* Returns the width of a text in a font of enum weft_font. */
	measure(context, font, text) {
		context.font = this.fonts[font];
		return context.measureText(text).width;
	}

	paint(theme, paint, alpha) {
		const key = theme << 16 | paint << 8 | alpha;
		return this.paints[key] ??= (() => {
			const rgb = this.core.call.weft_theme_rgb(theme, paint);
			return `rgb(${rgb >> 16} ${rgb >> 8 & 255} ${rgb & 255} / ${alpha / 255})`;
		})();
	}

	/* Draws the primitives at address `prims` from number `first` up to number `end`; their texts are at address `text`. */
	draw(context, theme, prims, first, end, text) {
		const u8 = this.core.bytes, f32 = new Float32Array(u8.buffer), u32 = new Uint32Array(u8.buffer);
		let last = -1, lastFont = -1;
		context.textBaseline = "alphabetic";
		for (let i = first, at = prims + first * PRIM_BYTES; i < end; i++, at += PRIM_BYTES) {
			const kind = u8[at], word = at >> 2;
			const key = u8[at + 2] << 8 | u8[at + 3];
			if (key !== last)
				context.fillStyle = context.strokeStyle = this.paint(theme, u8[at + 2], u8[at + 3]);
			last = key;
			const x0 = f32[word + 2], y0 = f32[word + 3], x1 = f32[word + 4], y1 = f32[word + 5];
			if (kind === PRIM.RECT) {
				context.fillRect(x0, y0, x1 - x0, y1 - y0);
			} else if (kind === PRIM.LINE) {
				context.lineWidth = f32[word + 6];
				context.beginPath();
				context.moveTo(x0, y0);
				context.lineTo(x1, y1);
				context.stroke();
			} else if (kind === PRIM.TRIANGLE) {
				const dx = x1 - x0, dy = y1 - y0, half = f32[word + 6] / Math.hypot(dx, dy);
				context.beginPath();
				context.moveTo(x0, y0);
				context.lineTo(x1 - dy * half, y1 + dx * half);
				context.lineTo(x1 + dy * half, y1 - dx * half);
				context.fill();
			} else {
				if (u8[at + 4] !== lastFont)
					context.font = this.fonts[lastFont = u8[at + 4]];
				const string = this.core.text(text + u32[word + 7], u32[word + 8]);
				if (u8[at + 5]) {
					context.strokeStyle = this.paint(theme, PAINT.BACKGROUND, 255);
					context.lineWidth = 3;
					context.lineJoin = "round";
					context.strokeText(string, x0, y0);
					last = -1;
				}
				context.fillText(string, x0, y0);
			}
		}
	}
}
