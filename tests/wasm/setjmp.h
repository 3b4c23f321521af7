/* setjmp.h: WASI has none; cmocka's tests include it, for cmocka.  SPDX-License-Identifier: ISC */
