/* bytes.c: functions of the C library that process 16 bytes at once.  The functions of wasi-libc process one byte at once, which
 * is too slow for pixels.  SPDX-License-Identifier: ISC */
#include <stdint.h>
#include <string.h>
#include <wasm_simd128.h>
#include <wchar.h>

int memcmp(const void *a, const void *b, size_t size)
{
	const unsigned char *x = a, *y = b;
	while (size >= 16 && !wasm_v128_any_true(wasm_v128_xor(wasm_v128_load(x), wasm_v128_load(y)))) {
		x += 16;
		y += 16;
		size -= 16;
	}
	while (size > 0 && *x == *y) {
		x++;
		y++;
		size--;
	}
	return size > 0 ? *x - *y : 0;
}

wchar_t *wmemset(wchar_t *to, wchar_t value, size_t count)
{
	const v128_t four = wasm_i32x4_splat(value);
	size_t i = 0;
	for (; i + 4 <= count; i += 4)
		wasm_v128_store(to + i, four);
	for (; i < count; i++)
		to[i] = value;
	return to;
}
